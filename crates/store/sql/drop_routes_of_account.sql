-- Its routes with it.
-- Index: routes_of_account.
delete from routes
where account_no = ?1
