-- What happened to an account in the hour that runs.
-- Index: the primary key.
insert or replace into account_tallies (
  account_no, hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
