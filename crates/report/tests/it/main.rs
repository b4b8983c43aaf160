//! The tests of this crate.

mod archive;
mod document;
mod pictures;
mod row;
mod statistics;
mod unit;
