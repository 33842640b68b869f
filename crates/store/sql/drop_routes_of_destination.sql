-- Its routes with it.
-- Index: routes_of_destination.
delete from routes
where destination_no = ?1
