use crate::common::*;
use bochner_attention::{
    Form, Magnitude, Mask, Points, Settings, Similarity, Variant, attend, attend_vjp, log_norm_sq,
    weights,
};
use bochner_numerics::Real;
use ndarray::{Array4, s};
use proptest::prelude::*;

const QUERIES: usize = 5;
const KEYS: usize = 6;

/// A mechanism of any p and floor, a mask, and by how much powers of ten scale the inputs.
#[derive(Clone, Debug)]
struct Extreme {
    variant: Variant,
    mask: Mask,
    queries: f64,
    keys: f64,
    /// Of one key alone.
    key: f64,
}

fn extreme() -> impl Strategy<Value = Extreme> {
    let variant = (0..few_variants().len(), -2.0..1.3, 0..3usize);
    let variant = variant.prop_map(|(variant, log_p, floor)| {
        let mut settings = serde_json::to_value(&few_variants()[variant]).unwrap();
        if settings.get("p").is_some() {
            settings["p"] = f64::powf(10.0, log_p).into();
            settings["floor"] = [0.0, 1e-5, 1.0][floor].into();
        }
        serde_json::from_value(settings).unwrap()
    });
    let power = || prop_oneof![Just(0.0), -30.0..30.0];
    (variant, 0..6usize, power(), power(), power())
        .prop_map(|(variant, mask, queries, keys, key)| Extreme {
            variant,
            mask: masks(QUERIES, KEYS)[mask].1.clone(),
            queries,
            keys,
            key,
        })
        .prop_filter("leaks", |extreme| {
            Case::<f64>::of(extreme.variant.clone()).takes(&extreme.mask)
        })
}

impl Extreme {
    fn example<T: Real>(&self) -> Example<T> {
        let mut example = Example::<f64>::new(QUERIES, KEYS);
        example.q *= f64::powf(10.0, self.queries);
        example.k *= f64::powf(10.0, self.keys);
        let mut key = example.k.slice_mut(s![.., .., 3, ..]);
        key.fill(1.0);
        key *= f64::powf(10.0, self.key);
        let cast = |x: &Array4<f64>| x.mapv(T::of);
        Example {
            q: cast(&example.q),
            k: cast(&example.k),
            v: cast(&example.v),
        }
    }
}

fn has_nan<'a, T: Real>(x: impl IntoIterator<Item = &'a T>) -> bool {
    x.into_iter().any(|x| x.is_nan())
}

/// Outputs are means of values, whatever the weights.
fn is_mean<T: Real>(output: &Array4<T>, v: &Array4<T>, tolerance: f64) -> bool {
    let largest = |x: &Array4<T>| x.iter().fold(T::zero(), |m, x| m.max(x.abs()));
    !has_nan(output) && largest(output) <= largest(v) * T::of(1.0 + tolerance)
}

fn check_mechanism<T: Real>(extreme: &Extreme) {
    let case = Case::<T>::of(extreme.variant.clone());
    let (example, mask) = (extreme.example::<T>(), &extreme.mask);
    let forward = case.forward(&example, mask, &EVALUATION).unwrap();
    assert!(
        is_mean(&forward.output, &example.v, 1e-5),
        "{}",
        forward.output
    );
    assert!(!has_nan(&forward.penalty), "{}", forward.penalty);
    for pass in [EVALUATION, TRAINING] {
        let g = case.gradients(&example, mask, &pass);
        assert!(!has_nan(&g.q), "q: {}", g.q);
        assert!(!has_nan(&g.k), "k: {}", g.k);
        assert!(!has_nan(&g.v), "v: {}", g.v);
        assert!(!has_nan(&g.parameters), "parameters: {:?}", g.parameters);
    }
}

fn check_rbf<T: Real>(extreme: &Extreme, magnitude: Magnitude) {
    let settings = Settings {
        similarity: Similarity::Rbf,
        magnitude,
        mask: &extreme.mask,
        dropout: None,
        form: Form::Automatic,
    };
    check_settings::<T>(extreme, &settings, 1e-5);
}

fn check_linear_time<T: Real>(extreme: &Extreme, magnitude: Magnitude, floor: f64) {
    let [w1, w2]: [Array4<T>; 2] = ["w1", "w2"].map(|name| random((1, HEADS, 3, WIDTH), name));
    let (w1, w2) = (w1.view(), w2.view());
    let points = Points::Nonstationary { w1, w2 };
    let settings = Settings {
        similarity: Similarity::Squared { points, floor },
        magnitude,
        mask: &extreme.mask,
        dropout: None,
        form: Form::LinearTime,
    };
    if settings.form_for(QUERIES, KEYS, VALUE_WIDTH).is_ok() {
        // A row whose similarities all vanish shows the rounding of the largest there are.
        check_settings(extreme, &settings, f64::from(f32::EPSILON) / floor);
    }
}

fn check_settings<T: Real>(extreme: &Extreme, settings: &Settings<T>, tolerance: f64) {
    let Example { q, k, v } = extreme.example::<T>();
    let attended = attend(q.view(), k.view(), v.view(), settings).unwrap();
    assert!(
        is_mean(&attended.output, &v, tolerance),
        "{}",
        attended.output
    );
    let cotangent: Array4<T> = random(attended.output.raw_dim(), "output cotangent");
    let cotangent = cotangent.view();
    let g = attend_vjp(q.view(), k.view(), v.view(), settings, &attended, cotangent).unwrap();
    assert!(!has_nan(&g.q), "q: {}", g.q);
    assert!(!has_nan(&g.k), "k: {}", g.k);
    assert!(!has_nan(&g.v), "v: {}", g.v);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mechanisms(extreme in extreme()) {
        check_mechanism::<f32>(&extreme);
        check_mechanism::<f64>(&extreme);
    }

    #[test]
    fn rbf_with_any_norm(extreme in extreme(), log_p in -2.0..1.3) {
        let norm = Magnitude::Norm { p: f64::powf(10.0, log_p) };
        for magnitude in [Magnitude::None, norm] {
            check_rbf::<f32>(&extreme, magnitude);
            check_rbf::<f64>(&extreme, magnitude);
        }
    }

    #[test]
    fn linear_time_with_any_norm(extreme in extreme(), log_p in -2.0..1.3, floor in 0..2usize) {
        let norm = Magnitude::Norm { p: f64::powf(10.0, log_p) };
        for magnitude in [Magnitude::None, norm] {
            check_linear_time::<f32>(&extreme, magnitude, [1e-5, 1.0][floor]);
            check_linear_time::<f64>(&extreme, magnitude, [1e-5, 1.0][floor]);
        }
    }
}

/// Softmax of products far beyond the range of f32: the largest wins, and ties are shared.
#[test]
fn huge_products_are_still_compared() {
    let unit = 2.0_f32.powi(100);
    let q = Array4::from_elem((1, 1, 1, 2), unit);
    let keys = [[1.0, 0.0], [2.0, -1.0], [2.0, -2.0], [3.0, -2.0]];
    let k = Array4::from_shape_fn((1, 1, 4, 2), |(.., j, n)| unit * keys[j][n]);
    let v = Array4::from_shape_fn((1, 1, 4, 1), |(.., j, _)| j as f32);
    let mask = Mask::none();
    let settings = |magnitude| Settings {
        similarity: Similarity::Rbf,
        magnitude,
        mask: &mask,
        dropout: None,
        form: Form::Automatic,
    };
    let output = |magnitude| {
        let attended = attend(q.view(), k.view(), v.view(), &settings(magnitude));
        attended.unwrap().output[[0, 0, 0, 0]]
    };
    // Products 1, 1, 0, 1.
    let got = output(Magnitude::Norm { p: 2.0 });
    assert!((got - 4.0 / 3.0).abs() < 1e-6, "{got}");
    // The nearest key wins: squared distances 1, 5, 10, 13.
    assert_eq!(output(Magnitude::None), 0.0);
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
            let settings = Settings {
                similarity,
                magnitude: Magnitude::Norm { p },
                mask: &mask,
                dropout: None,
                form: Form::Automatic,
            };
            let weights = weights(k.view(), k.view(), &settings).unwrap();
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
