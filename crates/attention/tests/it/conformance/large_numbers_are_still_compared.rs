//! Arguments near the ends of their range, one property at a time.

use crate::conformance::common::*;
use crate::conformance::plain::{
    Plain, Similarity, for_all_settings, for_all_settings_in_linear_time, with,
};
use bochner_attention::{
    Decoder, DecoderSize, Form, Magnitude, Mask, Points, RandomFeatureMap, Settings, Trained,
    attend, attend_vjp, attend_with_weights, log_norm_sq, weights,
};
use bochner_numerics::Real;
use ndarray::{Array3, Array4, s};

/// Softmax of products far beyond the range of f32: the largest wins, and ties are shared.
#[test]
fn huge_products_are_still_compared() {
    let unit = 2.0_f32.powi(100);
    let q = Array4::from_elem((1, 1, 1, 2), unit);
    let keys = [[1.0, 0.0], [2.0, -1.0], [2.0, -2.0], [3.0, -2.0]];
    let k = Array4::from_shape_fn((1, 1, 4, 2), |(.., j, n)| unit * keys[j][n]);
    let v = Array4::from_shape_fn((1, 1, 4, 1), |(.., j, _)| j as f32);
    let mask = Mask::none();
    let settings = |magnitude| Plain {
        similarity: Similarity::Rbf,
        magnitude,
        mask: &mask,
        dropout: None,
        form: Form::Automatic,
    };
    let output = |q: &Array4<f32>, magnitude| {
        let attended = attend(
            q.view(),
            k.view(),
            v.view(),
            &settings(magnitude).settings(),
        );
        attended.unwrap().output[[0, 0, 0, 0]]
    };
    // Products 1, 1, 0, 1.
    let got = output(&q, Magnitude::Norm { p: 2.0 });
    assert!((got - 4.0 / 3.0).abs() < 1e-6, "{got}");
    // The nearest key wins: squared distances 1, 5, 10, 13.
    assert_eq!(output(&q, Magnitude::None), 0.0);
    // Squares of keys overflow without the help of the query: of 1, 5, 8 and 13 the first is the least.
    assert_eq!(output(&Array4::zeros(q.raw_dim()), Magnitude::None), 0.0);
}

/// Equal keys share the weight; the gradient of each is as large as the query, or as the key itself.
#[test]
fn equal_keys_share_the_weight_at_any_size() {
    let (factor, mask) = (2.0_f64.powi(600), Mask::none());
    let mut example = Example::<f64>::new(3, 4);
    let first = example.k.slice(s![.., .., ..1, ..]).to_owned();
    example.k.assign(&first);
    for similarity in [Similarity::Softmax, Similarity::Rbf] {
        let settings = with(similarity, Magnitude::None, &mask, None).settings();
        let results = |of_queries: f64, of_keys: f64| {
            let (q, k) = (&example.q * of_queries, &example.k * of_keys);
            let attended = attend(q.view(), k.view(), example.v.view(), &settings).unwrap();
            let keys = attend_vjp(&attended, attended.output.view()).unwrap().k;
            (attended.output.clone(), keys)
        };
        let (want, want_keys) = results(1.0, 1.0);
        for (of_queries, of_keys) in [(factor, 1.0), (1.0, factor), (factor, factor)] {
            let (got, keys) = results(of_queries, of_keys);
            assert_close(&got, &want, "outputs");
            if of_queries == of_keys {
                assert_close(&(keys / factor), &want_keys, "gradients of the keys");
            }
        }
    }
}

/// Where values times cotangents could overflow, gradients are computed in other units: to the bit
/// what they are without, times a power of two.
#[test]
fn gradients_do_not_depend_on_units() {
    let length = 600;
    let array = |width, name| random((2, 2, length, width), name);
    let (q, k, v): (Array4<f32>, _, _) = (array(3, "q"), array(3, "k"), array(4, "v"));
    let cotangent: Array4<f32> = array(4, "cotangent");
    let (w1, w2) = (random((1, 2, 5, 3), "w1"), random((1, 2, 5, 3), "w2"));
    let points = Points::Nonstationary {
        w1: w1.view(),
        w2: w2.view(),
    };
    let squared = Similarity::Squared {
        points,
        floor: 1e-5,
    };
    for mask in [&Mask::none(), &Mask::none().with_causality()] {
        for (similarity, form) in [
            (squared, Form::LinearTime),
            (squared, Form::Quadratic),
            (Similarity::Rbf, Form::Automatic),
        ] {
            let settings = Plain {
                similarity,
                magnitude: Magnitude::Norm { p: 1.5 },
                mask,
                dropout: None,
                form,
            };
            let gradients = |by: [f32; 2]| {
                let (v, cotangent) = (&v * by[0], &cotangent * by[1]);
                let (q, k, v) = (q.view(), k.view(), v.view());
                let attended = attend(q, k, v, &settings.settings()).unwrap();
                attend_vjp(&attended, cotangent.view()).unwrap()
            };
            let want = gradients([1.0; 2]);
            // With the second and the third values are in other units forwards, too.
            for powers in [(60, 10), (115, 4), (115, -90)] {
                let by = [powers.0, powers.1].map(|power| 2.0_f32.powi(power));
                let (got, both) = (gradients(by), 2.0_f32.powi(powers.0 + powers.1));
                let label = format!("{form:?}, {mask:?}, {powers:?}");
                assert_eq!(got.q, &want.q * both, "{label}");
                assert_eq!(got.k, &want.k * both, "{label}");
                assert_eq!(got.v, &want.v * by[1], "{label}");
                if let (Some(got), Some(want)) = (got.points, &want.points) {
                    assert_eq!(got.w1, &want.w1 * both, "{label}");
                    assert_eq!(got.w2, want.w2.as_ref().map(|w2| w2 * both), "{label}");
                }
            }
        }
    }
}

/// At p = 0.05 and 64 numbers, squared norms lie far beyond f32, and at p = 0.005 far beyond f64;
/// the largest takes it all.
#[test]
fn overflowing_norms_are_still_compared() {
    for (p, beyond) in [(0.05, 128.0), (0.005, 1024.0)] {
        let width = 64;
        let k: Array4<f32> = random((1, 1, 9, width), "wide keys");
        let rows = k.to_shape((9, width)).unwrap();
        let norms = log_norm_sq(rows.mapv(f64::from).view(), p).unwrap();
        let largest = |rows: std::ops::Range<usize>| {
            let in_order = |&a: &usize, &b: &usize| norms[a].total_cmp(&norms[b]);
            rows.max_by(in_order).unwrap()
        };
        assert!(norms[largest(0..9)] > beyond * 2.0_f64.ln());
        let w: Array4<f32> = random((1, 1, 3, width), "wide points");
        let points = Points::Stationary { w: w.view() };
        let floor = 1e-5;
        let mask = Mask::none().with_causality();
        for similarity in [Similarity::Rbf, Similarity::Squared { points, floor }] {
            let settings = Plain {
                similarity,
                magnitude: Magnitude::Norm { p },
                mask: &mask,
                dropout: None,
                form: Form::Automatic,
            };
            let weights = weights(k.view(), k.view(), &settings.settings()).unwrap();
            for i in 0..9 {
                assert_eq!(
                    weights[[0, 0, i, largest(0..i + 1)]],
                    1.0,
                    "p = {p}, row {i}"
                );
            }
        }
    }
}

/// Each argument in turn as large as its type allows: outputs are finite and gradients no NaN.
#[test]
fn the_largest_numbers() {
    for largest in 0..4 {
        let check = |settings: &Plain<f64>, example: &Example<f64>, label: &str| {
            let mut arrays = [&example.q, &example.k, &example.v].map(Array4::clone);
            let all = arrays.iter_mut().enumerate();
            for (_, array) in all.filter(|&(n, _)| n == largest || largest == 3) {
                array.mapv_inplace(|x| x.signum() * 0.9 * f64::MAX);
            }
            let [q, k, v] = arrays.each_ref().map(|array| array.view());
            let attended = attend(q, k, v, &settings.settings()).unwrap();
            let finite = |array: &Array4<f64>| array.iter().all(|x| x.is_finite());
            assert!(finite(&attended.output), "{label}, {largest}");
            let cotangent: Array4<f64> = random(attended.output.raw_dim(), "output cotangent");
            let g = attend_vjp(&attended, cotangent.view()).unwrap();
            let points = g.points.iter().flat_map(|g| [Some(&g.w1), g.w2.as_ref()]);
            let all = [&g.q, &g.k, &g.v].into_iter().chain(points.flatten());
            for (n, array) in all.enumerate() {
                assert!(finite(array), "{label}, {largest}: gradient {n}");
            }
        };
        for_all_settings(3, 5, check);
        for_all_settings_in_linear_time(3, 5, check);
    }
}

/// A mean is no larger than its terms, though their sum is.
#[test]
fn means_of_large_values() {
    means_of::<f32>(&[1e30, 1e36, -3e38], 1e37);
    means_of::<f64>(&[1e300, 1e306, -1.7e308], 1e307);
}

fn means_of<T: Real>(values: &[f64], decoded: f64) {
    let (q, k) = (Array4::zeros((1, 1, 2, 3)), Array4::zeros((1, 1, 1024, 3)));
    let w: Array4<T> = random((1, 1, 2, 3), "w1");
    let squared = Similarity::Squared {
        points: Points::Stationary { w: w.view() },
        floor: 1e-5,
    };
    let features = Similarity::Features {
        w: w.view(),
        map: RandomFeatureMap::Positive,
        trained: Trained::No,
    };
    let (none, norm) = (Mask::none(), Magnitude::Norm { p: 2.0 });
    for (similarity, magnitude, form) in [
        (Similarity::Rbf, norm, Form::Automatic),
        (squared, norm, Form::Quadratic),
        (squared, norm, Form::LinearTime),
        (features, Magnitude::None, Form::Quadratic),
        (features, Magnitude::None, Form::LinearTime),
    ] {
        let settings = Plain {
            form,
            ..with(similarity, magnitude, &none, None)
        };
        let assert_all = |output: Array4<T>, value: f64| {
            for x in output {
                assert!(
                    (x.as_f64() / value - 1.0).abs() < 1e-5,
                    "{form:?}: {x} of {value}"
                );
            }
        };
        for &value in values {
            let v = Array4::from_elem((1, 1, 1024, 2), T::of(value));
            let attended = attend(q.view(), k.view(), v.view(), &settings.settings()).unwrap();
            assert_all(attended.output, value);
            let attended = attend_with_weights(q.view(), k.view(), v.view(), &settings.settings());
            assert_all(attended.unwrap().0.output, value);
        }
        // Sums that are kept from position to position have to be in range.
        if form != Form::LinearTime {
            let size = DecoderSize {
                batch: 1,
                heads: 1,
                width: 3,
                value_width: 2,
            };
            let mut decoder = Decoder::new(&settings.settings(), size).unwrap();
            let (x, v) = (Array4::zeros((1, 1, 1, 3)), T::of(decoded));
            let v = Array4::from_elem((1, 1, 1, 2), v);
            for _ in 0..40 {
                let output = decoder.step(x.view(), x.view(), v.view()).unwrap();
                assert_all(output, decoded);
            }
        }
    }
}

/// Values that are divided before they are summed up leave an infinite one as it is: it says what came in, where the
/// largest number of the type would say that nothing was wrong. (Sums of features of either sign make NaN of it.)
#[test]
fn infinite_values_stay_infinite() {
    for_all_settings(3, 5, |settings, example, label| {
        let mut v = example.v.mapv(|x| x.signum() * 0.9 * f64::MAX);
        v[[0, 0, 0, 0]] = f64::INFINITY;
        let [q, k, v] = [example.q.view(), example.k.view(), v.view()];
        let settings = settings.settings();
        let outputs = [
            attend(q, k, v, &settings).unwrap().output,
            attend_with_weights(q, k, v, &settings).unwrap().0.output,
        ];
        let shown = weights(q, k, &settings).unwrap();
        for output in outputs {
            for (i, x) in output.slice(s![0, 0, .., 0]).iter().enumerate() {
                let is_seen = shown[[0, 0, i, 0]] > 0.0;
                assert_eq!(*x == f64::INFINITY, is_seen, "{label}, row {i}: {x}");
            }
        }
    });
}

/// One row of each of some keys: the weights that the formula gives, in double precision where the type has no
/// room.
fn weights_of_one_row<T: Real>(settings: &Settings<T>, query: &[f64], keys: &[&[f64]]) -> Vec<f64> {
    let array = |rows: &[&[f64]]| {
        let width = rows[0].len();
        Array4::from_shape_fn((1, 1, rows.len(), width), |(.., i, n)| T::of(rows[i][n]))
    };
    let (q, k) = (array(&[query]), array(keys));
    let shown = weights(q.view(), k.view(), settings).unwrap();
    let values = Array4::from_shape_fn((1, 1, keys.len(), keys.len()), |(.., i, j)| {
        if i == j { T::one() } else { T::zero() }
    });
    let attended = attend(q.view(), k.view(), values.view(), settings).unwrap();
    for (output, weight) in attended.output.iter().zip(&shown) {
        assert!((output.as_f64() - weight.as_f64()).abs() < 1e-6);
    }
    // The gradients are those of the same weights.
    let cotangent = Array4::from_shape_fn(attended.output.raw_dim(), |(.., n)| {
        if n == 0 { T::one() } else { T::zero() }
    });
    let g = attend_vjp(&attended, cotangent.view()).unwrap();
    for (j, weight) in shown.iter().enumerate() {
        assert!((g.v[[0, 0, j, 0]].as_f64() - weight.as_f64()).abs() < 1e-6);
    }
    assert!([&g.q, &g.k].iter().all(|g| g.iter().all(|x| x.is_finite())));
    shown.iter().map(|x| x.as_f64()).collect()
}

/// However loud a key is, it has no weight if its similarity is exactly zero and that of another is not.
fn loud_keys_without_similarity<T: Real>() {
    let mask = Mask::none();
    let zero: Array4<T> = Array4::zeros((1, 1, 1, 2));
    let mut half_turn = zero.clone();
    half_turn[[0, 0, 0, 0]] = T::of(std::f64::consts::PI);
    // The features of a key are 1 + cos(pi k_1), which is zero at one, and the sine, which no query at zero sees.
    let points = Points::Nonstationary {
        w1: zero.view(),
        w2: half_turn.view(),
    };
    let squared = Settings::squared(points, 0.0, &mask);
    // The query, and the first coordinates of keys without and with a similarity.
    let kernels = [
        (Settings::linear(&mask), [1.0, 0.0], [0.0, 1.0]),
        (squared, [0.0, 0.0], [1.0, 0.0]),
    ];
    for (settings, query, [without, with]) in kernels {
        let settings = Settings {
            magnitude: Magnitude::Norm { p: 2.0 },
            ..settings
        };
        let label = format!("{}, {:?}", T::NAME, settings.kernel);
        // Exponents from 51 to 5975: factors that are small, subnormal and zero in one type or in both.
        for loud in [12.0, 15.5, 16.0, 30.0, 45.5, 130.0] {
            let keys: [&[f64]; 3] = [&[without, loud], &[without, loud / 2.0], &[with, 0.0]];
            let shown = weights_of_one_row(&settings, &query, &keys);
            assert_eq!(shown, [0.0, 0.0, 1.0], "{label}, {loud}");
            // Two keys that count keep their ratio.
            let keys: [&[f64]; 3] = [&[without, loud], &[with, 0.0], &[with, 2.0]];
            let shown = weights_of_one_row(&settings, &query, &keys);
            let ratio = (4.0 / (2.0 * 2.0_f64.sqrt())).exp();
            let want = [0.0, 1.0 / (1.0 + ratio), ratio / (1.0 + ratio)];
            let close = shown.iter().zip(want).all(|(x, y)| (x - y).abs() < 1e-6);
            assert!(close, "{label}, {loud}: {shown:?} instead of {want:?}");
        }
    }
}

#[test]
fn what_is_orthogonal_has_no_weight_however_loud() {
    loud_keys_without_similarity::<f32>();
    loud_keys_without_similarity::<f64>();
}

/// What is no number is not hidden where it is met.
#[test]
fn nan_is_passed_on() {
    for argument in 0..3 {
        let check = |settings: &Plain<f64>, example: &Example<f64>, label: &str| {
            let mut arrays = [&example.q, &example.k, &example.v].map(Array4::clone);
            // Any of the numbers that are none.
            arrays[argument][[0, 0, 1, 1]] = f64::from_bits(f64::NAN.to_bits() + 1954);
            let [q, k, v] = arrays.each_ref().map(|array| array.view());
            let attended = attend(q, k, v, &settings.settings()).unwrap();
            let keeps = |i, j| settings.mask.keeps([0, 0, i, j], [3, 5]);
            for ((example, head, i, column), x) in attended.output.indexed_iter() {
                let met = match argument {
                    0 => i == 1 && (0..5).any(|j| keeps(i, j)),
                    1 => keeps(i, 1),
                    _ => keeps(i, 1) && column == 1,
                };
                let met = met && (example, head) == (0, 0);
                // A value may be dropped after all.
                let shows = met && (argument < 2 || settings.dropout.is_none());
                assert!(met || !x.is_nan(), "{label}, {argument}, row {i}: {x}");
                assert!(!shows || x.is_nan(), "{label}, {argument}, row {i}: {x}");
            }
        };
        for_all_settings(3, 5, check);
        for_all_settings_in_linear_time(3, 5, check);
    }
}

#[test]
fn a_point_that_is_no_number_shows_in_its_head() {
    let example = Example::<f64>::new(3, 5);
    let mut w = Array3::ones((HEADS, 4, WIDTH));
    w[[0, 3, 1]] = f64::NAN;
    let mask = Mask::none();
    for form in [Form::Quadratic, Form::LinearTime] {
        let points = Points::shared_stationary(w.view());
        let floor = 1e-5;
        let settings = Plain {
            form,
            ..Plain::new(Similarity::Squared { points, floor }, &mask)
        };
        let [q, k, v] = [&example.q, &example.k, &example.v].map(|array| array.view());
        let attended = attend(q, k, v, &settings.settings()).unwrap();
        for ((_, head, ..), x) in attended.output.indexed_iter() {
            assert_eq!(x.is_nan(), head == 0, "{form:?}");
        }
    }
}
