-- The settings that make a commit durable, and the server's version.
-- Index: none is looked at.
select current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
  current_setting('server_version_num')::bigint
