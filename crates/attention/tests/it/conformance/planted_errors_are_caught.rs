//! Tests of the tests: each planted error is caught by the property that is there to catch it, and
//! without an error the same mechanisms pass.
//!
//! A property fails by a panic, whose message goes the way of all output of a passing test.

use crate::conformance::attention_is_what_its_formula_says::weights_follow_the_formula;
use crate::conformance::common::Case;
use crate::conformance::dropout_keeps_the_mean::the_mean_is_kept;
use crate::conformance::empty_rows_are_zero::nothing_comes_of_nothing;
use crate::conformance::gradients_agree_with_finite_differences::gradients_are_derivatives;
use crate::conformance::keys_and_queries_have_no_order::{
    keys_have_no_order, queries_have_no_order,
};
use crate::conformance::nothing_behind_a_mask_matters::the_unseen_does_not_matter;
use crate::conformance::padding_changes_nothing::{keys_can_be_padded, sequences_can_be_padded};
use crate::conformance::reference::Fault::*;
use crate::conformance::reference::{Fault, direct, joint};
use crate::conformance::the_copula_mixes_the_heads::{
    draws_are_correlated_by_the_factor, factors_give_correlations,
    the_penalty_is_beta_times_the_divergence,
};
use crate::conformance::the_future_does_not_matter::{
    decoding_agrees_with_the_full_pass, no_row_sees_the_future,
    points_inferred_from_the_sequence_are_refused, queries_before_the_first_key_see_nothing,
};
use crate::conformance::weights_are_distributions::rows_sum_to_one;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Property = fn(&Case<f64>);
type Planted = fn(Option<Fault>) -> Case<f64>;

/// The error, where it is planted, and the property that catches it.
const CAUGHT_BY: [(Fault, Planted, Property); 26] = [
    (MaskInverted, direct, rows_sum_to_one),
    (MaskInverted, direct, weights_follow_the_formula),
    (MaskedInNormaliser, direct, rows_sum_to_one),
    (MaskedInNormaliser, direct, keys_can_be_padded),
    (MaskMultiplied, direct, the_unseen_does_not_matter),
    (
        CausalFromTheStart,
        direct,
        decoding_agrees_with_the_full_pass,
    ),
    (EmptyRowDivided, direct, nothing_comes_of_nothing),
    (PointsNotAveraged, direct, weights_follow_the_formula),
    (FourCosinesNotAveraged, direct, weights_follow_the_formula),
    (KernelNotSquared, direct, weights_follow_the_formula),
    (NoFloor, direct, weights_follow_the_formula),
    (NoKeyMagnitude, direct, weights_follow_the_formula),
    (QueryMagnitude, direct, weights_follow_the_formula),
    (NormNotSquared, direct, weights_follow_the_formula),
    (DropoutNotRescaled, direct, the_mean_is_kept),
    (DropoutNotInGradient, direct, gradients_are_derivatives),
    (SquareWithoutTwo, direct, gradients_are_derivatives),
    (MagnitudeNotInGradient, direct, gradients_are_derivatives),
    (HeadsNotMixed, joint, draws_are_correlated_by_the_factor),
    (FactorNotNormalised, joint, factors_give_correlations),
    (
        DivergenceNegated,
        joint,
        the_penalty_is_beta_times_the_divergence,
    ),
    (
        DependenceNegated,
        joint,
        the_penalty_is_beta_times_the_divergence,
    ),
    (
        DeviationAsVariance,
        joint,
        draws_are_correlated_by_the_factor,
    ),
    (PaddingInNetwork, joint, keys_can_be_padded),
    (PaddingInNetwork, joint, sequences_can_be_padded),
    (FutureInNetwork, joint, no_row_sees_the_future),
];

#[test]
fn by_the_property_that_is_there_for_it() {
    for (fault, planted, property) in CAUGHT_BY {
        let case = planted(Some(fault));
        let caught = catch_unwind(AssertUnwindSafe(|| property(&case)));
        assert!(caught.is_err(), "{fault:?} goes unnoticed");
    }
}

/// A property that always fails would pass for one that catches.
#[test]
fn without_an_error_every_property_holds() {
    let properties: [Property; 16] = [
        decoding_agrees_with_the_full_pass,
        draws_are_correlated_by_the_factor,
        factors_give_correlations,
        gradients_are_derivatives,
        keys_can_be_padded,
        keys_have_no_order,
        no_row_sees_the_future,
        nothing_comes_of_nothing,
        points_inferred_from_the_sequence_are_refused,
        queries_before_the_first_key_see_nothing,
        queries_have_no_order,
        rows_sum_to_one,
        sequences_can_be_padded,
        the_mean_is_kept,
        the_penalty_is_beta_times_the_divergence,
        the_unseen_does_not_matter,
    ];
    for case in [direct(None), joint(None)] {
        weights_follow_the_formula(&case);
        properties.iter().for_each(|property| property(&case));
    }
}
