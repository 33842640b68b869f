-- Attempts, with what is kept of the answers.
-- Index: the primary keys.
select a.delivery_seq, d.salt as delivery_salt, a.seq, a.salt, a.started_at, a.response_time, a.timeout, a.destination_no,
  a.number, a.probe, a.outcome, s.error, s.headers, s.body
from attempts a
left join deliveries d on d.seq = a.delivery_seq
left join answers s on s.attempt_seq = a.seq
where a.seq > ?1
order by a.seq
