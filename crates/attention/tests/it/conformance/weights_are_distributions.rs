use crate::conformance::common::*;
use bochner_attention::{Mask, Pass, Rows, attend, attend_vjp, attend_with_weights, weights};
use bochner_numerics::Tolerance;
use ndarray::{Array4, s};

fn weighted(weights: &Array4<f64>, v: &Array4<f64>) -> Array4<f64> {
    let (batch, heads, queries, _) = weights.dim();
    let mut output = Array4::zeros((batch, heads, queries, v.dim().3));
    for b in 0..batch {
        for m in 0..heads {
            let product = weights
                .slice(s![b, m, .., ..])
                .dot(&v.slice(s![b, m, .., ..]));
            output.slice_mut(s![b, m, .., ..]).assign(&product);
        }
    }
    output
}

/// Rows sum over the kept keys to what the card says, and outputs are the weighted values.
pub(crate) fn rows_sum_as_claimed(case: &Case<f64>) {
    for (queries, keys) in [(5, 6), (6, 3)] {
        case.with_every_mask(queries, keys, check);
    }
}

fn check(case: &Case<f64>, example: &Example<f64>, mask: &Mask, label: &str) {
    let Some(weights) = case.weights(example, mask, &EVALUATION) else {
        return;
    };
    let (mut seen, mut below_one) = (false, false);
    let (batch, heads, queries, keys) = weights.dim();
    for b in 0..batch {
        for i in 0..queries {
            for m in 0..heads {
                let kept: Vec<bool> = (0..keys)
                    .map(|j| mask.keeps([b, m, i, j], [queries, keys]))
                    .collect();
                let sees = kept.contains(&true) && case.is_row(b, i, mask, keys);
                let row = weights.slice(s![b, m, i, ..]);
                let (sum, near) = (row.sum(), |x: f64| (row.sum() - x).abs() < 1e-12);
                let fits = match case.card.rows {
                    _ if !sees => sum == 0.0,
                    Rows::One | Rows::OneOfEitherSign => near(1.0),
                    Rows::HalfToOne => sum > 0.5 && (sum < 1.0 || near(1.0)),
                    Rows::Free => true,
                };
                let beyond = match case.is_row(b, i, mask, keys) {
                    true => "",
                    false => {
                        ", but is zero beyond its example's length, as queries are of the same sequence"
                    }
                };
                let rows = case.card.rows;
                assert!(
                    fits,
                    "{label}: row {i} of example {b}, head {m}, {row} sums to {sum}; the card says {rows:?}{beyond}"
                );
                seen |= sees;
                below_one |= sees && !near(1.0);
                let signed = case.card.rows == Rows::OneOfEitherSign;
                let fits = |(&w, &kept): (&f64, &bool)| w == 0.0 || (kept && (w > 0.0 || signed));
                assert!(row.iter().zip(&kept).all(fits), "{label}: {row}");
            }
        }
    }
    // A card that claims less than it could.
    let sums_to_one = [Rows::One, Rows::OneOfEitherSign].contains(&case.card.rows);
    assert_eq!(below_one, seen && !sums_to_one, "{label}");
    let want = weighted(&weights, &example.v);
    assert_close(&case.output(example, mask, &EVALUATION), &want, label);
}

#[test]
fn rows_sum_as_claimed_and_outputs_are_weighted_values() {
    cases().iter().for_each(rows_sum_as_claimed);
}

#[test]
fn across_blocks() {
    let (queries, keys) = (130, 515);
    for case in few_cases() {
        case.with_every_mask(queries, keys, check);
    }
}

/// Attention that gives its weights too is attention and its weights, gradients included.
#[test]
fn they_come_with_the_output_at_once() {
    let mut compared = 0;
    for (queries, keys, cases) in [(5, 6, cases::<f64>()), (140, 290, few_cases())] {
        for case in cases {
            case.with_every_mask(queries, keys, |case, example, mask, label| {
                for pass in [EVALUATION, TRAINING] {
                    at_once(case, example, mask, (&pass, label));
                }
            });
            compared += usize::from(case.has_pairs());
        }
    }
    assert!(compared > 20, "{compared}");
}

fn at_once(case: &Case<f64>, example: &Example<f64>, mask: &Mask, (pass, label): (&Pass, &str)) {
    let inputs = case.inputs(example, mask);
    let settings = (case.mechanism()).settings(&inputs, &case.parameters, pass);
    // An average over draws, and what weighs no pairs.
    let (Ok(settings), Ok([q, k, v])) = (settings, inputs.get()) else {
        return;
    };
    let want = attend(q, k, v, &settings).unwrap();
    let (got, own) = attend_with_weights(q, k, v, &settings).unwrap();
    assert_close(&own, &weights(q, k, &settings).unwrap(), label);
    assert_close(&got.output, &want.output, label);
    let cotangent: Array4<f64> = random(want.output.raw_dim(), "cotangent");
    let [got, want] = [got, want].map(|one| attend_vjp(&one, cotangent.view()).unwrap());
    for (got, want) in [(&got.q, &want.q), (&got.k, &want.k), (&got.v, &want.v)] {
        let bound = Tolerance::gradients::<f64>().bound(want.iter().copied());
        let near = (got - want).iter().all(|x| x.abs() <= bound);
        assert!(near, "{label}");
    }
}
