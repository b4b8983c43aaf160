//! Properties of every mechanism of the registry, and of attention with any settings: one file per property.

mod case;
mod common;
mod examples;
pub(crate) mod plain;
pub(crate) mod reference;

mod attention_is_what_its_formula_says;
mod both_forms_agree;
mod cards_tell_the_truth;
mod decoding_continues_the_sequence;
mod empty_rows_are_zero;
mod extremes_are_never_nan;
mod gradients_agree_with_finite_differences;
mod kernels_keep_the_promises_of_the_engine;
mod keys_and_queries_have_no_order;
mod keys_can_be_shared;
mod mechanisms_decode;
mod misuse_is_named;
mod nothing_behind_a_mask_matters;
mod packed_sequences_are_a_padded_batch;
mod padding_changes_nothing;
mod presets_are_one_configuration;
mod rounding_stays_within_its_bound;
mod seeds_decide_every_draw;
pub(crate) mod settings_survive_serde;
mod shapes_follow_the_inputs;
mod the_copula_mixes_the_heads;
mod the_future_does_not_matter;
mod threads_change_nothing;
mod weights_are_distributions;
mod what_else_is_in_the_batch_changes_nothing;
