-- The next priority and type among what is ready, without (0) or with (1) looking at those without a key: a skip scan.
-- Index: open_deliveries_ready.
select priority, type_no
from tidegate.open_deliveries
where destination_no = $1 and retry_at is null and (ordering_key is null)::int = $2
  and (priority, type_no) > ($3, $4)
order by priority, type_no
limit 1
