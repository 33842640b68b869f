//! Names as numbers. Histories name everything by text of some thirty letters, over and over; here each is kept once.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A name that was seen. Two are equal if their text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u32);

impl Name {
    /// Names are numbered from 0 in the order in which they were first seen.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// All names of a run, in one text.
#[derive(Debug, Default)]
pub struct Names {
    text: String,
    ends: Vec<u32>,
    known: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Names {
    /// The number of `text`, which is kept if it is new.
    pub fn name(&mut self, text: &str) -> Name {
        let hash = self.hasher.hash_one(text);
        let (all, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        if let Some(found) = self.known.find(hash, |index| slice(all, ends, *index) == text) {
            return Name(*found);
        }
        let index = u32::try_from(self.ends.len()).expect("fewer than 2³² names");
        self.known.reserve(1, |index| hasher.hash_one(slice(all, ends, *index)));
        self.text.push_str(text);
        self.ends.push(u32::try_from(self.text.len()).expect("less than 4 GiB of names"));
        let (all, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.known.insert_unique(hash, index, |index| hasher.hash_one(slice(all, ends, *index)));
        Name(index)
    }

    /// The number of `text`, if it was seen.
    pub fn find(&self, text: &str) -> Option<Name> {
        let hash = self.hasher.hash_one(text);
        self.known.find(hash, |index| slice(&self.text, &self.ends, *index) == text).map(|index| Name(*index))
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        slice(&self.text, &self.ends, name.0)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }
}

fn slice<'a>(text: &'a str, ends: &[u32], index: u32) -> &'a str {
    let index = index as usize;
    let from = index.checked_sub(1).map_or(0, |before| ends[before]);
    &text[from as usize..ends[index] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_has_the_same_number_and_keeps_its_letters() {
        let mut names = Names::default();
        let all: Vec<Name> = (0..1_000).map(|number| names.name(&format!("evt_{number}"))).collect();
        for (number, name) in all.iter().enumerate() {
            assert_eq!(names.text(*name), format!("evt_{number}"));
            assert_eq!(names.find(&format!("evt_{number}")), Some(*name));
            assert_eq!(names.name(&format!("evt_{number}")), *name);
        }
        assert_eq!((names.count(), names.find("dlv_1")), (1_000, None));
    }
}
