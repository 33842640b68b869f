-- An order for the node that works a destination.
-- Index: none is looked at.
insert into tidegate.orders (destination_no, body)
values ($1, $2)
returning no
