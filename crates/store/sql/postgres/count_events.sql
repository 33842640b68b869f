-- How many of the next so many events of an account, newest first, have a type and a key; how many there were, and the last one's
-- number. Null: any.
-- Index: events_by_account.
select count(*) filter (
    where ($3::bigint is null or type_no = $3::bigint) and ($4::text is null or ordering_key = $4::text)
  ), count(*), min(seq)
from (
  select seq, type_no, ordering_key
  from tidegate.events
  where account_no = $1 and seq < $2 and seq >= $5
  order by seq desc
  limit $6
) part
