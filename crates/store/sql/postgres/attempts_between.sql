-- The attempts for deliveries in a range, delivery by delivery, the first one first.
-- Index: the primary key.
select delivery_seq, number, seq, salt, destination_no, started_at, response_time, timeout, outcome, probe, error, headers, body,
  delivery_salt
from tidegate.attempts
where delivery_seq between $1 and $2
order by delivery_seq, number
limit $3
