-- Destinations, also those that are deleted. Secrets stay sealed.
-- Index: the primary key.
select no, id, account_no, external_id, document, secrets, version, created_at, updated_at, deleted
from destinations
where no > ?1
order by no
