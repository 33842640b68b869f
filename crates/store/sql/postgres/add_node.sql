-- A node, on the lowest seat that is free, with its first lease of so many milliseconds.
-- Index: the primary key, nodes_by_seat.
insert into tidegate.nodes (seat, name, address, version, started_at, lease_until, leaving)
select s.seat, $1, $2, $3, clock_timestamp(), clock_timestamp() + $4 * interval '1 millisecond', false
from tidegate.seats s
where not exists (select from tidegate.nodes n where n.seat = s.seat)
order by s.seat
limit 1
returning no, seat
