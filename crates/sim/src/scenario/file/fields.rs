//! Reads a TOML document field by field and keeps every problem it meets, with the line it is on.
//!
//! A derived deserialiser stops at the first problem. Whoever writes a file wants all of them, and each must name the
//! field, what stands there and what may. So tables are read by asking for their fields by name; what was never asked
//! for is a problem, too. Which fields there are, and what they mean, is for the callers to know.

use std::cell::RefCell;

use tidegate_core::invalid::Invalid;
use tidegate_core::time::{Millis, Timestamp};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problems::{Problem, Problems};
use super::units::{LENGTH_RULE, length};

/// What an instant looks like, in the words of an error.
pub(super) const INSTANT_RULE: &str = "a time such as \"2026-03-07T18:00:00Z\"";

/// The document, and what was found wrong with it so far.
pub(super) struct Document<'a> {
    text: &'a str,
    found: RefCell<Vec<Problem>>,
}

impl<'a> Document<'a> {
    /// Reads `text` as TOML and hands its fields to `read`. The result counts only if nothing was found wrong.
    pub(super) fn read<T>(
        text: &str,
        read: impl FnOnce(&mut Fields<'_>) -> Option<T>,
    ) -> Result<T, Problems> {
        let (root, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            return Err(Problems::syntax(text, &errors));
        }
        let document = Document { text, found: RefCell::default() };
        let value = document.fields(root.get_ref(), 0, String::new(), read);
        Problems::none_of(document.found.into_inner())?;
        Ok(value.expect("a field that is missing or wrong was found so"))
    }

    fn fields<'t, T>(
        &'t self,
        table: &'t DeTable<'t>,
        offset: usize,
        path: String,
        read: impl FnOnce(&mut Fields<'t>) -> Option<T>,
    ) -> Option<T>
    where
        'a: 't,
    {
        let mut fields = Fields { document: self, table, offset, path, asked: Vec::new(), ambiguous: false };
        let value = read(&mut fields);
        fields.refuse_unknown();
        value
    }

    fn add(&self, offset: usize, fault: Invalid) {
        self.found.borrow_mut().push(Problem::at(self.text, offset, fault));
    }
}

/// One table of the document.
pub(super) struct Fields<'a> {
    document: &'a Document<'a>,
    table: &'a DeTable<'a>,
    offset: usize,
    path: String,
    asked: Vec<&'static str>,
    ambiguous: bool,
}

impl<'a> Fields<'a> {
    /// Whether the field is there. Asking so does not make it a known one.
    pub(super) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// The same for a field that belongs here and need not be there.
    pub(super) fn given(&mut self, name: &'static str) -> bool {
        self.value(name).is_some()
    }

    /// A problem with one of the fields; `fault` names it from here.
    pub(super) fn refuse(&self, fault: Invalid) {
        let first = fault.field.split(['.', '[']).next().unwrap_or_default();
        let offset = self.table.get_key_value(first).map_or(self.offset, |(key, _)| key.span().start);
        let fault = if self.path.is_empty() { fault } else { fault.under(&self.path) };
        self.document.add(offset, fault);
    }

    /// The good part of a result; the bad part becomes a problem.
    pub(super) fn accept<T>(&self, result: Result<T, Invalid>) -> Option<T> {
        result.map_err(|fault| self.refuse(fault)).ok()
    }

    /// The field must be there, and not an empty list. (What else it holds is for others to say.)
    pub(super) fn require(&self, name: &'static str, allowed: &str) {
        match self.table.get(name).map(Spanned::get_ref) {
            None => self.refuse(Invalid::missing(name, allowed)),
            Some(DeValue::Array(items)) if items.is_empty() => {
                self.refuse(Invalid::new(name, "an empty list", allowed));
            }
            Some(_) => {}
        }
    }

    /// Which one of several fields is there: exactly one must be, since each stands for a form of its own.
    pub(super) fn form(&mut self, names: &[&'static str]) -> Option<&'static str> {
        let given: Vec<&str> = names.iter().copied().filter(|name| self.has(name)).collect();
        if let [name] = given[..] {
            return names.iter().copied().find(|known| *known == name);
        }
        self.leave_unknown();
        let what = match &given[..] {
            [] => "a table with none of them".to_owned(),
            several => format!("a table with {}", several.join(" and ")),
        };
        self.refuse(Invalid::new("", what, format!("exactly one of {}", names.join(", "))));
        None
    }

    /// Which fields belong here cannot be told, because of a problem that was named: none is refused for being here.
    pub(super) fn leave_unknown(&mut self) {
        self.ambiguous = true;
    }

    /// A text.
    pub(super) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        match self.value(name)?.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            _ => self.mistyped(name, "a text in quotes"),
        }
    }

    /// A text that is shown in tables and pictures: not empty, not long, one line.
    pub(super) fn title(&mut self, name: &'static str, most: usize) -> Option<String> {
        let text = self.text(name)?;
        let fits = (1..=most).contains(&text.chars().count()) && !text.chars().any(char::is_control);
        if !fits {
            let allowed = format!("1 to {most} characters on one line");
            self.refuse(Invalid::new(name, format_args!("\"{text}\""), allowed));
        }
        fits.then(|| text.to_owned())
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.refuse(Invalid::new(name, format_args!("\"{text}\""), allowed.join(", ")));
        }
        found
    }

    /// A whole number, zero or more. Its range is checked by whoever knows it, and `allowed` says what it is.
    pub(super) fn count(&mut self, name: &'static str, allowed: &str) -> Option<u64> {
        let read = whole(self.value(name)?.get_ref());
        read.or_else(|| self.mistyped(name, allowed))
    }

    /// A whole number in a range.
    pub(super) fn whole(&mut self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        let number = self.value(name)?;
        let read = whole(number.get_ref()).filter(|number| (least..=most).contains(number));
        read.or_else(|| self.mistyped(name, &format!("a whole number, {least} to {most}")))
    }

    /// The same for what is counted in 32 bits.
    pub(super) fn whole_u32(&mut self, name: &'static str, least: u32, most: u32) -> Option<u32> {
        self.whole(name, least.into(), most.into()).and_then(|number| u32::try_from(number).ok())
    }

    /// A number in a range, whole or not.
    pub(super) fn number(&mut self, name: &'static str, least: f64, most: f64) -> Option<f64> {
        let number = self.value(name)?;
        let read = number_of(number.get_ref()).filter(|number| (least..=most).contains(number));
        read.or_else(|| self.mistyped(name, &format!("a number, {least} to {most}")))
    }

    /// A number, whole or not. Its range is checked by whoever knows it, and `allowed` says what it is.
    pub(super) fn any_number(&mut self, name: &'static str, allowed: &str) -> Option<f64> {
        number_of(self.value(name)?.get_ref()).or_else(|| self.mistyped(name, allowed))
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        match self.value(name)?.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.mistyped(name, "true or false"),
        }
    }

    /// A length of time in a range.
    pub(super) fn length(&mut self, name: &'static str, least: Millis, most: Millis) -> Option<Millis> {
        let span = match self.value(name)?.get_ref() {
            DeValue::String(text) => length(text),
            _ => None,
        };
        let Some(span) = span else {
            return self.mistyped(name, &format!("{LENGTH_RULE}, {least} to {most}"));
        };
        if span < least || span > most {
            return self.mistyped(name, &format!("{least} to {most}"));
        }
        Some(span)
    }

    /// An instant, written in full, with quotes or without.
    pub(super) fn instant(&mut self, name: &'static str) -> Option<Timestamp> {
        let at = instant_of(self.value(name)?.get_ref());
        at.or_else(|| self.mistyped(name, INSTANT_RULE))
    }

    /// An instant, written in full or as a length of time after `start`.
    pub(super) fn moment(&mut self, name: &'static str, start: Timestamp) -> Option<Timestamp> {
        let value = self.value(name)?.get_ref();
        let after = match value {
            DeValue::String(text) => length(text).map(|after| start + after),
            _ => None,
        };
        let allowed = || format!("{INSTANT_RULE}, or after how long: \"6h\"");
        instant_of(value).or(after).or_else(|| self.mistyped(name, &allowed()))
    }

    /// A time of the day, with quotes or without.
    pub(super) fn clock(&mut self, name: &'static str) -> Option<jiff::civil::Time> {
        let value = self.value(name)?.get_ref();
        let read = match value {
            DeValue::String(text) => text.parse().ok().filter(|_| text.contains(':')),
            DeValue::Datetime(time) if time.date.is_none() => time.to_string().parse().ok(),
            _ => None,
        };
        read.or_else(|| self.mistyped(name, "a time of the day such as \"02:00\""))
    }

    /// A list, item by item.
    pub(super) fn list<T>(
        &mut self,
        name: &'static str,
        allowed: &str,
        read: impl Fn(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let DeValue::Array(items) = self.value(name)?.get_ref() else {
            return self.mistyped(name, &format!("a list of which each item is {allowed}"));
        };
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match read(item.get_ref()) {
                Some(item) => list.push(item),
                None => self.refuse(Invalid::new("", self.written(item), allowed).at(index).under(name)),
            }
        }
        (list.len() == items.len()).then_some(list)
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        self.list(name, "a text in quotes", |item| item.as_str().map(str::to_owned))
    }

    /// A text, or a list of them.
    pub(super) fn one_or_more(&mut self, name: &'static str, allowed: &str) -> Option<Vec<&'a str>> {
        match self.value(name)?.get_ref() {
            DeValue::String(text) => Some(vec![text.as_ref()]),
            DeValue::Array(_) => self.list(name, allowed, DeValue::as_str),
            _ => self.mistyped(name, allowed),
        }
    }

    /// A list of whole numbers. Their range is checked by whoever knows it, and `allowed` says what it is.
    pub(super) fn counts(&mut self, name: &'static str, allowed: &str) -> Option<Vec<u64>> {
        self.list(name, allowed, whole)
    }

    /// A table.
    pub(super) fn table<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields<'a>) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(name)?;
        match value.get_ref() {
            DeValue::Table(table) => {
                self.document.fields(table, value.span().start, self.path_of(name), read)
            }
            _ => self.mistyped(name, "a table: { … }"),
        }
    }

    /// A list of tables. Those with a problem are left out.
    pub(super) fn tables<T>(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(&mut Fields<'a>) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = self.value(name) else { return Vec::new() };
        let DeValue::Array(items) = value.get_ref() else {
            self.mistyped::<()>(name, &format!("a list of tables: [[{name}]]"));
            return Vec::new();
        };
        let mut tables = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", self.path_of(name));
            match item.get_ref() {
                DeValue::Table(table) => {
                    tables.extend(self.document.fields(table, item.span().start, path, &mut read));
                }
                _ => {
                    self.refuse(Invalid::new("", self.written(item), "a table: { … }").at(index).under(name));
                }
            }
        }
        tables
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn value(&mut self, name: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.asked.push(name);
        self.table.get(name)
    }

    /// What stands there is of no use: `allowed` says what would be.
    fn mistyped<T>(&self, name: &str, allowed: &str) -> Option<T> {
        let written = self.table.get(name).map(|value| self.written(value)).unwrap_or_default();
        self.refuse(Invalid::new(name, written, allowed));
        None
    }

    /// A value as it stands in the file; a table that is spread over lines has no such form.
    fn written(&self, value: &Spanned<DeValue<'_>>) -> String {
        match value.get_ref() {
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::Array(items) => format!("a list of {}", items.len()),
            _ => self.document.text.get(value.span()).unwrap_or_default().to_owned(),
        }
    }

    fn refuse_unknown(&self) {
        if self.ambiguous {
            return;
        }
        for (name, value) in self.table.iter() {
            let name = name.get_ref().as_ref();
            if self.asked.contains(&name) {
                continue;
            }
            let mut known = self.asked.clone();
            known.dedup();
            let near = known.iter().find(|known| is_near(known, name));
            let hint = near.map(|near| format!("`{near}`, or any of ")).unwrap_or_default();
            let value = format!("{}, but there is no such field", self.written(value));
            self.refuse(Invalid::new(name, value, format!("{hint}{}", known.join(", "))));
        }
    }
}

fn whole(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn number_of(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(number) => number.as_str().parse().ok(),
        other => whole(other).map(|number| number as f64),
    }
}

fn instant_of(value: &DeValue<'_>) -> Option<Timestamp> {
    match value {
        DeValue::String(text) => Timestamp::parse(text),
        DeValue::Datetime(at) => Timestamp::parse(&at.to_string()),
        _ => None,
    }
}

/// Whether one edit, or a few swapped or left-out letters, lead from one name to the other.
fn is_near(known: &str, written: &str) -> bool {
    let (known, written) = (known.as_bytes(), written.as_bytes());
    let start = known.iter().zip(written).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    let ends = known[start..].iter().rev().zip(written[start..].iter().rev());
    let end = ends.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    let left = |name: &[u8]| name.len() - start - end;
    left(known) <= 2 && left(written) <= 2 && start + end >= 2
}
