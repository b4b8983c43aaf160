use crate::conformance::common::*;
use bochner_attention::{Mask, card::Stream};
use ndarray::{Array4, s};

const POISON: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

fn is_clean(x: &Array4<f64>) -> bool {
    x.iter().all(|x| x.is_finite())
}

/// Example, head and position of each of `length` positions in a row.
fn places(length: usize) -> impl Fn(usize) -> (usize, usize, usize) {
    move |n| (n / (HEADS * length), n / length % HEADS, n % length)
}

/// Puts `poison` wherever no query of the example looks.
fn poisoned(example: &Example<f64>, mask: &Mask, poison: f64, keys_too: bool) -> Example<f64> {
    let mut example = example.clone();
    let (queries, keys) = (example.q.dim().2, example.k.dim().2);
    for (b, m, j) in (0..BATCH * HEADS * keys).map(places(keys)) {
        if (0..queries).any(|i| mask.keeps([b, m, i, j], [queries, keys])) {
            continue;
        }
        example.v.slice_mut(s![b, m, j, ..]).fill(poison);
        if keys_too {
            example.k.slice_mut(s![b, m, j, ..]).fill(poison);
        }
    }
    example
}

/// Keys and values that no query sees have no influence.
pub(crate) fn the_unseen_does_not_matter(case: &Case<f64>) {
    case.with_every_mask(5, 6, |case, example, mask, label| {
        // The inference network's mean knows lengths, but no matrix.
        let keys_too = !(case.sees_everything() && label.contains("pairs"));
        let want = case.output(example, mask, &EVALUATION);
        let want_gradients = case.gradients(example, mask, &EVALUATION);
        for poison in POISON {
            let poisoned = poisoned(example, mask, poison, keys_too);
            let label = format!("{label}, {poison}");
            assert_close(&case.output(&poisoned, mask, &EVALUATION), &want, &label);
            let got = case.gradients(&poisoned, mask, &EVALUATION);
            assert_same_gradients(&got, &want_gradients, &label);
            if !label.contains("none") {
                continue;
            }
            assert_eq!(got, want_gradients, "nothing was masked");
        }
    });
}

#[test]
fn keys_and_values_that_no_query_sees() {
    cases().iter().for_each(the_unseen_does_not_matter);
}

/// A NaN that a query does see is reported, or shows in the output.
#[test]
fn a_kept_nan_shows() {
    let mask = Mask::none().with_key_lengths(vec![5, 6]);
    for case in cases::<f64>().iter().filter(|case| case.card.takes(&mask)) {
        let mut example = Example::<f64>::new(6, 6);
        let seen = match case.card.streams.contains(&Stream::Values) {
            true => &mut example.v,
            false => &mut example.k,
        };
        seen[[0, 0, 4, 0]] = f64::NAN;
        let got = case.forward(&example, &mask, &EVALUATION);
        assert!(got.is_err() || !is_clean(&case.output(&example, &mask, &EVALUATION)));
    }
}
