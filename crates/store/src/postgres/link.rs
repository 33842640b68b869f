//! One connection, used by one thread: statements go out together and come back in their order.
//!
//! Every statement is sent whole and unnamed, with the types of its values (`query_typed`): parse, bind and execute are one
//! message and need no earlier answer. A pooler in transaction mode may hand each transaction to another server connection,
//! where a statement that was prepared before would not be known; so none is, and nothing else is kept in a session.
//! The price is that the server plans each statement anew; groups make that small.

use std::cell::{Cell as Flag, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio::runtime::Runtime;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::address::Address;
use super::failure::Failure;
use super::value::typed;
use crate::source::{Fault, Value};

/// How long an answer may take before the connection is given up: the other side is gone without a word.
const PATIENCE: Duration = Duration::from_secs(30);
/// Begins a look at one and the same commit.
const BEGIN_LOOK: &str = "begin isolation level repeatable read read only";

/// A statement with its values.
pub(crate) struct Asked<'a> {
    pub(crate) sql: &'a str,
    pub(crate) values: Vec<Param<'a>>,
}

/// A value of a statement, with its type.
pub(crate) type Param<'a> = (Box<dyn ToSql + Sync + Send + 'a>, Type);

/// What a statement gave.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<Row>,
    /// Rows that it changed.
    pub(crate) changed: u64,
}

/// Whether statements belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    None,
    /// It is begun with the next look.
    ToBegin,
    /// A connection that is lost now is not made anew: what was begun on it is gone.
    Begun,
}

/// A connection that is made anew when it is lost, but not within a transaction.
pub(crate) struct Link {
    runtime: Runtime,
    address: Address,
    client: RefCell<Option<Client>>,
    transaction: Flag<Transaction>,
    patience: Duration,
}

impl Link {
    /// A connection, not made yet.
    pub(super) fn new(address: Address) -> Result<Self, Failure> {
        Self::with_patience(address, PATIENCE)
    }

    /// The same, of which an answer may take so long.
    pub(super) fn with_patience(address: Address, patience: Duration) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Unavailable(error.to_string()))?;
        let (client, transaction) = (RefCell::new(None), Flag::new(Transaction::None));
        Ok(Self { runtime, address, client, transaction, patience })
    }

    /// Makes the connection if there is none.
    pub(super) fn connect(&self) -> Result<(), Failure> {
        let mut client = self.client.borrow_mut();
        if client.as_ref().is_none_or(Client::is_closed) {
            *client = None;
            let made = self
                .runtime
                .block_on(async { tokio::time::timeout(self.patience, self.address.connect()).await });
            let late = |_| Failure::Unavailable("no connection was made in time".to_owned());
            *client = Some(made.map_err(late)??);
        }
        Ok(())
    }

    /// Gives the connection up: whatever was begun on it is rolled back by the server.
    pub(super) fn cut(&self) {
        *self.client.borrow_mut() = None;
        self.transaction.set(Transaction::None);
    }

    /// What was sent has begun a transaction.
    pub(super) fn begun(&self) {
        self.transaction.set(Transaction::Begun);
    }

    /// What was sent has ended it.
    pub(super) fn ended(&self) {
        self.transaction.set(Transaction::None);
    }

    /// One transaction: whatever fails, nothing of it is left.
    pub(super) fn transact<T>(
        &self,
        begin: &str,
        run: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.batch(begin)?;
        self.begun();
        let done = run().and_then(|done| self.batch("commit").map(|()| done));
        match done {
            Ok(_) => self.ended(),
            Err(_) => self.cut(),
        }
        done
    }

    /// Whether the connection is there, as far as anybody knows.
    fn is_cut(&self) -> bool {
        self.client.borrow().as_ref().is_none_or(Client::is_closed)
    }

    /// Sends statements together and waits for all answers. The first fault is what counts: after it, the server answers the
    /// rest of a transaction with nothing but its being aborted.
    pub(super) fn send(&self, asked: &[Asked<'_>]) -> Result<Vec<Answer>, Failure> {
        let answers = self.with_client(|client| {
            self.runtime.block_on(async {
                let all = in_order(asked.iter().map(|asked| ask(client, asked)).collect());
                tokio::time::timeout(self.patience, all).await
            })
        })?;
        let answers = match answers {
            Ok(answers) => answers.into_iter().collect::<Result<_, _>>().map_err(Failure::from),
            Err(_) => Err(Failure::Lost("no answer came in time".to_owned())),
        };
        if matches!(answers, Err(Failure::Lost(_))) {
            *self.client.borrow_mut() = None;
        }
        answers
    }

    /// One statement.
    pub(super) fn ask(&self, sql: &str, values: Vec<Param<'_>>) -> Result<Answer, Failure> {
        self.send(&[Asked { sql, values }]).map(|mut answers| answers.swap_remove(0))
    }

    /// Several statements without values, as they stand in a file.
    pub(super) fn batch(&self, sql: &str) -> Result<(), Failure> {
        self.with_client(|client| self.runtime.block_on(client.batch_execute(sql)))?.map_err(Failure::from)
    }

    /// All rows of a statement, one after the other: as many as there are, and few of them in memory.
    pub(super) fn each_row<E>(
        &self,
        sql: &str,
        mut each: impl FnMut(&Row) -> Result<(), E>,
    ) -> Result<Result<(), E>, Failure> {
        let late = |_| Failure::Lost("no answer came in time".to_owned());
        self.with_client(|client| {
            self.runtime.block_on(async {
                let nothing: [(&(dyn ToSql + Sync), Type); 0] = [];
                let asked = tokio::time::timeout(self.patience, client.query_typed_raw(sql, nothing));
                let mut rows = std::pin::pin!(asked.await.map_err(late)??);
                loop {
                    match tokio::time::timeout(self.patience, rows.try_next()).await.map_err(late)?? {
                        None => return Ok(Ok(())),
                        Some(row) => {
                            if let Err(error) = each(&row) {
                                return Ok(Err(error));
                            }
                        }
                    }
                }
            })
        })?
    }

    fn with_client<T>(&self, run: impl FnOnce(&Client) -> T) -> Result<T, Failure> {
        if self.transaction.get() == Transaction::Begun && self.is_cut() {
            return Err(Failure::Lost("the connection is gone, and what was begun on it".to_owned()));
        }
        self.connect()?;
        let client = self.client.borrow();
        client.as_ref().map(run).ok_or_else(|| Failure::Unavailable("there is no connection".to_owned()))
    }

    /// A statement that only looks. A connection that was lost meanwhile is made anew once.
    pub(crate) fn look(&self, sql: &'static str, values: &[Value<'_>]) -> Result<Vec<Row>, Failure> {
        self.look_each(sql, &[values.to_vec()]).map(|mut rows| rows.swap_remove(0))
    }

    /// The same statement with one set of values after the other.
    pub(crate) fn look_each(
        &self,
        sql: &'static str,
        asked: &[Vec<Value<'_>>],
    ) -> Result<Vec<Vec<Row>>, Failure> {
        let state = self.transaction.get();
        let begin = (state == Transaction::ToBegin).then(|| Asked { sql: BEGIN_LOOK, values: Vec::new() });
        let before = usize::from(begin.is_some());
        let looks = asked.iter().map(|values| Asked { sql, values: typed(values) });
        let statements: Vec<Asked<'_>> = begin.into_iter().chain(looks).collect();
        let answers = match self.send(&statements) {
            Err(Failure::Lost(_)) if state != Transaction::Begun => self.send(&statements),
            answers => answers,
        };
        if state == Transaction::ToBegin {
            self.begun();
        }
        Ok(answers?.into_iter().skip(before).map(|answer| answer.rows).collect())
    }

    /// Several looks at one and the same commit: a transaction, begun together with the first of them.
    pub(crate) fn at_once<T>(
        &self,
        look: impl FnOnce() -> crate::source::Result<T>,
    ) -> crate::source::Result<T> {
        self.transaction.set(Transaction::ToBegin);
        let found = look();
        let begun = self.transaction.replace(Transaction::None) == Transaction::Begun;
        if begun && !self.is_cut() {
            let end = if found.is_ok() { "commit" } else { "rollback" };
            if let Err(failure) = self.ask(end, Vec::new()) {
                self.cut();
                return found.and(Err(Fault::Postgres(failure)));
            }
        }
        found
    }
}

/// One statement, sent when it is first polled.
async fn ask(client: &Client, asked: &Asked<'_>) -> Result<Answer, tokio_postgres::Error> {
    let values = asked.values.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone()));
    let stream = client.query_typed_raw(asked.sql, values).await?;
    let mut stream = std::pin::pin!(stream);
    let mut rows = Vec::new();
    while let Some(row) = stream.try_next().await? {
        rows.push(row);
    }
    Ok(Answer { rows, changed: stream.rows_affected().unwrap_or(0) })
}

/// Polls all of them in their order, so that they are sent in their order, and waits for all.
async fn in_order<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in waiting.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
