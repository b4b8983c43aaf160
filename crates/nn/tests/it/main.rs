//! The properties of layers, checkpoints and the bridge to dfdx.

mod adam;
mod bridge_agrees_with_dfdx;
mod common;
mod damaged_checkpoints_are_refused;
mod embedding_touches_only_its_rows;
mod layers_agree_with_composition;
mod leaves_lend_their_elements;
mod parameters_are_visited;
mod settings_are_checked_when_read;
mod sizes_that_no_memory_holds;
mod threads_change_nothing;
mod weights_of_other_libraries;
mod what_is_saved_comes_back;
