-- Where these owners sit: what they write has ended, or will see the new epochs.
-- Index: the primary keys.
select s.seat
from tidegate.seats s
where s.node_no in (select owner from tidegate.slots where slot = any($2::bigint[]) and owner <> $1)
  and not exists (select from tidegate.nodes n where n.no = s.node_no and n.lease_until > transaction_timestamp())
order by s.seat
for update
