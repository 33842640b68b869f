-- An hour that is over, or more of one that is.
-- Index: the primary key.
insert into hours (
  owner, no, hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
on conflict (owner, no, hour) do update
set accepted = accepted + excluded.accepted, delivered = delivered + excluded.delivered,
  dead_letter = dead_letter + excluded.dead_letter, expired = expired + excluded.expired,
  cancelled = cancelled + excluded.cancelled, attempts = attempts + excluded.attempts,
  successes = successes + excluded.successes, timeouts = timeouts + excluded.timeouts
