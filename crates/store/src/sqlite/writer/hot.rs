//! Statements that run for each event: prepared once, for as long as the writer lives.

use rusqlite::{Connection, Statement};

use crate::sqlite::sql;

pub(super) struct Hot<'c> {
    pub(super) begin: Statement<'c>,
    pub(super) commit: Statement<'c>,
    pub(super) accept_event: Statement<'c>,
    pub(super) accept_delivery: Statement<'c>,
    pub(super) find_open: Statement<'c>,
    pub(super) settle_open: Statement<'c>,
    pub(super) settle_final: Statement<'c>,
    pub(super) add_attempt: Statement<'c>,
    pub(super) save_lane: Statement<'c>,
}

impl<'c> Hot<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: connection.prepare("begin immediate")?,
            commit: connection.prepare("commit")?,
            accept_event: connection.prepare(sql::ACCEPT_EVENT)?,
            accept_delivery: connection.prepare(sql::ACCEPT_DELIVERY)?,
            find_open: connection.prepare(sql::FIND_OPEN)?,
            settle_open: connection.prepare(sql::SETTLE_OPEN)?,
            settle_final: connection.prepare(sql::SETTLE_FINAL)?,
            add_attempt: connection.prepare(sql::ADD_ATTEMPT)?,
            save_lane: connection.prepare(sql::SAVE_LANE)?,
        })
    }
}
