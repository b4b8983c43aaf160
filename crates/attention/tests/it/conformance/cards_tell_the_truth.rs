//! Claims of the cards hold, and what a card does not claim is refused with the alternative.

use crate::conformance::common::*;
use bochner_attention::{
    Bias, Card, Error, Form, Mask,
    card::{Draws, Masks, Penalty, Rows},
    engine::DecoderSize,
    mechanism::Cotangents,
    registry,
};
use bochner_numerics::check::largest;
use bochner_numerics::{Tolerance, finite_difference, relative_error};
use ndarray::{Array1, Array2, Array4, Axis, s};
use std::collections::HashSet;

fn is_refused<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Unsupported { instead, .. }) if !instead.is_empty())
}

/// Masks and other sequences are taken or refused as the card says.
pub(crate) fn masks_are_taken_as_claimed(case: &Case<f64>) {
    let sequence = Example::<f64>::new(6, 6);
    for (name, mask) in masks(6, 6) {
        let got = case.forward(&sequence, &mask, &EVALUATION);
        let (takes, refused) = (case.card.takes(&mask), is_refused(got));
        assert_eq!(takes, !refused, "{}, mask: {name}", case.name);
        let hides_the_future = !mask.keeps([0, 0, 0, 5], [6, 6]) && name.contains("left");
        assert!(
            case.card.causal.is_yes() || refused || !hides_the_future,
            "{}: what lets a row see the whole sequence does not hide its future",
            case.name
        );
    }
    match case.forward(&Example::new(5, 6), &Mask::none(), &EVALUATION) {
        Ok(forward) if case.card.cross.is_yes() => {
            assert_eq!(forward.output.dim().2, 5, "{}", case.name);
        }
        // The streams of one sequence do not tell that there is another.
        Ok(_) => assert!(!case.has_pairs(), "{}", case.name),
        refused => {
            assert!(is_refused(refused), "{}", case.name);
            assert!(!case.card.cross.is_yes(), "{}", case.name);
        }
    }
}

/// Dropout on the weights is taken, or refused.
pub(crate) fn dropout_is_taken_as_claimed(case: &Case<f64>) {
    let (example, mask) = (case.example(5, 6), Mask::none());
    let inputs = case.inputs(&example, &mask);
    let got = (case.mechanism()).forward(&inputs, &case.parameters, &TRAINING);
    assert_eq!(
        case.card.dropout.is_yes(),
        !is_refused(got),
        "{}",
        case.name
    );
}

/// Weights are shown, or it is said what there is instead.
pub(crate) fn weights_are_shown_as_claimed(case: &Case<f64>) {
    let (example, mask) = (case.example(5, 6), Mask::none());
    let inputs = case.inputs(&example, &mask);
    let shown = case
        .mechanism()
        .inspect(&inputs, &case.parameters, &EVALUATION);
    assert_eq!(
        case.card.weights.is_yes(),
        !is_refused(shown),
        "{}",
        case.name
    );
}

/// The number of points is that of the card, and can be changed if there is one.
pub(crate) fn points_are_as_claimed(case: &Case<f64>) {
    let changed = case.variant.with_points(7);
    match case.card.points {
        None => assert!(is_refused(changed), "{}", case.name),
        Some(own) => {
            assert_ne!(own, 7);
            assert_eq!(changed.unwrap().card().points, Some(7), "{}", case.name);
        }
    }
}

/// The linear-time form agrees with that of pairs, gradients included, or is refused.
pub(crate) fn linear_form_is_as_claimed(case: &Case<f64>) {
    let forms = [Form::Pairwise, Form::LinearTime].map(|form| case.variant.with_form(form));
    let [pairs, linear] = match forms {
        [Ok(pairs), Ok(linear)] => [pairs, linear].map(|form| {
            let mut form = Case::<f64>::of(form);
            form.parameters.clone_from(&case.parameters);
            form
        }),
        [.., linear] => {
            assert!(is_refused(linear), "{}", case.name);
            assert!(!case.card.linear_form.is_yes(), "{}", case.name);
            return;
        }
    };
    assert!(case.card.linear_form.is_yes(), "{}", case.name);
    // What is refused in the pass is refused by the card, before there is one.
    let [bias, dropout] = [linear.card.bias, linear.card.dropout];
    assert!(!bias.is_yes() && !dropout.is_yes(), "{}", case.name);
    case.with_every_mask(5, 6, |_, example, mask, label| {
        let forward = |form: &Case<f64>| form.forward(example, mask, &EVALUATION);
        if label.contains("pairs") {
            assert!(is_refused(forward(&linear)), "{label}");
            return;
        }
        let near = |got: &Array4<f64>, want: &Array4<f64>, tolerance: Tolerance| {
            let bound = tolerance.bound(want.iter().copied());
            let fits = (got - want).iter().all(|x| x.abs() <= bound);
            assert!(fits, "{label}");
        };
        let [want, got] = [&pairs, &linear].map(|form| forward(form).unwrap().output.into_owned());
        near(&got, &want, Tolerance::outputs::<f64>());
        // Two forms round differently; causal queries meet the keys of their own block pair by pair in both.
        let differ = got != want || mask.is_causal();
        assert!(differ, "{label}: one form is computed twice");
        let [want, got] = [&pairs, &linear].map(|form| form.gradients(example, mask, &EVALUATION));
        for (got, want) in [
            (&got.streams[0], &want.streams[0]),
            (&got.streams[1], &want.streams[1]),
            (&got.streams[2], &want.streams[2]),
        ] {
            near(got, want, Tolerance::gradients::<f64>());
        }
        let error = relative_error(&got.parameters, &want.parameters);
        assert!(error < 1e-6, "{label}: {error:e}");
    });
}

/// Biases of every kind are added to the logits, gradients included, or refused.
pub(crate) fn bias_is_taken_as_claimed(case: &Case<f64>) {
    let (queries, keys) = (5, 6);
    let (example, mask) = (case.example(queries, keys), Mask::none());
    let shape = (BATCH, HEADS, example.q.dim().2, keys);
    let values: Array4<f64> = random(shape, "bias");
    let table: Array2<f64> = random((HEADS, 5), "table");
    let of_table = |table: &Array2<f64>| Bias::relative(table.view()).unwrap();
    let biases = [
        Bias::fixed(values.view()).unwrap(),
        Bias::alibi(),
        of_table(&table),
    ];
    let (mechanism, parameters) = (case.mechanism(), &case.parameters);
    let forward = |bias: &Bias<f64>| {
        let inputs = case.inputs(&example, &mask).with_bias(bias);
        mechanism.forward(&inputs, parameters, &EVALUATION)
    };
    let without = case.output(&example, &mask, &EVALUATION);
    let steps = case.card.rows == Rows::HalfToOne;
    for bias in &biases {
        let got = forward(bias);
        if !case.card.bias.is_yes() {
            assert!(is_refused(got), "{}, {bias:?}", case.name);
            continue;
        }
        let got = got.unwrap().output;
        assert_ne!(got, without, "{}, {bias:?}", case.name);
        // The sums of a ceiling's reference are whole numbers, which a bias leaves.
        if steps {
            continue;
        }
        let want = case.reference_with(&example, &mask, &EVALUATION, Some(bias));
        let bound = Tolerance::outputs::<f64>().bound(want.output.iter().copied());
        let off = largest(&(got - &want.output));
        assert!(
            off <= bound,
            "{}: the card claims a bias, but with one the output is {off:e} away from the reference ({bound:e} allowed)",
            case.name
        );
        let inputs = case.inputs(&example, &mask).with_bias(bias);
        let shown = mechanism.inspect(&inputs, parameters, &EVALUATION);
        let off = shown.unwrap().weights - want.weights.expect("weights of pairs");
        let off = largest(&off);
        assert!(
            off < 1e-9,
            "{}: with a bias the weights are {off:e} away from the reference",
            case.name
        );
    }
    // Finite differences see the steps of a ceiling, which the surrogate gradient ignores: left out.
    if case.card.bias.is_yes() && !steps {
        let bias = of_table(&table);
        let inputs = (case.inputs(&example, &mask))
            .with_bias(&bias)
            .with_bias_gradient();
        let whole = forward(&bias).unwrap();
        let (output, penalty) = cotangents(&whole);
        let cotangent = Cotangents {
            output: output.view(),
            penalty: penalty.view(),
        };
        let got = mechanism.backward(&inputs, parameters, &EVALUATION, &whole, cotangent);
        let got: Vec<f64> = got.unwrap().bias.expect("a gradient").into_iter().collect();
        let want = finite_difference(table.as_slice().unwrap(), |numbers| {
            let table = Array2::from_shape_vec(table.raw_dim(), numbers.to_vec()).unwrap();
            loss(&forward(&of_table(&table)).unwrap())
        });
        let error = relative_error(&got, &want);
        assert!(error < 1e-6, "{}: {error:e}", case.name);
    }
}

/// A decoder in linear time keeps a state that does not grow, or is refused.
pub(crate) fn state_is_as_claimed(case: &Case<f64>) {
    let size = DecoderSize {
        batch: BATCH,
        heads: HEADS,
        width: WIDTH,
        value_width: VALUE_WIDTH,
    };
    let mechanism = case.mechanism();
    let decoder = mechanism.decoder(size, &case.parameters, &EVALUATION, Form::LinearTime.into());
    let Ok(mut decoder) = decoder else {
        assert!(is_refused(decoder), "{}", case.name);
        assert!(!case.card.constant_state.is_yes(), "{}", case.name);
        return;
    };
    assert!(case.card.constant_state.is_yes(), "{}", case.name);
    let Example { q, k, v } = Example::<f64>::new(9, 9);
    let mut held = [2, 9].map(|end| {
        let start = decoder.lengths()[0];
        let [q, k, v] = [&q, &k, &v].map(|x| x.slice(s![.., .., start..end, ..]));
        decoder.step(q, k, v).unwrap();
        decoder.held()
    });
    held.sort_unstable();
    assert_eq!(held[0], held[1], "{}", case.name);
}

/// Results of one example do not depend on the other examples, to the bit, except for a penalty of the batch.
///
/// Numbers cannot tell a divergence of each example from a loss of each example. The property takes the penalty of a
/// mechanism that draws in every pass for a divergence, and the penalty of any other mechanism for a loss. A mechanism
/// for which this is wrong needs another way to tell the two apart here.
pub(crate) fn penalty_is_as_claimed(case: &Case<f64>) {
    let (example, mask) = (case.example(5, 6), Mask::none());
    let mut other = example.clone();
    for x in [&mut other.q, &mut other.k, &mut other.v] {
        x.index_axis_mut(Axis(0), 1).mapv_inplace(|x| 0.5 - x);
    }
    for pass in [EVALUATION, TRAINING] {
        let [one, other] = [&example, &other].map(|x| case.forward(x, &mask, &pass).unwrap());
        let first = |x: &Array4<f64>| x.index_axis(Axis(0), 0).to_owned();
        assert_eq!(
            first(&one.output.to_owned()),
            first(&other.output.to_owned()),
            "{}",
            case.name
        );
        assert_ne!(one.output, other.output, "{}", case.name);
        let is_zero = |x: &Array1<f64>| x.iter().all(|&x| x == 0.0);
        let found = match one.penalty[0] == other.penalty[0] {
            _ if is_zero(&one.penalty) => Penalty::None,
            true if case.is_latent() => Penalty::PerExample,
            true => Penalty::LossPerExample,
            false => Penalty::PerBatch,
        };
        assert_eq!(found, case.card.penalty, "{}", case.name);
    }
}

#[test]
fn for_every_mechanism() {
    for case in cases() {
        masks_are_taken_as_claimed(&case);
        weights_are_shown_as_claimed(&case);
        points_are_as_claimed(&case);
        linear_form_is_as_claimed(&case);
        bias_is_taken_as_claimed(&case);
        dropout_is_taken_as_claimed(&case);
        state_is_as_claimed(&case);
        penalty_is_as_claimed(&case);
    }
}

#[test]
fn every_card_is_filled_in() {
    let cards: Vec<_> = registry().iter().map(|variant| variant.card()).collect();
    let names: HashSet<_> = cards.iter().map(|card| card.name).collect();
    assert_eq!(names.len(), cards.len());
    for card in cards {
        assert!(
            ![card.name, card.title, card.paper].contains(&""),
            "{card:?}"
        );
        assert!(!card.title.ends_with('.'), "{card:?}");
        assert!(!card.streams.is_empty(), "{card:?}");
    }
}

/// The table of the crate's documentation, one row a card.
fn table() -> String {
    let yes = |yes: bool| if yes { "yes" } else { "" };
    let mut table = String::from(
        "| name | is | causal | linear time | draws | penalty | takes no | from |\n|---|---|---|---|---|---|---|---|\n",
    );
    for card in registry().iter().map(|variant| variant.card()) {
        let Card {
            name, title, paper, ..
        } = card;
        let equation = card.equation.map(|equation| format!(", {equation}"));
        let taken = [
            ("mask but lengths", card.masks == Masks::Any),
            ("keys of another sequence", card.cross.is_yes()),
            ("shared keys", card.shared_keys.is_yes()),
            ("bias", card.bias.is_yes()),
        ];
        let missing = taken.iter().filter(|(_, is_taken)| !is_taken);
        let missing: Vec<&str> = missing.map(|(what, _)| *what).collect();
        table += &format!(
            "| `{name}` | {title} | {} | {} | {} | {} | {} | {paper}{} |\n",
            yes(card.causal.is_yes()),
            yes(card.linear_form.is_yes()),
            yes(card.draws != Draws::Nothing),
            yes(card.penalty != Penalty::None),
            missing.join(", "),
            equation.unwrap_or_default(),
        );
    }
    table
}

#[test]
fn the_table_in_the_documentation_is_that_of_the_cards() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/mechanism/table.md");
    let written = std::fs::read_to_string(path).unwrap();
    if written != table() {
        std::fs::write(path, table()).unwrap();
        panic!("src/mechanism/table.md was another; it is written anew: look at it and commit it");
    }
}

/// A penalty shared out over the examples is divided by them, a loss by the batch alone.
#[test]
fn penalties_have_their_share() {
    assert_eq!(Penalty::PerExample.share(4, 1.0, 100), 0.01);
    assert_eq!(Penalty::PerExample.share(4, 0.25, 100), 0.04);
    assert_eq!(Penalty::LossPerExample.share(4, 0.5, 100), 0.25);
    assert_eq!(Penalty::PerBatch.share(4, 0.5, 100), 0.25);
}
