-- The attempts for deliveries in a range, delivery by delivery, the first one first.
-- Index: attempts_by_delivery.
select a.delivery_seq, a.number, a.seq, a.salt, a.destination_no, a.started_at, a.response_time, a.timeout, a.outcome, a.probe, n.error,
  n.headers, n.body, d.salt
from attempts a
join deliveries d on d.seq = a.delivery_seq
left join answers n on n.attempt_seq = a.seq
where a.delivery_seq between ?1 and ?2
order by a.delivery_seq, a.number
limit ?3
