-- Publishing from SQL: an application's own transaction puts an event into the outbox, and a node accepts it from there.

-- error: the rules have refused it; it is kept for people to see.
create table tidegate.outbox (
  no bigint generated always as identity primary key,
  event_seq bigint not null,
  event_salt bigint not null,
  created_at timestamptz not null default clock_timestamp(),
  refused_at timestamptz check ((refused_at is null) = (error is null)),
  event_type text collate "C" not null,
  payload bytea not null,
  options jsonb not null,
  error text
);
-- outbox
create index outbox_waiting on tidegate.outbox (no) where error is null;
-- refused_outbox, forget
create index outbox_refused on tidegate.outbox (refused_at, no) where error is not null;

-- Tells apart what is published within one millisecond.
create sequence tidegate.publish_numbers;

-- An id as people see it: its prefix, and 128 bits as 26 digits of Crockford's base 32.
create function tidegate.id_text(prefix text, bits bit(128)) returns text
language sql immutable strict
set search_path = pg_catalog, pg_temp
as $$
  select prefix || string_agg(
    substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', substring(B'00' || bits from 5 * place + 1 for 5)::int + 1, 1), ''
    order by place
  )
  from generate_series(0, 25) as place
$$;

-- Whether one of the options of an event has the shape that it must have; null if there is no such option.
create function tidegate.is_fine(name text, value jsonb) returns boolean
language sql immutable strict
set search_path = pg_catalog, pg_temp
as $$
  select case
    when name in ('external_event_id', 'ordering_key', 'content_type', 'account_id', 'occurred_at', 'expires_at', 'deliver_at')
      and jsonb_typeof(value) <> 'string' then false
    when name = 'external_event_id' then octet_length(value #>> '{}') between 1 and 255
    when name = 'ordering_key' then octet_length(value #>> '{}') between 1 and 256
    when name = 'content_type' then octet_length(value #>> '{}') between 3 and 255
    when name = 'account_id' then (value #>> '{}') ~* '^acc_[0-7][0-9a-hjkmnp-tv-z]{25}$'
    when name in ('occurred_at', 'expires_at', 'deliver_at') then
      (value #>> '{}') ~* '^\d{4}-\d\d-\d\d[t ]\d\d:\d\d(:\d\d(\.\d+)?)?(z|[+-]\d\d(:?\d\d)?)$'
    when name = 'ttl_seconds' then
      case when value::text ~ '^\d{1,7}$' then value::text::integer between 1 and 2592000 else false end
    when name = 'priority' then value::text ~ '^[1-4]$'
    when name = 'destination_ids' then
      case when jsonb_typeof(value) = 'array' then
        jsonb_array_length(value) between 1 and 1000
        and not jsonb_path_exists(value, '$[*] ? (@.type() != "string")')
      else false end
    when name = 'notify' then jsonb_typeof(value) = 'boolean'
  end
$$;

-- Publishes an event with the transaction that calls it: committed together, or not at all. Gives back the event's id. The
-- payload is JSON, and sent byte for byte as it stands here. Options: the other fields of `POST /v1/outbound-events`;
-- account_id, where there are several accounts; notify: a node hears of it at once, where it is otherwise found within half a
-- second. What is checked here is shape; what a node's rules refuse is kept with the reason.
--
-- Who may use the schema may call it, and needs no right on the tables: grant usage on schema tidegate to the application.
create function tidegate.publish(event_type text, payload text, options jsonb default '{}') returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  asked jsonb := jsonb_strip_nulls(coalesce(options, '{}'));
  body bytea;
  most bigint;
  wrong text;
  number bigint;
  salt bigint;
begin
  if event_type is null or octet_length(event_type) > 128
    or event_type collate "C" !~ '^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$' then
    raise exception 'event_type is %; allowed: 1 to 128 characters: segments of A-Z, a-z, 0-9, _ and -, joined by dots',
      coalesce(event_type, 'null') using errcode = 'invalid_parameter_value';
  end if;

  begin
    perform payload::json;
  exception when invalid_text_representation or statement_too_complex then
    raise exception 'payload is not JSON: %', sqlerrm using errcode = 'invalid_parameter_value';
  end;
  if payload is null then
    raise exception 'payload is null; allowed: JSON' using errcode = 'invalid_parameter_value';
  end if;
  body := convert_to(btrim(payload, E' \t\n\r'), 'UTF8');
  most := coalesce((select value from tidegate.meta where name = 'max_event_bytes'), 1048576);
  if octet_length(body) > most then
    raise exception 'payload has % bytes; allowed: at most %', octet_length(body), most
      using errcode = 'invalid_parameter_value';
  end if;

  if jsonb_typeof(asked) <> 'object' then
    raise exception 'options is %; allowed: an object', jsonb_typeof(asked) using errcode = 'invalid_parameter_value';
  end if;
  select format('options.%s is %s; allowed: what POST /v1/outbound-events takes there', o.key, left(o.value::text, 100))
  into wrong
  from jsonb_each(asked) o
  where tidegate.is_fine(o.key, o.value) is not true
  order by o.key
  limit 1;
  if wrong is not null then
    raise exception '%', wrong using errcode = 'invalid_parameter_value';
  end if;

  -- The millisecond, the share of the numbers that no node has, and a number within it.
  number := ((floor(extract(epoch from clock_timestamp()) * 1000)::bigint) << 20) + (31 << 15)
    + (nextval('tidegate.publish_numbers') & 32767);
  -- Fifteen digits of a random uuid in which nothing is fixed.
  salt := ('x' || substr(replace(gen_random_uuid()::text, '-', ''), 18, 15))::bit(60)::bigint;
  insert into tidegate.outbox (event_seq, event_salt, event_type, payload, options)
  values (number, salt, publish.event_type, body, asked - 'notify');
  if asked -> 'notify' = 'true' then
    perform pg_notify('tidegate', '');
  end if;
  return tidegate.id_text('evt_', B'0000' || number::bit(64) || substring(salt::bit(64) from 5));
end
$$;
