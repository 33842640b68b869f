-- What happened to accounts in the hour that runs, as the first seat has it.
-- Index: the primary key.
select account_no, 0 as seat, hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
from account_tallies
where account_no > ?1
order by account_no
