-- The first schema. Times are whole milliseconds, numbers of acceptance are what ids hold, and every index is there for the
-- verbs named beside it. Enums are small integers or short codes; sqlite/codec.rs has the table of both.

-- Single numbers: clean_stop, sequence (the highest ever given), forget_cursor (events up to it were looked at by retention),
-- filed (deliveries and attempts up to it are in deliveries_filed and attempts_filed).
create table meta (
  name text primary key,
  value integer not null
) strict, without rowid;

insert into meta (name, value) values ('clean_stop', 1), ('sequence', 0), ('forget_cursor', 0), ('filed', 0);

-- Names and plans that many rows share.
create table type_names (
  no integer primary key,
  name text not null unique
) strict;

create table retry_plans (
  no integer primary key,
  plan text not null unique
) strict;

-- What owners asked for. Numbers are never given to another (autoincrement).
create table accounts (
  no integer primary key autoincrement,
  id blob not null unique,
  external_id text unique,
  document text not null,
  settings text not null,
  version integer not null,
  created_at integer not null
) strict;

create table api_keys (
  id blob primary key,
  account_no integer not null,
  hash blob not null unique,
  document text not null,
  created_at integer not null,
  expires_at integer
) strict, without rowid;
create index api_keys_of_account on api_keys (account_no);

-- A deleted destination keeps its number, its id and its account, and nothing else.
create table destinations (
  no integer primary key autoincrement,
  id blob not null unique,
  account_no integer not null,
  external_id text,
  document text not null,
  secrets blob not null,
  version integer not null,
  created_at integer not null,
  updated_at integer not null,
  deleted integer not null default 0 check (deleted in (0, 1))
) strict;
create unique index destinations_by_external_id on destinations (account_no, external_id) where external_id is not null;
create index destinations_of_account on destinations (account_no);

create table routes (
  id blob primary key,
  account_no integer not null,
  destination_no integer not null,
  document text not null,
  created_at integer not null
) strict, without rowid;
create index routes_of_account on routes (account_no);
create index routes_of_destination on routes (destination_no);

create table event_types (
  account_no integer not null,
  event_type text not null,
  document text not null,
  version integer not null,
  updated_at integer not null,
  primary key (account_no, event_type)
) strict, without rowid;

create table audit_log (
  seq integer primary key autoincrement,
  account_no integer not null,
  at integer not null,
  actor blob,
  action text not null,
  subject text not null,
  detail text not null
) strict;
create index audit_log_of_account on audit_log (account_no, seq);

-- An id is its number and its salt, so no index on ids is needed. The payload comes last: reading the rest need not pass it.
create table events (
  seq integer primary key,
  salt integer not null,
  account_no integer not null,
  type_no integer not null,
  accepted_at integer not null,
  occurred_at integer not null,
  expires_at integer,
  deliver_at integer,
  priority integer not null check (priority between 1 and 4),
  ordering_key text,
  external_id text,
  payload_hash blob check ((payload_hash is null) = (external_id is null)),
  first_delivery integer check ((first_delivery is null) = (routed = 0)),
  routed integer not null,
  body_kind integer not null check (body_kind between 0 and 2),
  content_type text check (body_kind <> 0 or content_type is null),
  payload blob not null
) strict;
-- events, count_events
create index events_by_account on events (account_no, seq);
-- accept (external ids), lists by external id
create index events_by_external_id on events (account_no, external_id, type_no, seq) where external_id is not null;

-- stage: 0 open, 1 delivered, 2 dead_letter, 3 expired, 4 cancelled.
-- retry_at, retry_reason: its own time, if it waits for one (0 deliver_at, 1 a retry).
create table deliveries (
  seq integer primary key,
  salt integer not null,
  event_seq integer not null,
  account_no integer not null,
  destination_no integer not null,
  type_no integer not null,
  plan_no integer not null,
  priority integer not null check (priority between 1 and 4),
  occurred_at integer not null,
  accepted_at integer not null,
  expires_at integer,
  too_old_at integer not null,
  ordering_key text,
  bytes integer not null,
  replay_of blob,
  attempts_made integer not null,
  attempts_used integer not null check (attempts_used between 0 and attempts_made),
  stage integer not null check (stage between 0 and 4),
  retry_at integer check (retry_at is null or stage = 0),
  retry_reason integer check ((retry_reason is null) = (retry_at is null) and (retry_reason is null or retry_reason in (0, 1))),
  end_code text check ((end_code is null) = (stage = 0)),
  finished_at integer check ((finished_at is null) = (stage = 0))
) strict;
-- refill: shelves and the whole line; oldest_open, lists of what is open
create index deliveries_ready on deliveries (destination_no, (ordering_key is null), priority, type_no, occurred_at, seq)
  where stage = 0 and retry_at is null;
-- refill: its own time; promote; lists of what is open
create index deliveries_waiting on deliveries (destination_no, retry_at, seq)
  where stage = 0 and retry_at is not null;
-- refill: lines by key; one that was tried keeps its turn, also while it waits for its retry: such come first
create index deliveries_keyed on deliveries (destination_no, ordering_key, (retry_at is null), (attempts_made = 0), occurred_at, seq)
  where stage = 0 and ordering_key is not null and (retry_at is null or retry_reason = 1);
-- refill: the head of the whole line
create index deliveries_tried on deliveries (destination_no, (retry_at is not null), occurred_at, seq)
  where stage = 0 and attempts_made > 0;
-- overdue
create index deliveries_ending on deliveries (min(too_old_at, ifnull(expires_at, too_old_at))) where stage = 0;
-- lists of a destination, by how it ended badly
create index deliveries_troubled_by_destination on deliveries (destination_no, stage, seq) where stage >= 2;
-- lists of an account
create index deliveries_by_account on deliveries (account_no, seq);
create index deliveries_troubled on deliveries (account_no, stage, seq) where stage >= 2;
-- deliveries_of, forget
create index deliveries_replays on deliveries (event_seq) where replay_of is not null;

-- What they answered, where it is kept at all, is apart.
create table attempts (
  seq integer primary key,
  delivery_seq integer not null,
  number integer not null,
  salt integer not null,
  destination_no integer not null,
  started_at integer not null,
  response_time integer not null,
  timeout integer not null,
  outcome text not null,
  probe integer check (probe in (0, 1)),
  answered integer not null check (answered in (0, 1))
) strict;
-- attempts, forget
create unique index attempts_by_delivery on attempts (delivery_seq, number);

-- Deliveries and attempts by destination, for lists. An index would change a page for each destination in every commit; so
-- they are filed many at a time, in order. What is not filed yet is found at the end of its own table (meta: filed).
create table deliveries_filed (
  destination_no integer not null,
  seq integer not null,
  primary key (destination_no, seq)
) strict, without rowid;

create table attempts_filed (
  destination_no integer not null,
  seq integer not null,
  primary key (destination_no, seq)
) strict, without rowid;

create table answers (
  attempt_seq integer primary key,
  error text,
  headers text not null,
  body blob not null
) strict;

-- A lane: what waits, what happened in the hour that runs, and the state behind its gates.
create table lanes (
  destination_no integer primary key,
  account_no integer not null,
  open integer not null check (open >= 0),
  bytes integer not null check (bytes >= 0),
  hour integer not null,
  accepted integer not null,
  delivered integer not null,
  dead_letter integer not null,
  expired integer not null,
  cancelled integer not null,
  attempts integer not null,
  successes integer not null,
  timeouts integer not null,
  state blob
) strict;

-- Large, and seldom written: apart.
create table lane_timeouts (
  destination_no integer primary key,
  timeouts blob not null
) strict;

-- What happened to an account in the hour that runs.
create table account_tallies (
  account_no integer primary key,
  hour integer not null,
  accepted integer not null,
  delivered integer not null,
  dead_letter integer not null,
  expired integer not null,
  cancelled integer not null,
  attempts integer not null,
  successes integer not null,
  timeouts integer not null
) strict;

-- Hours that are over. owner: 0 a destination, 1 an account.
create table hours (
  owner integer not null check (owner in (0, 1)),
  no integer not null,
  hour integer not null,
  accepted integer not null,
  delivered integer not null,
  dead_letter integer not null,
  expired integer not null,
  cancelled integer not null,
  attempts integer not null,
  successes integer not null,
  timeouts integer not null,
  primary key (owner, no, hour)
) strict, without rowid;
-- forget
create index hours_by_time on hours (hour);

-- Logs of a destination, in the order in which they were written: the oldest go first.
create table holds (
  no integer primary key autoincrement,
  destination_no integer not null,
  reason text not null,
  since integer not null,
  until integer not null
) strict;
create index holds_of_destination on holds (destination_no, since);

create table notices (
  no integer primary key autoincrement,
  destination_no integer not null,
  at integer not null,
  kind text not null,
  detail text not null
) strict;
create index notices_of_destination on notices (destination_no, at);

create table idempotency_keys (
  account_no integer not null,
  endpoint text not null,
  key text not null,
  body_hash blob not null,
  answer blob not null,
  at integer not null,
  primary key (account_no, endpoint, key)
) strict, without rowid;
-- forget
create index idempotency_keys_by_time on idempotency_keys (at);

create table jobs (
  id blob primary key,
  account_no integer not null,
  kind integer not null check (kind in (0, 1)),
  request text not null,
  created_at integer not null,
  state integer not null check (state between 0 and 2),
  position integer,
  total integer,
  done integer not null,
  skipped integer not null,
  finished_at integer,
  no integer not null unique
) strict, without rowid;
create index jobs_of_account on jobs (account_no, kind, no);
create index jobs_running on jobs (no) where state = 0;

-- Events that retention has passed while something of theirs was open or young: looked at again when that is old.
create table forget_later (
  at integer not null,
  event_seq integer not null,
  primary key (at, event_seq)
) strict, without rowid;
