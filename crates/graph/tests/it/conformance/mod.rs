//! Properties of every kind of attention along edges.

mod attention_is_what_its_formula_says;
pub(crate) mod case;
mod extremes_are_never_nan;
mod gradients_agree_with_finite_differences;
mod hubs_are_summed_accurately;
mod memory_grows_with_edges;
mod misuse_is_named;
mod nodes_and_edges_have_no_order;
mod reference;
mod threads_change_nothing;
