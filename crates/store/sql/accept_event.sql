-- A new event.
-- Index: none is looked at; it goes to the end of its tables.
insert into events (
  seq, salt, account_no, type_no, accepted_at, occurred_at, expires_at, deliver_at, priority, ordering_key,
  external_id, payload_hash, first_delivery, routed, body_kind, content_type, payload
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
