//! Whatever bytes a graph file holds, reading it ends in a value or an error that names the place,
//! in memory proportional to the file.

mod contents;
mod fuzz;
mod memory;
mod opcodes;
mod writer;
