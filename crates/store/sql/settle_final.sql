-- open -> final.
-- Index: the primary key.
update deliveries
set attempts_made = ?2, attempts_used = ?3, retry_at = null, retry_reason = null, stage = ?4, end_code = ?5,
  finished_at = ?6
where seq = ?1 and stage = 0
