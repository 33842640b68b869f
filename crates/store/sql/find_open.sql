-- What is to be known of a delivery that becomes final and is not at hand; nothing, if it is so already. ("returning" would
-- cost every such update a journal and a table of its own.)
-- Index: the primary key.
select event_seq, bytes
from deliveries
where seq = ?1 and stage = 0
