-- The attempts for a destination that are not filed yet, newest first: few are, and all of these are looked at.
-- Index: the primary keys.
select a.delivery_seq, a.number, a.seq, a.salt, a.destination_no, a.started_at, a.response_time, a.timeout, a.outcome, a.probe, n.error,
  n.headers, n.body, d.salt
from attempts a
join deliveries d on d.seq = a.delivery_seq
left join answers n on n.attempt_seq = a.seq
where a.seq > (select value from meta where name = 'filed') and a.seq < ?2 and a.destination_no = ?1
order by a.seq desc
limit ?3
