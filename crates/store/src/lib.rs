//! Durable state as verbs.
