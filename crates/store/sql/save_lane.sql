-- A lane: kept counts, and its state where there is a new one.
-- Index: the primary key.
insert into lanes (
  destination_no, account_no, open, bytes, hour, accepted, delivered, dead_letter, expired, cancelled, attempts,
  successes, timeouts, state
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
on conflict (destination_no) do update
set open = excluded.open, bytes = excluded.bytes, hour = excluded.hour, accepted = excluded.accepted,
  delivered = excluded.delivered, dead_letter = excluded.dead_letter, expired = excluded.expired,
  cancelled = excluded.cancelled, attempts = excluded.attempts, successes = excluded.successes,
  timeouts = excluded.timeouts, state = coalesce(excluded.state, state)
