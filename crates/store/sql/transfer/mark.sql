-- What changes whenever anything happens here: by it a source is known again.
-- Index: the primary keys.
select name, value, '', '' from meta
union all select name, seq, '', '' from sqlite_sequence
union all select destination_no, open, json_array(bytes, hour, accepted, delivered, dead_letter, expired, cancelled, attempts), state from lanes
union all select no, version, id, settings from accounts
