-- The oldest hours.
-- Index: hours_by_time.
delete from tidegate.hours
where (owner, no, hour) in (select owner, no, hour from tidegate.hours where hour < $1 order by hour limit $2)
