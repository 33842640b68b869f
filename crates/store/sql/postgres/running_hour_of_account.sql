-- The hour that runs, as each seat has it, of an account.
-- Index: the primary key.
select hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
from tidegate.account_tallies
where account_no = $1
