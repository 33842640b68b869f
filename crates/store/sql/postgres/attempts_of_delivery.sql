-- The attempts for a delivery, the first one first.
-- Index: the primary key.
select delivery_seq, number, seq, salt, destination_no, started_at, response_time, timeout, outcome, probe, error, headers, body,
  delivery_salt
from tidegate.attempts
where delivery_seq = $1
order by number
