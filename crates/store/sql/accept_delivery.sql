-- A new delivery: open, or final already (expired on arrival).
-- Index: none is looked at; it goes to the end of its tables.
insert into deliveries (
  seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at, expires_at,
  too_old_at, ordering_key, bytes, replay_of, attempts_made, attempts_used, stage, retry_at, retry_reason, end_code,
  finished_at
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)
