-- Its routes with it.
-- Index: routes_of_destination.
delete from tidegate.routes
where destination_no = $1
