-- The attempts for a delivery, the first one first.
-- Index: attempts_by_delivery.
select a.delivery_seq, a.number, a.seq, a.salt, a.destination_no, a.started_at, a.response_time, a.timeout, a.outcome, a.probe, n.error,
  n.headers, n.body, d.salt
from attempts a
join deliveries d on d.seq = a.delivery_seq
left join answers n on n.attempt_seq = a.seq
where a.delivery_seq = ?1
order by a.number
