-- The first schema. Times are whole milliseconds, numbers of acceptance are what ids hold, and every index is there for the
-- verbs named beside it. Enums are small integers or short codes; codec.rs has the table of both.
--
-- What is open lies apart from history: `open_deliveries` is one table, as large as the backlog; `deliveries` has what is
-- final, and is partitioned by the number of acceptance, as `events` and `attempts` are (these by the number of their
-- delivery). Retention drops partitions. What of a dropped one must stay (events that still have something open or young, with
-- all that is theirs) goes to the default partition, and is deleted row by row when it is old. Where that is much, what is old
-- is deleted row by row instead, and the partition dropped when little is left.

-- Single numbers: forget_cursor (events with numbers below it were looked at by retention), forget_ahead (it may look at events
-- with numbers below this: when something of theirs becomes final, that is noted), partition (numbers in one partition).
create table tidegate.meta (
  name text collate "C" primary key,
  value bigint not null
);

insert into tidegate.meta (name, value) values ('forget_cursor', 0), ('forget_ahead', 0);

-- Single texts: key_fingerprint (the key with which all nodes seal secrets).
create table tidegate.marks (
  name text collate "C" primary key,
  value text not null
);

-- Places for processes that write: each has its share of the numbers, and its own rows of kept counts, which stay when the
-- next one sits there. sequence: the highest number that was ever given here; groups: how many were committed here, so that
-- after a lost connection it can be found out whether the last one was. Every group locks its seat's row, and so does whoever
-- takes slots from its node: a group with results sees epochs that cannot change before its commit.
create table tidegate.seats (
  seat smallint primary key check (seat between 0 and 30),
  node_no bigint,
  sequence bigint not null,
  groups bigint not null
) with (fillfactor = 50);

insert into tidegate.seats (seat, sequence, groups) select seat, 0, 0 from generate_series(0, 30) as seat;

-- Processes, from their registration to their end. The lease lies apart from the seat, so that a renewal never waits for a
-- group. It is judged by the clock of the database alone.
create table tidegate.nodes (
  no bigint generated always as identity primary key,
  seat smallint not null constraint nodes_by_seat unique check (seat between 0 and 30),
  name text not null,
  address text not null,
  version text not null,
  started_at timestamptz not null,
  lease_until timestamptz not null,
  leaving boolean not null
) with (fillfactor = 50);

-- Destinations by their number modulo 256. Results are stored only under the owner's epoch. clean: the owner before gave it
-- up by itself, with nothing in flight.
create table tidegate.slots (
  slot smallint primary key check (slot between 0 and 255),
  owner bigint,
  epoch bigint not null,
  clean boolean not null
) with (fillfactor = 50);

insert into tidegate.slots (slot, epoch, clean) select slot, 0, true from generate_series(0, 255) as slot;

-- Names and plans that many rows share.
create table tidegate.type_names (
  no bigint generated always as identity primary key,
  name text collate "C" not null constraint type_names_by_name unique
);

create table tidegate.retry_plans (
  no bigint generated always as identity primary key,
  plan text collate "C" not null constraint retry_plans_by_plan unique
);

-- What owners asked for. Numbers are never given to another.
create table tidegate.accounts (
  no integer generated always as identity primary key,
  id bytea not null unique,
  external_id text collate "C" unique,
  document text not null,
  settings text not null,
  version bigint not null,
  created_at bigint not null
);

create table tidegate.api_keys (
  id bytea primary key,
  account_no integer not null,
  hash bytea not null unique,
  document text not null,
  created_at bigint not null,
  expires_at bigint
);
create index api_keys_of_account on tidegate.api_keys (account_no);

-- A deleted destination keeps its number, its id and its account, and nothing else.
create table tidegate.destinations (
  no integer generated always as identity primary key,
  id bytea not null unique,
  account_no integer not null,
  external_id text collate "C",
  document text not null,
  secrets bytea not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint not null,
  deleted boolean not null default false
);
create unique index destinations_by_external_id on tidegate.destinations (account_no, external_id) where external_id is not null;
create index destinations_of_account on tidegate.destinations (account_no);

create table tidegate.routes (
  id bytea primary key,
  account_no integer not null,
  destination_no integer not null,
  document text not null,
  created_at bigint not null
);
create index routes_of_account on tidegate.routes (account_no);
create index routes_of_destination on tidegate.routes (destination_no);

create table tidegate.event_types (
  account_no integer not null,
  event_type text collate "C" not null,
  document text not null,
  version bigint not null,
  updated_at bigint not null,
  primary key (account_no, event_type)
);

create table tidegate.audit_log (
  seq bigint generated always as identity primary key,
  account_no integer not null,
  at bigint not null,
  actor bytea,
  action text not null,
  subject text not null,
  detail text not null
);
create index audit_log_of_account on tidegate.audit_log (account_no, seq);

-- An id is its number and its salt, so no index on ids is needed.
create table tidegate.events (
  seq bigint primary key,
  salt bigint not null,
  accepted_at bigint not null,
  occurred_at bigint not null,
  expires_at bigint,
  deliver_at bigint,
  first_delivery bigint check ((first_delivery is null) = (routed = 0)),
  account_no integer not null,
  type_no integer not null,
  routed integer not null,
  priority smallint not null check (priority between 1 and 4),
  body_kind smallint not null check (body_kind between 0 and 2),
  ordering_key text collate "C",
  external_id text collate "C",
  content_type text check (body_kind <> 0 or content_type is null),
  payload bytea not null
) partition by range (seq);
create table tidegate.events_kept partition of tidegate.events default;
-- events, count_events
create index events_by_account on tidegate.events (account_no, seq);
-- lists by external id
create index events_by_external_id on tidegate.events (account_no, external_id, seq) where external_id is not null;

-- External ids that count: one event each, for a day.
create table tidegate.external_ids (
  account_no integer not null,
  type_no integer not null,
  external_id text collate "C" not null,
  event_seq bigint not null,
  event_salt bigint not null,
  at bigint not null,
  payload_hash bytea not null,
  primary key (account_no, type_no, external_id)
);
-- forget
create index external_ids_by_time on tidegate.external_ids (at);

-- What is not final. retry_at, retry_reason: its own time, if it waits for one (0 deliver_at, 1 a retry). What lists tell of
-- its event is here, too, so that they need not look for it.
create table tidegate.open_deliveries (
  seq bigint primary key,
  salt bigint not null,
  event_seq bigint not null,
  event_salt bigint not null,
  occurred_at bigint not null,
  accepted_at bigint not null,
  too_old_at bigint not null,
  bytes bigint not null,
  expires_at bigint,
  retry_at bigint,
  deliver_at bigint,
  account_no integer not null,
  destination_no integer not null,
  type_no integer not null,
  plan_no integer not null,
  attempts_made integer not null,
  attempts_used integer not null check (attempts_used between 0 and attempts_made),
  priority smallint not null check (priority between 1 and 4),
  retry_reason smallint check ((retry_reason is null) = (retry_at is null) and (retry_reason is null or retry_reason in (0, 1))),
  ordering_key text collate "C",
  external_id text collate "C",
  replay_of bytea
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
-- refill: shelves and the whole line; oldest_open, lists of what is open
create index open_deliveries_ready on tidegate.open_deliveries
  (destination_no, ((ordering_key is null)::int), priority, type_no, occurred_at, seq) where retry_at is null;
-- refill: its own time; promote; lists of what is open
create index open_deliveries_waiting on tidegate.open_deliveries (destination_no, retry_at, seq) where retry_at is not null;
-- refill: lines by key; one that was tried keeps its turn, also while it waits for its retry: such come first
create index open_deliveries_keyed on tidegate.open_deliveries
  (destination_no, ordering_key, ((retry_at is null)::int), ((attempts_made = 0)::int), occurred_at, seq)
  where ordering_key is not null and (retry_at is null or retry_reason = 1);
-- refill: the head of the whole line
create index open_deliveries_tried on tidegate.open_deliveries
  (destination_no, ((retry_at is not null)::int), occurred_at, seq) where attempts_made > 0;
-- overdue: slot by slot
create index open_deliveries_ending on tidegate.open_deliveries
  ((destination_no & 255), least(too_old_at, expires_at), seq);
-- lists of a destination, and of an account
create index open_deliveries_of_destination on tidegate.open_deliveries (destination_no, seq);
create index open_deliveries_of_account on tidegate.open_deliveries (account_no, seq);
-- forget
create index open_deliveries_of_event on tidegate.open_deliveries (event_seq);

-- What is final. stage: 1 delivered, 2 dead_letter, 3 expired, 4 cancelled.
create table tidegate.deliveries (
  seq bigint primary key,
  salt bigint not null,
  event_seq bigint not null,
  event_salt bigint not null,
  occurred_at bigint not null,
  accepted_at bigint not null,
  too_old_at bigint not null,
  bytes bigint not null,
  finished_at bigint not null,
  expires_at bigint,
  deliver_at bigint,
  account_no integer not null,
  destination_no integer not null,
  type_no integer not null,
  plan_no integer not null,
  attempts_made integer not null,
  attempts_used integer not null check (attempts_used between 0 and attempts_made),
  priority smallint not null check (priority between 1 and 4),
  stage smallint not null check (stage between 1 and 4),
  end_code text not null,
  ordering_key text collate "C",
  external_id text collate "C",
  replay_of bytea
) partition by range (seq);
create table tidegate.deliveries_kept partition of tidegate.deliveries default;
-- lists of a destination, and those by how it ended badly
create index deliveries_of_destination on tidegate.deliveries (destination_no, seq);
create index deliveries_troubled_by_destination on tidegate.deliveries (destination_no, stage, seq) where stage >= 2;
-- lists of an account
create index deliveries_by_account on tidegate.deliveries (account_no, seq);
create index deliveries_troubled on tidegate.deliveries (account_no, stage, seq) where stage >= 2;
-- forget: rows are stored in the order in which they became final, so this is tiny
create index deliveries_by_end on tidegate.deliveries using brin (finished_at) with (autosummarize = on);
-- deliveries_of, forget
create index deliveries_replays on tidegate.deliveries (event_seq) where replay_of is not null;

create table tidegate.attempts (
  delivery_seq bigint not null,
  delivery_salt bigint not null,
  seq bigint not null,
  salt bigint not null,
  started_at bigint not null,
  response_time bigint not null,
  timeout bigint not null,
  destination_no integer not null,
  number integer not null,
  probe smallint check (probe in (0, 1)),
  outcome text not null,
  error text,
  headers text,
  body bytea,
  -- attempts, forget
  primary key (delivery_seq, number)
) partition by range (delivery_seq);
create table tidegate.attempts_kept partition of tidegate.attempts default;
-- attempts of a destination
create index attempts_of_destination on tidegate.attempts (destination_no, seq);

-- Kept counts of a destination: what waits, and what happened in the hour that runs. Each seat writes rows of its own; what
-- counts is their sum. What was accepted here and ended elsewhere is negative there.
create table tidegate.lane_counts (
  destination_no integer not null,
  seat smallint not null,
  account_no integer not null,
  open bigint not null,
  bytes bigint not null,
  hour bigint not null,
  accepted bigint not null,
  delivered bigint not null,
  dead_letter bigint not null,
  expired bigint not null,
  cancelled bigint not null,
  attempts bigint not null,
  successes bigint not null,
  timeouts bigint not null,
  primary key (destination_no, seat)
) with (fillfactor = 50);

-- The state behind a lane's gates, what its timeouts have learned, and what was in flight then: written by the owner of its
-- slot alone.
create table tidegate.lanes (
  destination_no integer primary key,
  saved_at bigint not null,
  in_flight integer not null,
  state bytea,
  timeouts bytea
) with (fillfactor = 50);

-- What happened to an account in the hour that runs, by seat.
create table tidegate.account_tallies (
  account_no integer not null,
  seat smallint not null,
  hour bigint not null,
  accepted bigint not null,
  delivered bigint not null,
  dead_letter bigint not null,
  expired bigint not null,
  cancelled bigint not null,
  attempts bigint not null,
  successes bigint not null,
  timeouts bigint not null,
  primary key (account_no, seat)
) with (fillfactor = 50);

-- Hours that are over. owner: 0 a destination, 1 an account.
create table tidegate.hours (
  owner smallint not null check (owner in (0, 1)),
  no integer not null,
  hour bigint not null,
  accepted bigint not null,
  delivered bigint not null,
  dead_letter bigint not null,
  expired bigint not null,
  cancelled bigint not null,
  attempts bigint not null,
  successes bigint not null,
  timeouts bigint not null,
  primary key (owner, no, hour)
);
-- forget
create index hours_by_time on tidegate.hours (hour);

-- Logs of a destination, in the order in which they were written: the oldest go first.
create table tidegate.holds (
  no bigint generated always as identity primary key,
  destination_no integer not null,
  reason text not null,
  since bigint not null,
  until bigint not null
);
create index holds_of_destination on tidegate.holds (destination_no, since);

create table tidegate.notices (
  no bigint generated always as identity primary key,
  destination_no integer not null,
  at bigint not null,
  kind text not null,
  detail text not null
);
create index notices_of_destination on tidegate.notices (destination_no, at);

create table tidegate.idempotency_keys (
  account_no integer not null,
  endpoint text collate "C" not null,
  key text collate "C" not null,
  at bigint not null,
  body_hash bytea not null,
  answer bytea not null,
  primary key (account_no, endpoint, key)
);
-- forget
create index idempotency_keys_by_time on tidegate.idempotency_keys (at);

-- node_no: who works at it.
create table tidegate.jobs (
  id bytea primary key,
  no bigint generated always as identity unique,
  node_no bigint not null,
  account_no integer not null,
  kind smallint not null check (kind in (0, 1)),
  state smallint not null check (state between 0 and 2),
  request text not null,
  created_at bigint not null,
  position bigint,
  total bigint,
  done bigint not null,
  skipped bigint not null,
  finished_at bigint
);
create index jobs_of_account on tidegate.jobs (account_no, kind, no);
create index jobs_running on tidegate.jobs (no) where state = 0;

-- Events that retention has passed while something of theirs was open or young: looked at again when that is old.
create table tidegate.forget_later (
  at bigint not null,
  event_seq bigint not null,
  primary key (at, event_seq)
);

-- Events that stay while their partition is being dropped: empty outside of that transaction.
create table tidegate.forget_kept (
  event_seq bigint primary key
);

-- What a group has for other nodes: deliveries that it accepted for slots which are not its node's, orders, and whether it
-- changed what owners asked for. Groups of a seat follow one another, so whoever has read up to one has missed none. They go
-- after a minute.
create table tidegate.bulletins (
  seat smallint not null,
  groups bigint not null,
  at timestamptz not null default clock_timestamp(),
  bytes bigint not null,
  deliveries bigint[] not null,
  destinations integer[] not null,
  orders bigint[] not null,
  catalogue boolean not null,
  primary key (seat, groups)
);

-- What people want of a lane, from a node that does not work it to the one that does.
create table tidegate.orders (
  no bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  destination_no integer not null,
  body bytea not null
);
