-- open -> open: back in its place, or waiting for its own time.
-- Index: the primary key.
update deliveries
set attempts_made = ?2, attempts_used = ?3, retry_at = ?4, retry_reason = ?5
where seq = ?1 and stage = 0
