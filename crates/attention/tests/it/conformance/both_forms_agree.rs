//! The linear-time form is the quadratic form in another order.

use crate::conformance::common::*;
use crate::conformance::plain::{attend, attend_vjp};
use bochner_attention::{
    Form, Magnitude, Mask, Settings,
    engine::Gradients,
    kernels::{self, Points},
};
use bochner_numerics::{Real, Tolerance};
use ndarray::{Array4, ArrayBase, Axis, Data, Dimension, s};

/// High enough for `f32`: where a query sees one key only, near a zero of f, the linear-time form's
/// gradient errs by about epsilon / floor^1.5, which at 1e-3 is the whole tolerance.
const FLOOR: f64 = 1e-2;

/// Points of one kind, `[sets, heads, R, width]`.
fn points<T: Real>(sets: usize) -> [Array4<T>; 2] {
    ["w1", "w2"].map(|name| random((sets, HEADS, 3, WIDTH), name))
}

fn settings<T: Real>(
    [w1, w2]: &[Array4<T>; 2],
    stationary: bool,
    floor: f64,
    mask: &Mask,
) -> Settings<T> {
    let points = match stationary {
        true => Points::Stationary { w: w1.view() },
        false => Points::Nonstationary {
            w1: w1.view(),
            w2: w2.view(),
        },
    };
    kernels::squared(points, floor, mask)
}

fn both<T: Real>(
    settings: &Settings<T>,
    Example { q, k, v }: &Example<T>,
) -> [(Array4<T>, Gradients<T>); 2] {
    let (q, k, v) = (q.view(), k.view(), v.view());
    [Form::Pairwise, Form::LinearTime].map(|form| {
        let settings = Settings {
            form,
            ..settings.clone()
        };
        let attended = attend(q, k, v, &settings).unwrap();
        let cotangent: Array4<T> = random(attended.output.raw_dim(), "output cotangent");
        let g = attend_vjp(&attended, cotangent.view()).unwrap();
        (attended.output, g)
    })
}

fn assert_within<T: Real, D: Dimension, S: Data<Elem = T>>(
    tolerance: Tolerance,
    [want, got]: [&ArrayBase<S, D>; 2],
    label: &str,
) {
    let pairs = got.iter().zip(want);
    let error = pairs.fold(0.0_f64, |m, (a, b)| {
        let error = (a.as_f64() - b.as_f64()).abs();
        if error > m || error.is_nan() {
            error
        } else {
            m
        }
    });
    let bound = tolerance.bound(want.iter().map(|x| x.as_f64()));
    assert!(error <= bound, "{label}: {error:e} exceeds {bound:e}");
}

fn check<T: Real>(settings: &Settings<T>, example: &Example<T>, label: &str) {
    let [(want, want_g), (got, got_g)] = both(settings, example);
    assert_within(Tolerance::outputs::<T>(), [&want, &got], label);
    let compare = |name: &str, pair: [&Array4<T>; 2]| {
        assert_within(
            Tolerance::gradients::<T>(),
            pair,
            &format!("{label}: {name}"),
        );
    };
    compare("q", [&want_g.q, &got_g.q]);
    compare("k", [&want_g.k, &got_g.k]);
    compare("v", [&want_g.v, &got_g.v]);
    let points = |g: &Gradients<T>| g.kernel.clone().unwrap().insert_axis(Axis(3));
    compare("points", [&points(&want_g), &points(&got_g)]);
}

/// Values that the linear-time form takes for narrow, and wide ones.
const VALUE_WIDTHS: [usize; 2] = [VALUE_WIDTH, 17];

fn example<T: Real>(queries: usize, keys: usize, value_width: usize) -> Example<T> {
    let v = random((BATCH, HEADS, keys, value_width), "v");
    Example {
        v,
        ..Example::new(queries, keys)
    }
}

/// Relative to the largest exponent of the whole sequence, the early rows would vanish.
#[test]
fn a_late_large_key() {
    let length = 700;
    let places = [0, 127, 128, 300, 699].into_iter();
    for (at, value_width) in places.flat_map(|at| VALUE_WIDTHS.map(|width| (at, width))) {
        let mut example = example::<f64>(length, length, value_width);
        example.k.slice_mut(s![.., .., at, ..]).fill(30.0);
        let points = points(1);
        for mask in [Mask::none().with_causality(), Mask::none()] {
            let settings = settings(&points, false, FLOOR, &mask);
            let settings = settings.with_key_weight(Magnitude::Norm { p: 2.0 });
            check(
                &settings,
                &example,
                &format!("{at} of {value_width}, {mask:?}"),
            );
        }
    }
}
