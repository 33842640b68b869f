-- The event that a replay belongs to, while it is there.
-- Index: the primary key.
select account_no, salt, length(payload)
from events
where seq = ?1
