//! One connection, used by one thread: statements go out together and come back in their order.
//!
//! A statement is sent whole and unnamed, with the types of its values (`query_typed`): parse, bind and execute are one
//! message and need no earlier answer. A pooler in transaction mode may hand each transaction to another server connection,
//! where a statement that was prepared before would not be known, or be another one; so nothing is kept in a session.
//! The price is that the server plans each statement anew. Those who ask the same all the time (`Habit::Fixed`) have that spared
//! where a connection is known to lead straight to the server: there each statement is planned once.

use std::cell::{Cell as Flag, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

use super::address::Address;
use super::failure::Failure;
use super::value::typed;
use crate::source::{Fault, Value};

/// How long an answer may take before the connection is given up: the other side is gone without a word.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a connection may take to be made and understood.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
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

/// What is asked over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    /// Many different statements, each to be planned for its values.
    Various,
    /// The same statements all the time, each served by its index whatever its values are.
    Fixed,
}

/// A connection that is made anew when it is lost, but not within a transaction.
pub(crate) struct Link {
    runtime: Runtime,
    address: Address,
    habit: Habit,
    session: RefCell<Option<Session>>,
    transaction: Flag<Transaction>,
    patience: Duration,
}

/// A connection that is made.
struct Session {
    client: Client,
    /// How many storms there had been when it was made.
    storms: u64,
    /// The statements that the server keeps for it, where it does.
    kept: Option<RefCell<Kept>>,
}

/// Statements by their text and the types of their values.
type Kept = HashMap<String, Vec<(Vec<Type>, Statement)>>;

impl Link {
    /// A connection, not made yet.
    pub(super) fn new(address: Address) -> Result<Self, Failure> {
        Self::with(address, Habit::Various, PATIENCE)
    }

    /// The same for a habit.
    pub(super) fn of(habit: Habit, address: Address) -> Result<Self, Failure> {
        Self::with(address, habit, PATIENCE)
    }

    /// The same, with the time that an answer may take.
    pub(super) fn with(address: Address, habit: Habit, patience: Duration) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Unavailable(error.to_string()))?;
        let (session, transaction) = (RefCell::new(None), Flag::new(Transaction::None));
        Ok(Self { runtime, address, habit, session, transaction, patience })
    }

    /// Makes the connection if there is none.
    pub(super) fn connect(&self) -> Result<(), Failure> {
        let old = |session: &Session| session.storms != self.address.weather.storms();
        let is_old =
            self.transaction.get() != Transaction::Begun && self.session.borrow().as_ref().is_some_and(old);
        if is_old || self.is_cut() {
            self.lose();
            let patience = self.patience.min(CONNECT_PATIENCE);
            let made =
                self.runtime.block_on(async { tokio::time::timeout(patience, self.make_session()).await });
            let late = |_| Failure::Unavailable("no connection was made in time".to_owned());
            self.session.replace(Some(made.map_err(late)??));
        }
        Ok(())
    }

    async fn make_session(&self) -> Result<Session, Failure> {
        let storms = self.address.weather.storms();
        if self.habit == Habit::Fixed
            && let Some(client) = self.address.connect_straight().await?
        {
            return Ok(Session { client, storms, kept: Some(RefCell::default()) });
        }
        Ok(Session { client: self.address.connect().await?, storms, kept: None })
    }

    fn lose(&self) {
        self.session.replace(None);
    }

    /// Gives the connection up: whatever was begun on it is rolled back by the server.
    pub(super) fn cut(&self) {
        self.lose();
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
        self.session.borrow().as_ref().is_none_or(|session| session.client.is_closed())
    }

    /// Sends statements together and waits for all answers. The first fault is what counts: after it, the server answers the
    /// rest of a transaction with nothing but its being aborted.
    pub(super) fn send(&self, asked: &[Asked<'_>]) -> Result<Vec<Answer>, Failure> {
        let answers = self.with_session(|session| {
            self.runtime.block_on(async {
                tokio::select! {
                    answers = session.ask_all(asked) => Some(answers),
                    () = tokio::time::sleep(self.patience) => {
                        // Who asks for this and that may have asked for too much.
                        if self.habit == Habit::Fixed {
                            self.address.weather.storm();
                        }
                        None
                    }
                    () = self.address.weather.passes_over() => None,
                }
            })
        })?;
        let late = || Err(Failure::Lost("no answer came in time".to_owned()));
        // What the server keeps may have been made for another schema than there is now.
        let outdated =
            matches!(&answers, Some(Err(error)) if error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED));
        let answers = answers.map_or_else(late, |answers| answers.map_err(Failure::from));
        if outdated || matches!(answers, Err(Failure::Lost(_))) {
            self.lose();
        }
        answers
    }

    /// One statement.
    pub(super) fn ask(&self, sql: &str, values: Vec<Param<'_>>) -> Result<Answer, Failure> {
        self.send(&[Asked { sql, values }]).map(|mut answers| answers.swap_remove(0))
    }

    /// Several statements without values, as they stand in a file.
    pub(super) fn batch(&self, sql: &str) -> Result<(), Failure> {
        let done = self.with_session(|session| self.runtime.block_on(session.client.batch_execute(sql)))?;
        done.map_err(Failure::from)
    }

    /// All rows of a statement, one after the other: as many as there are, and few of them in memory.
    pub(super) fn each_row<E>(
        &self,
        sql: &str,
        mut each: impl FnMut(&Row) -> Result<(), E>,
    ) -> Result<Result<(), E>, Failure> {
        let late = |_| Failure::Lost("no answer came in time".to_owned());
        self.with_session(|session| {
            self.runtime.block_on(async {
                let nothing: [(&(dyn ToSql + Sync), Type); 0] = [];
                let asked = tokio::time::timeout(self.patience, session.client.query_typed_raw(sql, nothing));
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

    fn with_session<T>(&self, run: impl FnOnce(&Session) -> T) -> Result<T, Failure> {
        if self.transaction.get() == Transaction::Begun && self.is_cut() {
            return Err(Failure::Lost("the connection is gone, and what was begun on it".to_owned()));
        }
        self.connect()?;
        let session = self.session.borrow();
        session.as_ref().map(run).ok_or_else(|| Failure::Unavailable("there is no connection".to_owned()))
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

impl Session {
    /// All answers, or the first fault.
    async fn ask_all(&self, asked: &[Asked<'_>]) -> Result<Vec<Answer>, tokio_postgres::Error> {
        let mut statements = Vec::with_capacity(asked.len());
        for asked in asked {
            statements.push(self.prepared(asked).await?);
        }
        let all = asked.iter().zip(&statements).map(|(asked, statement)| self.ask(asked, statement.as_ref()));
        in_order(all.collect()).await.into_iter().collect()
    }

    /// What the server keeps of a statement, where it keeps any: made now, if this is the first time. Those without values begin
    /// and end something, or are seldom.
    async fn prepared(&self, asked: &Asked<'_>) -> Result<Option<Statement>, tokio_postgres::Error> {
        let Some(kept) = self.kept.as_ref().filter(|_| !asked.values.is_empty()) else { return Ok(None) };
        let same = |types: &[Type]| types.iter().eq(asked.values.iter().map(|(_, kind)| kind));
        let find = |kept: &Kept| {
            let found = kept.get(asked.sql)?.iter().find(|(types, _)| same(types))?;
            Some(found.1.clone())
        };
        let found = find(&kept.borrow());
        if found.is_some() {
            return Ok(found);
        }
        let types: Vec<Type> = asked.values.iter().map(|(_, kind)| kind.clone()).collect();
        let made = self.client.prepare_typed(asked.sql, &types).await?;
        kept.borrow_mut().entry(asked.sql.to_owned()).or_default().push((types, made.clone()));
        Ok(Some(made))
    }

    /// One statement, sent when it is first polled.
    async fn ask(
        &self,
        asked: &Asked<'_>,
        statement: Option<&Statement>,
    ) -> Result<Answer, tokio_postgres::Error> {
        let values = asked.values.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone()));
        let stream = match statement {
            Some(statement) => self.client.query_raw(statement, values.map(|(value, _)| value)).await?,
            None => self.client.query_typed_raw(asked.sql, values).await?,
        };
        let mut stream = std::pin::pin!(stream);
        let mut rows = Vec::new();
        while let Some(row) = stream.try_next().await? {
            rows.push(row);
        }
        Ok(Answer { rows, changed: stream.rows_affected().unwrap_or(0) })
    }
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
