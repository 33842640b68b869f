-- Events of the outbox that were refused long ago.
-- Index: outbox_refused.
delete from tidegate.outbox
where no in (
  select no
  from tidegate.outbox
  where error is not null and refused_at < to_timestamp($1 / 1000.0)
  order by refused_at, no
  limit $2
)
