-- The events that replays belong to, while they are there; they stay until the commit.
-- Index: the primary key.
select seq, salt, account_no, octet_length(payload), deliver_at, external_id
from tidegate.events
where seq = any($1::bigint[])
order by seq
for key share
