-- What a lane's timeouts have learned.
-- Index: the primary key.
insert or replace into lane_timeouts (destination_no, timeouts)
values (?1, ?2)
