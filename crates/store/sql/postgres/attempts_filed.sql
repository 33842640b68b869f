-- The attempts for a destination, newest first.
-- Index: attempts_of_destination.
select delivery_seq, number, seq, salt, destination_no, started_at, response_time, timeout, outcome, probe, error, headers, body,
  delivery_salt
from tidegate.attempts
where destination_no = $1 and seq < $2
order by seq desc
limit $3
