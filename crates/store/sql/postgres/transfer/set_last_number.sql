-- The next row of a table gets the number after this one.
-- Index: none is looked at.
select setval($1::text::regclass, greatest($2, 1), $2 > 0)
