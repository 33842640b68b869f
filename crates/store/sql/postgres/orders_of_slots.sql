-- Orders for destinations of slots (a byte for each).
-- Index: the primary key.
select no, destination_no, body
from tidegate.orders
where (destination_no & 255) in (
  select get_byte($1::bytea, place) from generate_series(0, octet_length($1::bytea) - 1) as place
)
order by no
