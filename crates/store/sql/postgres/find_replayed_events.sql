-- The events that replays belong to, while they are there.
-- Index: the primary key.
select seq, salt, account_no, octet_length(payload), deliver_at, external_id
from tidegate.events
where seq = any($1::bigint[])
