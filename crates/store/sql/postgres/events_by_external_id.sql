-- Events with this external id, of any type.
-- Index: events_by_external_id.
select seq, salt
from tidegate.events
where account_no = $1 and external_id = $2
limit $3
