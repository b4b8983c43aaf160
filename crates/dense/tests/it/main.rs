//! The properties of factorisations.

mod cholesky;
mod singular;
mod symmetric;
mod testing;
