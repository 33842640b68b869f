-- The oldest hours.
-- Index: hours_by_time.
delete from hours
where (owner, no, hour) in (select owner, no, hour from hours where hour < ?1 order by hour limit ?2)
