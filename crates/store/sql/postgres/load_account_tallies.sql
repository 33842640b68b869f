-- What happened to accounts in the hour that runs, as a seat has it, at start.
-- Index: the primary key.
select account_no, hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
from tidegate.account_tallies
where seat = $1
order by account_no
