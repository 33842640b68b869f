-- Its routes with it.
-- Index: routes_of_account.
delete from tidegate.routes
where account_no = $1
