-- The next priority and type among what is ready, without (0) or with (1) looking at those without a key: a skip scan.
-- From the next type on, as numbers are whole: after a comparison of two columns with > SQLite walks over all that are equal.
-- Index: deliveries_ready.
select priority, type_no
from deliveries
where destination_no = ?1 and stage = 0 and retry_at is null and (ordering_key is null) = ?2
  and (priority, type_no) >= (?3, ?4 + 1)
order by priority, type_no
limit 1
