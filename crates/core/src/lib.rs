//! The rules of Tidegate. Everything it decides is decided here, as pure functions over values.

pub mod draw;
pub mod invalid;
pub mod time;
