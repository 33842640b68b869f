-- open -> final, under the epoch of the slot. One that is final stays so. Where retention may have passed its event, that is
-- looked at again.
-- Index: slots_pkey, open_deliveries_pkey.
with settled as (
  select w.*
  from unnest(
    $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::bigint[]
  ) as w (seq, slot, epoch, attempts_made, attempts_used, stage, end_code, finished_at)
  cross join lateral (
    select from tidegate.slots s where s.slot = w.slot and s.epoch = w.epoch and s.owner = $1 limit 1
  ) s
),
gone as (
  delete from tidegate.open_deliveries d
  using settled w
  where d.seq = w.seq
  returning d.*, w.attempts_made as made, w.attempts_used as used, w.stage, w.end_code, w.finished_at
),
kept as (
  insert into tidegate.deliveries (
    seq, salt, event_seq, event_salt, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at,
    expires_at, too_old_at, ordering_key, bytes, replay_of, attempts_made, attempts_used, deliver_at, external_id, stage,
    end_code, finished_at
  )
  select seq, salt, event_seq, event_salt, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at,
    expires_at, too_old_at, ordering_key, bytes, replay_of, made, used, deliver_at, external_id, stage, end_code, finished_at
  from gone
),
noted as (
  insert into tidegate.forget_later (at, event_seq)
  select distinct g.finished_at, g.event_seq
  from gone g
  join tidegate.meta m on m.name = 'forget_ahead' and g.event_seq < m.value
  on conflict do nothing
)
select seq, bytes
from gone
