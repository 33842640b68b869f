-- Deliveries that were stored since the last time, filed by destination: in order, so that each page is changed once.
-- Index: the primary key.
insert into deliveries_filed (destination_no, seq)
select destination_no, seq
from deliveries
where seq > ?1 and seq <= ?2
order by destination_no, seq
