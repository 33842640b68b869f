-- Its keys with it.
-- Index: api_keys_of_account.
delete from tidegate.api_keys
where account_no = $1
