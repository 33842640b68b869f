-- A group begins: says that it is the next one of this seat, and keeps everybody from taking slots from its node until its
-- end. Nothing changes if somebody else sits there. A node that is frozen within a group must not keep others from its slots.
-- Index: the primary key.
update tidegate.seats
set sequence = greatest(sequence, $3), groups = $4
where seat = $1 and node_no = $2
returning set_config('idle_in_transaction_session_timeout', '5s', true)
