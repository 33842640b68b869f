-- Owners of these slots whose leases have ended: none of them renews until the commit. One time is the measure for the whole
-- transaction, so that an owner whose lease ends meanwhile keeps what it has.
-- Index: the primary keys.
select no
from tidegate.nodes
where no in (select owner from tidegate.slots where slot = any($2::bigint[]) and owner <> $1) and lease_until <= transaction_timestamp()
order by no
for update
