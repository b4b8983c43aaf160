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
use crate::conformance::keys_can_be_shared::shared_keys_are_as_claimed;
use crate::conformance::nothing_behind_a_mask_matters::the_unseen_does_not_matter;
use crate::conformance::padding_changes_nothing::{keys_can_be_padded, sequences_can_be_padded};
use crate::conformance::planted::{Planted, direct, lying, lying_average, lying_of};
use crate::conformance::seeds_decide_every_draw::draws_are_as_claimed;
use crate::conformance::shapes_follow_the_inputs::shapes_are_as_claimed;
use crate::conformance::the_future_does_not_matter::{
    decoding_agrees_with_the_full_pass, no_row_sees_the_future,
    queries_before_the_first_key_see_nothing,
};
use crate::conformance::weights_are_distributions::rows_sum_as_claimed;
use bochner_attention::{
    Card, Draws, IkanDirect, Mask, Masks, Mikan, Pass, Penalty, Performer, Preset, Primal,
    PrimalReduction, RandomFeatureMap, RbfOnly, Rows, Softmax, Stream, Streams, Support, Symmetry,
    Variant, find,
};
use ndarray::{Array2, Array4, Axis};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Property = fn(&Case<f64>);

/// The mask without its example's keys and queries, and with the others.
fn inverted(inputs: &Streams<f64>) -> Mask {
    let (queries, keys) = (inputs.q().dim().2, inputs.k().dim().2);
    let is_masked = |(i, j)| !inputs.mask.keeps([0, 0, i, j], [queries, keys]);
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
    for ((b, m, i, _), x) in x.indexed_iter_mut() {
        let kept = (0..keys).filter(|&j| inputs.mask.keeps([b, m, i, j], [queries, keys]));
        *x *= kept.count() as f64 / keys as f64;
    }
}

fn mean_of_all_keys(inputs: &Streams<f64>) -> f64 {
    inputs.k().mean().unwrap()
}

fn catches(property: Property, case: &Case<f64>) -> bool {
    catch_unwind(AssertUnwindSafe(|| property(case))).is_err()
}

fn are_caught<const N: usize>(property: Property, errors: [(&str, Case<f64>); N]) {
    for (error, case) in errors {
        assert!(catches(property, &case), "{error}, and nobody notices");
    }
}

#[test]
fn by_the_property_that_is_there_for_it() {
    let right = || Planted::right(direct().into());
    let of = |planted: Planted| planted.against(direct().into());
    let masked = |mask| of(Planted { mask, ..right() });
    let altered = |alter| of(Planted { alter, ..right() });
    let shift = mean_of_all_keys;
    let shifted = || of(Planted { shift, ..right() });
    let with_gradient = |gradient| {
        let right = right();
        of(Planted { gradient, ..right })
    };
    let other = |other: IkanDirect| of(Planted::right(other.into()));
    let with_floor = |floor| {
        let direct = direct();
        other(IkanDirect { floor, ..direct })
    };
    let preset = Preset::Released;
    let released = IkanDirect { preset, ..direct() };

    let without_magnitude = Planted::right(RbfOnly {}.into()).against(Softmax::default().into());
    are_caught(
        weights_follow_the_formula,
        [
            ("the mask is inverted", masked(inverted)),
            ("1/R is missing in f", with_floor(1e-2 / 16.0)),
            ("the floor is missing", with_floor(0.0)),
            (
                "the norm is another",
                other(IkanDirect { p: 1.6, ..direct() }),
            ),
            ("the query's magnitude counts", other(released)),
            ("the key's magnitude is missing", without_magnitude),
        ],
    );
    are_caught(
        rows_sum_as_claimed,
        [
            ("the mask is inverted", masked(inverted)),
            ("masked keys count in the sum", altered(masked_keys_count)),
        ],
    );
    are_caught(
        keys_can_be_padded,
        [
            ("masked keys count in the sum", altered(masked_keys_count)),
            ("points know padded keys", shifted()),
        ],
    );
    let zero_times_nan = altered(|inputs, _, x| *x += 0.0 * inputs.v().sum());
    let zero_by_zero = altered(|_, _, x| x.mapv_inplace(|x| x * x / x));
    let not_rescaled = altered(|_, pass, x| {
        if matches!(pass, Pass::Training { .. }) {
            *x *= 0.6;
        }
    });
    let by_a_key = altered(|inputs, _, x| *x *= inputs.k()[[0, 0, 0, 0]]);
    let by_a_query = altered(|inputs, _, x| *x *= inputs.q()[[0, 0, 0, 0]]);
    let exchanged = altered(|_, _, x| x.invert_axis(Axis(0)));
    for (property, error, case) in [
        (
            the_unseen_does_not_matter as Property,
            "zero times NaN",
            zero_times_nan,
        ),
        (
            decoding_agrees_with_the_full_pass,
            "the first query",
            masked(from_the_start),
        ),
        (
            nothing_comes_of_nothing,
            "zero divided by zero",
            zero_by_zero,
        ),
        (the_mean_is_kept, "what stays is not rescaled", not_rescaled),
        (penalty_is_as_claimed, "examples are exchanged", exchanged),
        (keys_have_no_order, "the first key scales all", by_a_key),
        (
            queries_have_no_order,
            "the first query scales all",
            by_a_query,
        ),
        (
            sequences_can_be_padded,
            "points know padded keys",
            shifted(),
        ),
        (no_row_sees_the_future, "points know the future", shifted()),
    ] {
        are_caught(property, [(error, case)]);
    }
    let undropped = with_gradient(|own, pass| (own, Pass::Evaluation { seed: pass.seed() }));
    let of_the_norm = with_gradient(|_, pass| (IkanDirect { p: 2.0, ..direct() }.into(), pass));
    let of_the_points = with_gradient(|_, pass| {
        let (floor, direct) = (1.0, direct());
        (IkanDirect { floor, ..direct }.into(), pass)
    });
    are_caught(
        gradients_are_derivatives,
        [
            ("the gradient is that of all weights", undropped),
            ("the gradient is that of another norm", of_the_norm),
            ("the gradient is that of another floor", of_the_points),
        ],
    );
}

const NO: Support = Support::No {
    instead: "something else",
};

/// CAT with scores by queries and keys.
fn averaged_key() -> Variant {
    find("cat-averaged-key").expect("a mechanism of the registry")
}

/// Primal attention with a loss of each example.
fn by_example() -> Primal {
    Primal {
        reduction: PrimalReduction::Example,
        ..Primal::default()
    }
}

/// Attention whose weights are of either sign; so many features hardly cancel.
fn trigonometric() -> Variant {
    let features = RandomFeatureMap::Trigonometric;
    let performer = Performer {
        features,
        points: 64,
        ..Performer::default()
    };
    performer.into()
}

/// Cards that claim too much, and cards that claim too little.
#[test]
fn a_card_that_lies_is_caught() {
    let lies = |property: Property, case: Case<f64>| {
        assert!(
            catches(property, &case),
            "{} passes: {:?}",
            case.name,
            case.card
        );
    };
    let direct = |property, lie| lies(property, lying(lie));
    let average = |property, lie| lies(property, lying_average(lie));
    average(rows_sum_as_claimed, |c| c.masks = Masks::Lengths);
    direct(masks_are_taken_as_claimed, |c| c.masks = Masks::Lengths);
    direct(masks_are_taken_as_claimed, |c| c.masks = Masks::None);
    average(no_row_sees_the_future, |c| c.causal = Support::Yes);
    direct(masks_are_taken_as_claimed, |c| c.causal = NO);
    average(masks_are_taken_as_claimed, |c| c.cross = Support::Yes);
    direct(masks_are_taken_as_claimed, |c| c.cross = NO);
    average(linear_form_is_as_claimed, |c| c.linear_form = Support::Yes);
    direct(linear_form_is_as_claimed, |c| c.linear_form = NO);
    average(bias_is_taken_as_claimed, |c| c.bias = Support::Yes);
    direct(bias_is_taken_as_claimed, |c| c.bias = NO);
    average(state_is_as_claimed, |c| c.constant_state = Support::Yes);
    direct(state_is_as_claimed, |c| c.constant_state = NO);
    direct(weights_are_shown_as_claimed, |c| c.weights = NO);
    let of = |property, variant, lie| lies(property, lying_of(variant, lie));
    direct(rows_sum_as_claimed, |c| c.rows = Rows::HalfToOne);
    direct(rows_sum_as_claimed, |c| c.rows = Rows::OneOfEitherSign);
    direct(rows_sum_as_claimed, |c| c.rows = Rows::Free);
    average(rows_sum_as_claimed, |c| c.rows = Rows::One);
    average(rows_sum_as_claimed, |c| c.rows = Rows::OneOfEitherSign);
    average(rows_sum_as_claimed, |c| c.rows = Rows::Free);
    of(rows_sum_as_claimed, trigonometric(), |c| {
        c.rows = Rows::One;
    });
    of(rows_sum_as_claimed, trigonometric(), |c| {
        c.rows = Rows::Free;
    });
    of(rows_sum_as_claimed, by_example().into(), |c| {
        c.rows = Rows::One;
    });
    direct(symmetry_is_as_claimed, |c| c.symmetry = Symmetry::None);
    average(symmetry_is_as_claimed, |c| c.symmetry = Symmetry::None);
    average(symmetry_is_as_claimed, |c| {
        c.symmetry = Symmetry::Permutations;
    });
    let together = |c: &mut Card| c.symmetry = Symmetry::JointPermutations;
    direct(symmetry_is_as_claimed, together);
    average(symmetry_is_as_claimed, together);
    average(symmetry_is_as_claimed, |c| {
        c.symmetry = Symmetry::CyclicShiftsOfValues;
    });
    direct(draws_are_as_claimed, |c| c.draws = Draws::InTraining);
    direct(draws_are_as_claimed, |c| c.draws = Draws::InEveryPass);
    direct(penalty_is_as_claimed, |c| c.penalty = Penalty::PerBatch);
    average(penalty_is_as_claimed, |c| c.penalty = Penalty::None);
    average(penalty_is_as_claimed, |c| c.penalty = Penalty::PerExample);
    let mikan = || Mikan::default().into();
    let primal = || by_example().into();
    of(penalty_is_as_claimed, mikan(), |c| {
        c.penalty = Penalty::LossPerExample;
    });
    of(penalty_is_as_claimed, primal(), |c| {
        c.penalty = Penalty::PerExample;
    });
    direct(shared_keys_are_as_claimed, |c| c.shared_keys = NO);
    of(shared_keys_are_as_claimed, averaged_key(), |c| {
        c.shared_keys = Support::Yes;
    });
    of(shapes_are_as_claimed, primal(), |c| {
        c.output_width = Some(1)
    });
    direct(shapes_are_as_claimed, |c| {
        c.streams = &[Stream::Queries, Stream::Values];
    });
    direct(shapes_are_as_claimed, |c| {
        c.streams = &[Stream::Keys, Stream::Queries, Stream::Values];
    });
    direct(points_are_as_claimed, |c| c.points = None);
    average(points_are_as_claimed, |c| c.points = Some(4));
}

/// A property that always fails would pass for one that catches.
#[test]
fn without_an_error_every_property_holds() {
    let properties: [Property; 24] = [
        bias_is_taken_as_claimed,
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
        shapes_are_as_claimed,
        shared_keys_are_as_claimed,
        linear_form_is_as_claimed,
        the_mean_is_kept,
        penalty_is_as_claimed,
        state_is_as_claimed,
        symmetry_is_as_claimed,
        the_unseen_does_not_matter,
        weights_are_shown_as_claimed,
        weights_follow_the_formula,
    ];
    for case in [lying(|_| ()), lying_average(|_| ())] {
        properties.iter().for_each(|property| property(&case));
    }
    for honest in [Mikan::default().into(), by_example().into()] {
        let case = lying_of(honest, |_| ());
        penalty_is_as_claimed(&case);
        shapes_are_as_claimed(&case);
    }
    shared_keys_are_as_claimed(&lying_of(averaged_key(), |_| ()));
    rows_sum_as_claimed(&lying_of(trigonometric(), |_| ()));
}
