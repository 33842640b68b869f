-- Events of the outbox that are being accepted, if they are still there: nobody else accepts them until the commit.
-- Index: the primary key.
select no
from tidegate.outbox
where no = any($1::bigint[]) and error is null
order by no
for update
