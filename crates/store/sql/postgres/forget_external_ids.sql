-- External ids that count no longer.
-- Index: external_ids_by_time.
delete from tidegate.external_ids
where (account_no, type_no, external_id) in (
  select account_no, type_no, external_id from tidegate.external_ids where at < $1 order by at limit $2
)
