//! Lists: a page, and an opaque cursor for the next one.
//!
//! A list without filters takes a [`ListQuery`]; a query type with some names `limit`, `cursor` and `total` itself (so that
//! unknown parameters are refused), and hands them to [`PageParams::new`].

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tidegate_store::AccountNo;
use utoipa::{IntoParams, ToSchema};

use super::error::ApiError;

/// Items of a page where nobody says otherwise.
pub(crate) const DEFAULT_LIMIT: usize = 25;
/// Items of a page at most.
pub(crate) const MAX_LIMIT: usize = 200;
/// Above this a total is not counted out.
pub(crate) const MAX_TOTAL: u64 = 10_000;
/// A cursor is a place in the list, and so many bytes of a checksum over it, the list and the account.
const CHECK: usize = 8;

/// The parameters of a list that has no others.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Items of a page: 25 if not said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// Whether to count all of them.
    total: Option<bool>,
}

impl ListQuery {
    /// Checks it, for this list.
    pub(crate) fn page(&self, list: Cursor) -> Result<PageParams, ApiError> {
        PageParams::new(list, self.limit, self.cursor.as_deref(), self.total)
    }
    /// The same for a list by names: also the name after which the page begins.
    pub(crate) fn page_by_name(&self, list: Cursor) -> Result<(PageParams, Option<String>), ApiError> {
        let after = self.cursor.as_deref().map(|text| list.decode_name(text)).transpose()?;
        Ok((PageParams::new(list, self.limit, None, self.total)?, after))
    }
}

/// Which page is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageParams {
    /// At most so many items.
    pub(crate) limit: usize,
    /// After this place in the list: what [`Cursor::encode`] was given.
    pub(crate) cursor: Option<u128>,
    /// Whether the total is wanted.
    pub(crate) total: bool,
}

impl PageParams {
    /// Checks what the query says. A cursor of another list or account, or none of ours, is 422.
    pub(crate) fn new(
        list: Cursor,
        limit: Option<u32>,
        cursor: Option<&str>,
        total: Option<bool>,
    ) -> Result<Self, ApiError> {
        let limit = limit.map_or(DEFAULT_LIMIT, |limit| limit as usize);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(ApiError::invalid("limit", format!("`limit` is {limit}; allowed: 1 to {MAX_LIMIT}")));
        }
        let cursor = cursor.map(|text| list.decode(text)).transpose()?;
        Ok(Self { limit, cursor, total: total.unwrap_or(false) })
    }
}

/// The cursors of one list of one account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    /// Which list, e.g. `deliveries`.
    pub(crate) list: &'static str,
    /// Whose.
    pub(crate) account: AccountNo,
}

impl Cursor {
    /// The cursor for what comes after `position`.
    pub(crate) fn encode(self, position: u128) -> String {
        self.seal(&position.to_be_bytes())
    }

    /// The position in a cursor that [`encode`](Self::encode) made for this list.
    pub(crate) fn decode(self, text: &str) -> Result<u128, ApiError> {
        let position = self.open(text)?.try_into().map_err(|_| refused())?;
        Ok(u128::from_be_bytes(position))
    }

    /// The cursor for what comes after `name`, in a list by names.
    pub(crate) fn encode_name(self, name: &str) -> String {
        self.seal(name.as_bytes())
    }

    /// The name in a cursor that [`encode_name`](Self::encode_name) made for this list.
    pub(crate) fn decode_name(self, text: &str) -> Result<String, ApiError> {
        String::from_utf8(self.open(text)?).map_err(|_| refused())
    }

    fn seal(self, place: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode([place, &self.check(place)].concat())
    }

    fn open(self, text: &str) -> Result<Vec<u8>, ApiError> {
        let mut bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let length = bytes.len().checked_sub(CHECK).ok_or_else(refused)?;
        let check = bytes.split_off(length);
        if check == self.check(&bytes) { Ok(bytes) } else { Err(refused()) }
    }

    fn check(self, place: &[u8]) -> [u8; CHECK] {
        let mut hash = Sha256::new();
        hash.update(self.list);
        hash.update(self.account.0.to_be_bytes());
        hash.update(place);
        let hash = hash.finalize();
        std::array::from_fn(|place| hash[place])
    }
}

fn refused() -> ApiError {
    ApiError::invalid("cursor", "`cursor` must be the `next_cursor` of this list")
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListAnswer<T> {
    /// What is on it. A page may be short while there is a next one.
    pub(crate) items: Vec<T>,
    /// For the next page; null on the last one.
    #[schema(required = true)]
    pub(crate) next_cursor: Option<String>,
    /// All there are, where asked for: exact, or null above 10,000.
    #[serde(skip_serializing_if = "Total::is_unasked")]
    #[schema(value_type = Option<u64>, required = false)]
    pub(crate) total: Total,
}

/// How many there are in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Total {
    /// Nobody asked.
    #[default]
    Unasked,
    /// More than 10,000.
    Many,
    /// So many.
    Exactly(u64),
}

impl Total {
    /// From a count that stops above [`MAX_TOTAL`].
    pub(crate) fn counted(count: u64) -> Self {
        if count > MAX_TOTAL { Self::Many } else { Self::Exactly(count) }
    }
    /// How many, if that was counted.
    pub(crate) const fn number(self) -> Option<u64> {
        match self {
            Self::Exactly(count) => Some(count),
            Self::Unasked | Self::Many => None,
        }
    }
    fn is_unasked(&self) -> bool {
        *self == Self::Unasked
    }
}

impl Serialize for Total {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unasked | Self::Many => serializer.serialize_none(),
            Self::Exactly(count) => serializer.serialize_u64(*count),
        }
    }
}

/// A page of a list that is in memory, sorted by `position`, the greatest first.
pub(crate) fn page_of<E, T>(
    entries: impl IntoIterator<Item = E>,
    position: impl Fn(&E) -> u128,
    params: PageParams,
    list: Cursor,
    show: impl Fn(E) -> T,
) -> ListAnswer<T> {
    let mut entries: Vec<E> = entries.into_iter().collect();
    let total = if params.total { Total::counted(entries.len() as u64) } else { Total::Unasked };
    entries.retain(|entry| params.cursor.is_none_or(|cursor| position(entry) < cursor));
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(position(entry)));
    let more = entries.len() > params.limit;
    entries.truncate(params.limit);
    let last = entries.last().map(&position);
    let next_cursor = last.filter(|_| more).map(|last| list.encode(last));
    ListAnswer { items: entries.into_iter().map(show).collect(), next_cursor, total }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Cursor = Cursor { list: "things", account: AccountNo(1) };

    #[test]
    fn a_cursor_is_good_for_its_list_and_account_only() {
        let cursor = LIST.encode(77);
        assert_eq!(LIST.decode(&cursor).unwrap(), 77);
        assert!(Cursor { list: "others", ..LIST }.decode(&cursor).is_err());
        assert!(Cursor { account: AccountNo(2), ..LIST }.decode(&cursor).is_err());
        for forged in ["", "x", "AAAA", &"A".repeat(32), &cursor[1..]] {
            assert!(LIST.decode(forged).is_err(), "{forged}");
        }
    }

    #[test]
    fn pages_lead_through_the_whole_list() {
        let entries: Vec<u128> = (0..60).collect();
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let params = PageParams::new(LIST, None, cursor.as_deref(), Some(true)).unwrap();
            let page = page_of(entries.clone(), |entry| *entry, params, LIST, |entry| entry);
            assert_eq!(page.total, Total::Exactly(60));
            seen.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..60).rev().collect::<Vec<u128>>());
        assert!(PageParams::new(LIST, Some(0), None, None).is_err());
        assert!(PageParams::new(LIST, Some(201), None, None).is_err());
    }
}
