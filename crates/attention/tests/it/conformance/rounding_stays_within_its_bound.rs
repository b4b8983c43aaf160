//! The error bounds that [`Form::Automatic`] and [`Form::LinearTime`] document.

use crate::conformance::common::*;
use crate::conformance::plain::{attend, attend_vjp};
use bochner_attention::{
    Form, Magnitude, Mask, Settings,
    kernels::{self, Points},
};
use bochner_numerics::check::largest;
use bochner_numerics::{Real, Seed, standard_normal};
use ndarray::Array4;
use std::f64::consts::FRAC_PI_2;

const LENGTH: usize = 300;
const FLOOR: f64 = 1e-5;

/// Keys at such a distance from all queries that $f = \cos(w \cdot (q - k))$ is about `spread`.
fn near_zeros(spread: f64, length: usize) -> Example<f64> {
    let mut stream = Seed::new(4).stream("near zeros");
    let mut array = |at: f64, spread: f64, width| {
        let number = || at + spread * standard_normal::<f64>(&mut stream);
        // Rounded, so that both precisions hold the same number.
        Array4::from_shape_simple_fn((1, 1, length, width), number).mapv(|x| f64::from(x as f32))
    };
    Example {
        q: array(0.3, spread, 1),
        k: array(0.3 + FRAC_PI_2, spread, 1),
        v: array(0.0, 1.0, VALUE_WIDTH),
    }
}

/// Outputs, and the gradients of queries, keys and values for a cotangent that is the values.
fn results<T: Real>(example: &Example<f64>, form: Form, mask: &Mask) -> [Array4<f64>; 4] {
    let cast = |x: &Array4<f64>| x.mapv(T::of);
    let (q, k, v) = (cast(&example.q), cast(&example.k), cast(&example.v));
    let w = Array4::ones((1, 1, 1, 1));
    let settings = Settings {
        form,
        ..kernels::squared(Points::Stationary { w: w.view() }, FLOOR, mask)
    };
    let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
    let gradients = attend_vjp(&attended, v.view()).unwrap();
    let (q, k, v) = (gradients.q, gradients.k, gradients.v);
    [attended.output, q, k, v].map(|x| x.mapv(T::as_f64))
}

/// The error of each form in `f32`, relative to the largest value.
fn errors(example: &Example<f64>) -> [f64; 2] {
    let [want, ..] = results::<f64>(example, Form::Pairwise, &Mask::none());
    [Form::Pairwise, Form::LinearTime].map(|form| {
        let [got, ..] = results::<f32>(example, form, &Mask::none());
        largest(&(got - &want)) / largest(&example.v)
    })
}

#[test]
fn where_all_keys_lie_near_zeros_of_the_kernel() {
    let bound = f64::from(f32::EPSILON) / FLOOR;
    for spread in [0.0, 1e-4, 1e-3, 3e-3, 1e-2] {
        let [quadratic, linear] = errors(&near_zeros(spread, LENGTH));
        println!("{spread:e}: {quadratic:e} {linear:e}");
        assert!(quadratic < 1e-2 * bound, "{spread:e}: {quadratic:e}");
        assert!(linear < bound, "{spread:e}: {linear:e}");
    }
}

#[test]
fn elsewhere_it_is_small() {
    let [quadratic, linear] = errors(&near_zeros(1.0, LENGTH));
    println!("{quadratic:e} {linear:e}");
    assert!(quadratic < 1e-6 && linear < 1e-6);
}

/// Unasked, the linear-time form is kept where it is as good as the other, and nowhere else.
#[test]
fn unasked_no_accuracy_is_given_up() {
    // Long enough for the form to be chosen, were it not for its error.
    for (mask, length) in [(Mask::none(), 300), (Mask::none().with_causality(), 1500)] {
        for (spread, kept) in [
            (1e-3, Form::Pairwise),
            (0.05, Form::Pairwise),
            (0.6, Form::LinearTime),
        ] {
            let mut example = near_zeros(spread, length);
            if kept == Form::LinearTime {
                example.q.fill(0.3 + FRAC_PI_2);
            }
            let [got, want] =
                [Form::Automatic, kept].map(|form| results::<f32>(&example, form, &mask));
            assert_eq!(got, want, "{spread:e}, {mask:?}");
        }
    }
}

/// The similarity of the queries lies on either side of the 1/64 from which on the linear-time form is kept unasked.
#[test]
fn unasked_gradients_are_within_the_stated_bound() {
    let share = 1.0 / 64.0;
    for (spread, kept) in [(0.11, Form::Pairwise), (0.14, Form::LinearTime)] {
        let mut example = near_zeros(spread, LENGTH);
        example.q.mapv_inplace(|q| 0.3 + (q - 0.3) / 16.0);
        let similarity = |q: f64| {
            let squares = example.k.iter().map(|k| (q - k).cos().powi(2));
            squares.sum::<f64>() / LENGTH as f64
        };
        let least = example.q.iter().copied().map(similarity);
        let least = least.fold(1.0, f64::min) / share;
        assert!((0.7..1.3).contains(&least), "{spread}: {least}");
        assert_eq!(least > 1.0, kept == Form::LinearTime, "{spread}: {least}");

        let mask = Mask::none();
        let [got, of_kept] =
            [Form::Automatic, kept].map(|form| results::<f32>(&example, form, &mask));
        assert_eq!(got, of_kept, "{spread}");
        let want = results::<f64>(&example, Form::Pairwise, &mask);
        // The cotangent is the values, the frequency 1.
        let (value, epsilon) = (largest(&example.v), f64::from(f32::EPSILON));
        let through_weights = epsilon / share.powf(1.5) * value * value;
        let direct = epsilon / share * value;
        let bounds = [direct, through_weights, through_weights, direct];
        for (i, bound) in bounds.into_iter().enumerate() {
            let off = largest(&(&got[i] - &want[i]));
            assert!(off < bound, "{spread}, result {i}: {off:e} of {bound:e}");
        }
    }
}

/// Large keys are unlike most queries, and the largest key outweighs the others: some query's mean similarity is then
/// nearly the floor.
#[test]
fn unasked_large_keys_are_weighed_pair_by_pair() {
    let length = 1500;
    let array = |width, purpose| random::<f32, _>((1, 1, length, width), purpose);
    let (q, k, v) = (array(WIDTH, "q"), array(WIDTH, "k") * 4.0, array(2, "v"));
    let (w, mask) = (random::<f32, _>((1, 1, 64, WIDTH), "w"), Mask::none());
    let points = Points::Stationary { w: w.view() };
    let norm = Magnitude::Norm { p: 2.0 };
    let settings = |form| Settings {
        form,
        ..kernels::squared(points, FLOOR, &mask).with_key_weight(norm)
    };
    let chosen = settings(Form::Automatic).form_for(length, length, [WIDTH, 2]);
    assert_eq!(chosen.unwrap(), Form::LinearTime);
    let output = |form| {
        let attended = attend(q.view(), k.view(), v.view(), &settings(form));
        attended.unwrap().output
    };
    let want = output(Form::Pairwise);
    let bound = 64.0 * f32::EPSILON * v.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
    let is_accurate = |form| {
        let got = output(form);
        let mut pairs = got.iter().zip(&want);
        pairs.all(|(got, want)| (got - want).abs() <= bound)
    };
    assert!(!is_accurate(Form::LinearTime));
    assert!(is_accurate(Form::Automatic));
}
