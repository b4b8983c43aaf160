//! The sizes of a call.

/// The sizes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Examples, B.
    pub batch: usize,
    /// Heads of queries, M.
    pub heads: usize,
    /// Heads of keys and values, which divide M.
    #[doc(alias = "num_kv_heads")]
    pub kv_heads: usize,
    /// Queries, Tq.
    pub queries: usize,
    /// Keys, Tk.
    pub keys: usize,
    /// Width of queries and keys, d.
    pub width: usize,
    /// Width of values, dv.
    pub value_width: usize,
}
