-- Events that went with the partition of the numbers from {first} up to {next}, once it is one no more: all but those that stayed.
-- Index: the primary key.
select (select count(*) from tidegate.events_{first})
  - (select count(*) from tidegate.events_kept where seq >= {first} and seq < {next})
