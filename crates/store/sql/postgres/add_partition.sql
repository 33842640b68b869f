-- Partitions for the numbers from {first} up to {next}.
-- Index: none is looked at.
create table if not exists tidegate.events_{first}
  partition of tidegate.events for values from ({first}) to ({next});
create table if not exists tidegate.deliveries_{first}
  partition of tidegate.deliveries for values from ({first}) to ({next});
create table if not exists tidegate.attempts_{first}
  partition of tidegate.attempts for values from ({first}) to ({next});
