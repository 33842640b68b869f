-- Bulletins of this seat that everybody has read, or is too late for.
-- Index: the primary key.
delete from tidegate.bulletins
where seat = $1 and at < clock_timestamp() - $2 * interval '1 millisecond'
