//! Integration tests.

mod agrees_with_causality_lab;
