//! Integration tests.

mod agrees_with_causality_lab;
mod every_mechanism_is_read;
