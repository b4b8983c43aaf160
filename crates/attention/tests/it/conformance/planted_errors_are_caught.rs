//! Tests of the tests: each planted error and each lie of a card is caught by the property that is there
//! to catch it, and mechanisms without an error pass.
//!
//! A property fails by a panic, whose message goes the way of all output of a passing test.

use crate::conformance::attention_is_what_its_formula_says::weights_follow_the_formula;
use crate::conformance::cards_tell_the_truth::*;
use crate::conformance::common::Case;
use crate::conformance::dropout_keeps_the_mean::the_mean_is_kept;
use crate::conformance::empty_rows_are_zero::nothing_comes_of_nothing;
use crate::conformance::gradients_agree_with_finite_differences::gradients_are_derivatives;
use crate::conformance::keys_and_queries_have_no_order::*;
use crate::conformance::nothing_behind_a_mask_matters::the_unseen_does_not_matter;
use crate::conformance::padding_changes_nothing::{keys_can_be_padded, sequences_can_be_padded};
use crate::conformance::planted::{Planted, direct, lying, lying_average};
use crate::conformance::seeds_decide_every_draw::draws_are_as_claimed;
use crate::conformance::the_future_does_not_matter::{
    decoding_agrees_with_the_full_pass, no_row_sees_the_future,
    queries_before_the_first_key_see_nothing,
};
use crate::conformance::weights_are_distributions::rows_sum_as_claimed;
use bochner_attention::{
    Draws, IkanDirect, Mask, Masks, Pass, Penalty, Preset, RbfOnly, Rows, Softmax, Streams,
    Support, Symmetry,
};
use ndarray::{Array2, Array4, Axis};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Property = fn(&Case<f64>);

/// The mask without its example's keys and queries, and with the others.
fn inverted(inputs: &Streams<f64>) -> Mask {
    let (queries, keys) = (inputs.q().dim().2, inputs.k().dim().2);
    let is_masked = |(i, j)| !inputs.mask.keeps(0, i, j, queries, keys);
    Mask::none().with_matrix(Array2::from_shape_fn((queries, keys), is_masked).view())
}

/// A causal mask that aligns the first query with the first key, not the last with the last.
fn from_the_start(inputs: &Streams<f64>) -> Mask {
    let shape = (inputs.q().dim().2, inputs.k().dim().2);
    match inputs.mask.is_causal() {
        false => inputs.mask.clone(),
        true => Mask::none().with_matrix(Array2::from_shape_fn(shape, |(i, j)| j <= i).view()),
    }
}

/// Scales each row as if its masked keys counted in the sum that weights are divided by.
fn masked_keys_count(inputs: &Streams<f64>, _: &Pass, x: &mut Array4<f64>) {
    let (queries, keys) = (inputs.q().dim().2, inputs.k().dim().2);
    for ((b, _, i, _), x) in x.indexed_iter_mut() {
        let kept = (0..keys).filter(|&j| inputs.mask.keeps(b, i, j, queries, keys));
        *x *= kept.count() as f64 / keys as f64;
    }
}

fn mean_of_all_keys(inputs: &Streams<f64>) -> f64 {
    inputs.k().mean().unwrap()
}

#[test]
fn by_the_property_that_is_there_for_it() {
    let right = || Planted::right(direct().into());
    let of = |planted: Planted| planted.against(direct().into());
    let masked = |mask| of(Planted { mask, ..right() });
    let altered = |alter| of(Planted { alter, ..right() });
    let shifted = || {
        of(Planted {
            shift: mean_of_all_keys,
            ..right()
        })
    };
    let gradient = |gradient| {
        of(Planted {
            gradient,
            ..right()
        })
    };
    let other = |other: IkanDirect| Planted::right(other.into()).against(direct().into());
    let without_magnitude = || Planted::right(RbfOnly {}.into()).against(Softmax {}.into());
    let errors: [(&str, Case<f64>, Property); 22] = [
        (
            "the mask is inverted",
            masked(inverted),
            rows_sum_as_claimed,
        ),
        (
            "the mask is inverted",
            masked(inverted),
            weights_follow_the_formula,
        ),
        (
            "masked keys count in the sum",
            altered(masked_keys_count),
            rows_sum_as_claimed,
        ),
        (
            "masked keys count in the sum",
            altered(masked_keys_count),
            keys_can_be_padded,
        ),
        (
            "masked values are multiplied by zero",
            altered(|inputs, _, x| *x += 0.0 * inputs.v().sum()),
            the_unseen_does_not_matter,
        ),
        (
            "the first query meets the first key",
            masked(from_the_start),
            decoding_agrees_with_the_full_pass,
        ),
        (
            "empty rows are divided by their sum",
            altered(|_, _, x| x.mapv_inplace(|x| x * x / x)),
            nothing_comes_of_nothing,
        ),
        (
            "1/R is missing in f",
            other(IkanDirect {
                floor: 1e-2 / 16.0,
                ..direct()
            }),
            weights_follow_the_formula,
        ),
        (
            "the floor is missing",
            other(IkanDirect {
                floor: 0.0,
                ..direct()
            }),
            weights_follow_the_formula,
        ),
        (
            "the norm is another",
            other(IkanDirect { p: 1.6, ..direct() }),
            weights_follow_the_formula,
        ),
        (
            "the query's magnitude counts",
            other(IkanDirect {
                preset: Preset::Released,
                ..direct()
            }),
            weights_follow_the_formula,
        ),
        (
            "the key's magnitude is missing",
            without_magnitude(),
            weights_follow_the_formula,
        ),
        (
            "the weights that stay do not grow",
            altered(|_, pass, x| {
                if matches!(pass, Pass::Training { .. }) {
                    *x *= 0.6;
                }
            }),
            the_mean_is_kept,
        ),
        (
            "the gradient is that of all weights",
            gradient(|variant, pass| (variant, Pass::Evaluation { seed: pass.seed() })),
            gradients_are_derivatives,
        ),
        (
            "the gradient is that of another floor",
            gradient(|_, pass| {
                (
                    IkanDirect {
                        floor: 1.0,
                        ..direct()
                    }
                    .into(),
                    pass,
                )
            }),
            gradients_are_derivatives,
        ),
        (
            "the gradient is that of another norm",
            gradient(|_, pass| (IkanDirect { p: 2.0, ..direct() }.into(), pass)),
            gradients_are_derivatives,
        ),
        (
            "examples are exchanged",
            altered(|_, _, x| x.invert_axis(Axis(0))),
            the_penalty_is_as_claimed,
        ),
        (
            "keys have an order",
            altered(|inputs, _, x| *x *= inputs.k()[[0, 0, 0, 0]]),
            keys_have_no_order,
        ),
        (
            "queries have an order",
            altered(|inputs, _, x| *x *= inputs.q()[[0, 0, 0, 0]]),
            queries_have_no_order,
        ),
        ("points know padded keys", shifted(), keys_can_be_padded),
        (
            "points know padded keys",
            shifted(),
            sequences_can_be_padded,
        ),
        ("points know the future", shifted(), no_row_sees_the_future),
    ];
    for (error, case, property) in &errors {
        assert!(catches(*property, case), "{error}, and nobody notices");
    }
}

fn catches(property: Property, case: &Case<f64>) -> bool {
    catch_unwind(AssertUnwindSafe(|| property(case))).is_err()
}

const NO: Support = Support::No {
    instead: "something else",
};

/// A card that claims too much, and one that claims too little.
#[test]
fn a_card_that_lies_is_caught() {
    let lies: [(&str, Property, Case<f64>); 22] = [
        (
            "lengths",
            rows_sum_as_claimed,
            lying_average(|card| card.masks = Masks::Lengths),
        ),
        (
            "a matrix is taken",
            masks_are_taken_as_claimed,
            lying(|card| card.masks = Masks::Lengths),
        ),
        (
            "lengths are taken",
            masks_are_taken_as_claimed,
            lying(|card| card.masks = Masks::None),
        ),
        (
            "the past",
            no_row_sees_the_future,
            lying_average(|card| card.causal = Support::Yes),
        ),
        (
            "no causality",
            masks_are_taken_as_claimed,
            lying(|card| card.causal = NO),
        ),
        (
            "another sequence",
            masks_are_taken_as_claimed,
            lying_average(|card| card.cross = Support::Yes),
        ),
        (
            "no other sequence",
            masks_are_taken_as_claimed,
            lying(|card| card.cross = NO),
        ),
        (
            "linear",
            the_linear_form_is_as_claimed,
            lying_average(|card| card.linear_form = Support::Yes),
        ),
        (
            "no linear form",
            the_linear_form_is_as_claimed,
            lying(|card| card.linear_form = NO),
        ),
        (
            "a state",
            the_state_is_as_claimed,
            lying_average(|card| card.constant_state = Support::Yes),
        ),
        (
            "no state",
            the_state_is_as_claimed,
            lying(|card| card.constant_state = NO),
        ),
        (
            "no weights",
            weights_are_shown_as_claimed,
            lying(|card| card.weights = NO),
        ),
        (
            "sums below one",
            rows_sum_as_claimed,
            lying(|card| card.rows = Rows::HalfToOne),
        ),
        (
            "sums of one",
            rows_sum_as_claimed,
            lying_average(|card| card.rows = Rows::One),
        ),
        (
            "an order",
            the_symmetry_is_the_one_claimed,
            lying(|card| card.symmetry = Symmetry::None),
        ),
        (
            "none",
            the_symmetry_is_the_one_claimed,
            lying_average(|card| card.symmetry = Symmetry::Permutations),
        ),
        (
            "draws",
            draws_are_as_claimed,
            lying(|card| card.draws = Draws::InTraining),
        ),
        (
            "draws always",
            draws_are_as_claimed,
            lying(|card| card.draws = Draws::InEveryPass),
        ),
        (
            "a penalty",
            the_penalty_is_as_claimed,
            lying(|card| card.penalty = Penalty::PerExample),
        ),
        (
            "no penalty",
            the_penalty_is_as_claimed,
            lying_average(|card| card.penalty = Penalty::None),
        ),
        (
            "no points",
            points_are_as_claimed,
            lying(|card| card.points = None),
        ),
        (
            "points",
            points_are_as_claimed,
            lying_average(|card| card.points = Some(4)),
        ),
    ];
    for (lie, property, case) in &lies {
        assert!(catches(*property, case), "{lie}: {}", case.name);
    }
}

/// A property that always fails would pass for one that catches.
#[test]
fn without_an_error_every_property_holds() {
    let properties: [Property; 21] = [
        decoding_agrees_with_the_full_pass,
        draws_are_as_claimed,
        gradients_are_derivatives,
        keys_can_be_padded,
        keys_have_no_order,
        masks_are_taken_as_claimed,
        no_row_sees_the_future,
        nothing_comes_of_nothing,
        points_are_as_claimed,
        queries_before_the_first_key_see_nothing,
        queries_have_no_order,
        rows_sum_as_claimed,
        sequences_can_be_padded,
        the_linear_form_is_as_claimed,
        the_mean_is_kept,
        the_penalty_is_as_claimed,
        the_state_is_as_claimed,
        the_symmetry_is_the_one_claimed,
        the_unseen_does_not_matter,
        weights_are_shown_as_claimed,
        weights_follow_the_formula,
    ];
    for case in [lying(|_| ()), lying_average(|_| ())] {
        properties.iter().for_each(|property| property(&case));
    }
}
