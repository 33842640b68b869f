-- Events in the partition of the numbers from {first} up to {next}.
-- Index: none is looked at.
select count(*)
from tidegate.events_{first}
