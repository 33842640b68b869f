-- The time, in microseconds.
-- Index: none is looked at.
select (extract(epoch from clock_timestamp()) * 1000000)::bigint
