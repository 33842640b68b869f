-- Kept counts of destinations: they become those of the first seat, on which the first node sits down.
-- Index: the primary key.
select destination_no, 0 as seat, account_no, open, bytes, hour, accepted, delivered, dead_letter, expired, cancelled,
  attempts, successes, timeouts
from lanes
where destination_no > ?1
order by destination_no
