-- Events of an account, oldest first.
-- Index: events_by_account.
select seq, salt, type_no, accepted_at, body_kind, content_type, payload, account_no, occurred_at, expires_at, deliver_at,
  ordering_key, priority, external_id, routed
from tidegate.events
where account_no = $1 and seq > $2
order by seq
limit $3
