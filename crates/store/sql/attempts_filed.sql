-- The attempts for a destination that are filed, newest first.
-- Index: the primary keys.
select a.delivery_seq, a.number, a.seq, a.salt, a.destination_no, a.started_at, a.response_time, a.timeout, a.outcome, a.probe, n.error,
  n.headers, n.body, d.salt
from attempts_filed f
cross join attempts a on a.seq = f.seq
join deliveries d on d.seq = a.delivery_seq
left join answers n on n.attempt_seq = a.seq
where f.destination_no = ?1 and f.seq < ?2
order by f.seq desc
limit ?3
