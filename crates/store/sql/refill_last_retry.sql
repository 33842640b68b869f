-- Whether a delivery that was tried waits for its retry, from a time on: it has the turn in the whole line.
-- Index: deliveries_tried.
select retry_at
from deliveries indexed by deliveries_tried
where destination_no = ?1 and stage = 0 and attempts_made > 0 and (retry_at is not null) = 1
  and retry_reason = 1 and retry_at >= ?2
limit 1
