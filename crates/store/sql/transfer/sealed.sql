-- What is sealed: the secrets of destinations.
-- Index: the primary key.
select secrets
from destinations
where length(secrets) > 0
order by no
