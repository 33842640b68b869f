-- What is left of the partition of the numbers from {first} up to {next}, once it is one no more.
-- Index: none is looked at.
drop table tidegate.events_{first}, tidegate.deliveries_{first}, tidegate.attempts_{first}
