//! Attention pair by pair is the same in blocks of any size.

use crate::conformance::common::*;
use crate::conformance::plain::Plain;
use crate::conformance::plain::for_all_settings;
use crate::conformance::plain::{Gradients, attend, attend_vjp};
use bochner_attention::{Error, Form, engine::Blocks};
use bochner_numerics::ArgumentError;
use ndarray::Array4;
use std::collections::BTreeMap;

const ONE: Blocks = blocks(1, 1);
const UNEVEN: Blocks = blocks(3, 70);
const ROWS: Blocks = blocks(2, usize::MAX);
const COLUMNS: Blocks = blocks(usize::MAX, 64);

const fn blocks(queries: usize, keys: usize) -> Blocks {
    Blocks { queries, keys }
}

fn results(
    form: Form,
    settings: &Plain<f64>,
    Example { q, k, v }: &Example<f64>,
) -> (Array4<f64>, Gradients<f64>) {
    let (q, k, v) = (q.view(), k.view(), v.view());
    let settings = Plain { form, ..*settings };
    let attended = attend(q, k, v, &settings.settings()).unwrap();
    let cotangent: Array4<f64> = random(attended.output.raw_dim(), "output cotangent");
    let g = attend_vjp(&attended, cotangent.view()).unwrap();
    (attended.output, g)
}

#[test]
fn for_every_setting() {
    for_all_settings(7, 90, |settings, example, label| {
        let (output, g) = results(Form::Pairwise, settings, example);
        for blocks in [ONE, UNEVEN, ROWS, COLUMNS] {
            let (got, got_g) = results(Form::Blocked(blocks), settings, example);
            let label = format!("{label}, {blocks:?}");
            assert_close(&got, &output, &label);
            assert_close(&got_g.q, &g.q, &format!("{label}: q"));
            assert_close(&got_g.k, &g.k, &format!("{label}: k"));
            assert_close(&got_g.v, &g.v, &format!("{label}: v"));
            let points = |g: &Gradients<f64>| g.kernel.clone().unwrap_or_default();
            assert_close(&points(&got_g), &points(&g), &format!("{label}: points"));
        }
    });
}

/// A test of other blocks than the chosen ones would pass if nothing chose them.
#[test]
fn blocks_are_those_asked_for() {
    let mut changed = BTreeMap::new();
    for_all_settings(7, 40, |settings, example, label| {
        let [one, chosen] =
            [Form::Blocked(ONE), Form::Pairwise].map(|form| results(form, settings, example).0);
        let kernel = label.split(", mask").next().unwrap().to_owned();
        *changed.entry(kernel).or_insert(false) |= one != chosen;
    });
    for (kernel, changed) in changed {
        assert!(
            changed,
            "{kernel}: sums block by block round as those of all keys"
        );
    }
    let Blocks { queries, keys } = Blocks::of::<f64>();
    for_all_settings(2, keys + 30, |settings, example, label| {
        // Random features have blocks of their own.
        if label.starts_with("features") {
            return;
        }
        let same = Form::Blocked(blocks(queries, keys));
        let [got, want] = [same, Form::Pairwise].map(|form| results(form, settings, example));
        assert!(got == want, "{label}");
    });
}

#[test]
fn there_is_something_in_them() {
    for_all_settings(2, 3, |settings, Example { q, k, v }, _| {
        for blocks in [blocks(0, 4), blocks(4, 0)] {
            let form = Form::Blocked(blocks);
            let settings = Plain { form, ..*settings };
            let refused = attend(q.view(), k.view(), v.view(), &settings.settings()).unwrap_err();
            assert!(matches!(
                refused,
                Error::Argument(ArgumentError::Empty { .. })
            ));
            assert!(
                settings
                    .settings()
                    .form_for(2, 3, [WIDTH, VALUE_WIDTH])
                    .is_err()
            );
        }
    });
}
