//! Bounds that must hold after every step.
