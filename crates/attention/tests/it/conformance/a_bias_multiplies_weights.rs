//! A bias is added to the logarithms of weights, whatever their kernel.

use crate::conformance::attention_is_what_its_formula_says::{assert_near, exponent, similarity};
use crate::conformance::common::*;
use crate::conformance::plain::*;
use crate::conformance::plain::{attend, attend_vjp, weights};
use bochner_attention::conformance::{Pair, Reference};
use bochner_attention::engine::alibi_slopes;
use bochner_attention::{
    Bias, Form, Magnitude, Mask, Settings,
    engine::{Decoder, DecoderSize},
};
use bochner_numerics::{finite_difference, relative_error};
use ndarray::{Array2, Array4, ArrayD, Axis, s};

/// A bias, and what its numbers say of a pair.
struct Given {
    name: &'static str,
    bias: Bias<f64>,
    of: Box<dyn Fn([usize; 4]) -> f64>,
}

fn table() -> Array2<f64> {
    random((HEADS, 7), "table")
}

fn all(queries: usize, keys: usize) -> Vec<Given> {
    let of = move |values: &Array4<f64>| -> Box<dyn Fn([usize; 4]) -> f64> {
        let (values, (examples, heads, ..)) = (values.clone(), values.dim());
        Box::new(move |[b, m, i, j]| values[[b % examples, m % heads, i, j]])
    };
    let distance = move |i, j| (i + keys) as i64 - queries as i64 - j as i64;
    let mut biases = Vec::new();
    for (name, shape) in [
        ("of all", (1, 1)),
        ("of heads", (1, HEADS)),
        ("of each", (BATCH, HEADS)),
    ] {
        let values = random((shape.0, shape.1, queries, keys), name);
        biases.push(Given {
            name,
            bias: Bias::fixed(values.view()).unwrap(),
            of: of(&values),
        });
    }
    let slopes = alibi_slopes(HEADS);
    biases.push(Given {
        name: "ALiBi",
        bias: Bias::alibi(),
        of: Box::new(move |[_, m, i, j]| -slopes[m] * distance(i, j).abs() as f64),
    });
    let table = table();
    biases.push(Given {
        name: "relative",
        bias: Bias::relative(table.view()).unwrap(),
        of: Box::new(move |[_, m, i, j]| table[[m, (distance(i, j).clamp(-3, 3) + 3) as usize]]),
    });
    biases
}

fn biased(settings: &Plain<f64>, bias: &Bias<f64>) -> Settings<f64> {
    Settings {
        bias: Some(bias.clone()),
        ..settings.settings()
    }
}

#[test]
fn weights_and_outputs() {
    let sets = PointSets::new();
    for (queries, keys) in [(5, 6), (6, 4), (130, 290)] {
        let (example, biases) = (Example::new(queries, keys), all(queries, keys));
        for (place, name) in SIMILARITIES.into_iter().enumerate() {
            for (n, (mask_name, mask)) in masks(queries, keys).into_iter().enumerate() {
                let given = &biases[n % biases.len()];
                let magnitudes = [Magnitude::None, Magnitude::Norm { p: 1.5 }];
                // Across blocks a mask has one of them, for each similarity the other one.
                let one = (n + place) % 2;
                let some = if keys > 100 { one..=one } else { 0..=1 };
                for &magnitude in &magnitudes[some] {
                    let settings = with(sets.similarity(name), magnitude, &mask, None);
                    let label = format!("{name}, {magnitude:?}, {mask_name}, {}", given.name);
                    let weight = |pair: Pair| {
                        let log = exponent(magnitude, &pair);
                        let bias = (given.of)([pair.b, pair.m, pair.i, pair.j]);
                        similarity(&settings, &pair) * (log + bias).exp()
                    };
                    let want = Reference::with_dropout(&example.inputs(&mask), None, weight);
                    let settings = biased(&settings, &given.bias);
                    let [q, k, v] = [&example.q, &example.k, &example.v].map(|x| x.view());
                    let shown = weights(q, k, &settings).unwrap();
                    assert_near(&shown, &want.weights.unwrap(), &label);
                    let output = attend(q, k, v, &settings).unwrap().output;
                    assert_near(&output, &want.output, &label);
                }
            }
        }
    }
}

/// A loss of attention with a bias, as a function of all its inputs.
fn loss(example: &Example<f64>, settings: &Settings<f64>) -> f64 {
    let [q, k, v] = [&example.q, &example.k, &example.v].map(|x| x.view());
    let output = attend(q, k, v, settings).unwrap().output;
    let cotangent: Array4<f64> = random(output.raw_dim(), "output cotangent");
    (output * cotangent).sum()
}

#[test]
fn gradients_agree_with_finite_differences() {
    let (queries, keys) = (5, 6);
    let (example, sets) = (Example::new(queries, keys), PointSets::new());
    for name in ["softmax", "rbf", "non-stationary, own"] {
        for (mask_name, mask) in masks(queries, keys) {
            let norm = Magnitude::Norm { p: 1.5 };
            let plain = with(sets.similarity(name), norm, &mask, dropout(0.3, "weights"));
            let cotangent: Array4<f64> =
                random((BATCH, HEADS, queries, VALUE_WIDTH), "output cotangent");
            for heads in [1, HEADS] {
                let values: Array4<f64> = random((1, heads, queries, keys), "bias");
                let of = |numbers: &[f64]| {
                    let values = Array4::from_shape_vec(values.raw_dim(), numbers.to_vec());
                    Bias::fixed(values.unwrap().view()).unwrap()
                };
                let numbers = values.as_slice().unwrap();
                check(
                    &example,
                    &plain,
                    &cotangent,
                    numbers,
                    &of,
                    &format!("{name}, {mask_name}"),
                );
            }
            let table = table();
            let of = |numbers: &[f64]| {
                let table = Array2::from_shape_vec(table.raw_dim(), numbers.to_vec()).unwrap();
                Bias::relative(table.view()).unwrap()
            };
            let numbers = table.as_slice().unwrap();
            check(
                &example,
                &plain,
                &cotangent,
                numbers,
                &of,
                &format!("{name}, {mask_name}, table"),
            );
        }
    }
}

/// Also where queries are more than one block.
#[test]
fn a_table_has_a_gradient_from_every_query() {
    let example = Example::new(300, 300);
    let settings = |numbers: &[f64]| {
        let table = Array2::from_shape_vec((HEADS, 7), numbers.to_vec()).unwrap();
        Settings {
            bias: Some(Bias::relative(table.view()).unwrap()),
            ..Settings::softmax(&Mask::none())
        }
    };
    let (table, [q, k, v]) = (table(), [&example.q, &example.k, &example.v]);
    let numbers = table.as_slice().unwrap();
    let attended = attend(q.view(), k.view(), v.view(), &settings(numbers)).unwrap();
    let cotangent: Array4<f64> = random(attended.output.raw_dim(), "output cotangent");
    let gradient = attend_vjp(&attended, cotangent.view()).unwrap().bias;
    let got: Vec<f64> = gradient.unwrap().into_iter().collect();
    let want = finite_difference(numbers, |numbers| loss(&example, &settings(numbers)));
    assert!(relative_error(&got, &want) < 1e-7);
}

fn check(
    example: &Example<f64>,
    plain: &Plain<f64>,
    cotangent: &Array4<f64>,
    numbers: &[f64],
    of: &dyn Fn(&[f64]) -> Bias<f64>,
    label: &str,
) {
    let settings = biased(plain, &of(numbers));
    let [q, k, v] = [&example.q, &example.k, &example.v].map(|x| x.view());
    let attended = attend(q, k, v, &settings).unwrap();
    let got = attend_vjp(&attended, cotangent.view()).unwrap();
    let want = finite_difference(numbers, |moved| loss(example, &biased(plain, &of(moved))));
    let bias: Vec<f64> = got.bias.unwrap().iter().copied().collect();
    assert!(relative_error(&bias, &want) < 1e-6, "{label}: bias");
    let want = finite_difference(example.k.as_slice().unwrap(), |moved| {
        let k = Array4::from_shape_vec(example.k.raw_dim(), moved.to_vec()).unwrap();
        loss(
            &Example {
                k,
                ..example.clone()
            },
            &settings,
        )
    });
    let along: Vec<f64> = got.k.iter().copied().collect();
    assert!(relative_error(&along, &want) < 1e-6, "{label}: keys");
}

#[test]
fn minus_infinity_is_a_mask() {
    let (queries, keys) = (7, 9);
    let (mut example, sets) = (Example::<f64>::new(queries, keys), PointSets::new());
    // A key and a value that no query may see.
    example.k.slice_mut(s![.., .., 4, ..]).fill(f64::NAN);
    example.v.slice_mut(s![.., .., 4, ..]).fill(f64::NAN);
    let kept = matrices(queries, keys);
    let bars = |b: usize, m: usize, i: usize, j: usize| !kept[[b, m, i, j]] || j == 4;
    let values = Array4::from_shape_fn(kept.raw_dim(), |(b, m, i, j)| match bars(b, m, i, j) {
        true => f64::NEG_INFINITY,
        false => 0.0,
    });
    let bias = Bias::fixed(values.view()).unwrap();
    let [q, k, v] = [&example.q, &example.k, &example.v].map(|x| x.view());
    for name in SIMILARITIES {
        for own in [
            Mask::none().with_causality(),
            Mask::none().with_matrix(matrix(queries, keys).view()),
        ] {
            let both = Array4::from_shape_fn(kept.raw_dim(), |(b, m, i, j)| {
                !bars(b, m, i, j) && own.keeps([b, m, i, j], [queries, keys])
            });
            let both = Mask::none().with_matrices(both.view());
            let of = |mask| {
                with(
                    sets.similarity(name),
                    Magnitude::Norm { p: 1.5 },
                    mask,
                    None,
                )
            };
            let got = attend(q, k, v, &biased(&of(&own), &bias)).unwrap();
            let want = attend(q, k, v, &of(&both).settings()).unwrap();
            assert_close(&got.output, &want.output, name);
            let cotangent: Array4<f64> = random(want.output.raw_dim(), "cotangent");
            let [got, want] =
                [got, want].map(|attended| attend_vjp(&attended, cotangent.view()).unwrap());
            assert_close(&got.q, &want.q, name);
            assert_close(&got.k, &want.k, name);
        }
    }
}

/// The memory of a transposed view is in another order than its rows.
#[test]
fn a_view_may_be_transposed() {
    let (queries, keys) = (7, 9);
    let example = Example::<f64>::new(queries, keys);
    let fixed = random((BATCH, HEADS, keys, queries), "transposed");
    let fixed = fixed.view().permuted_axes([0, 1, 3, 2]);
    let relative = random((7, HEADS), "transposed table");
    let both = [
        [fixed.view(), fixed.as_standard_layout().view()].map(|view| Bias::fixed(view).unwrap()),
        [relative.t(), relative.t().as_standard_layout().view()]
            .map(|view| Bias::relative(view).unwrap()),
    ];
    let mask = Mask::none();
    for [transposed, plain] in &both {
        let [got, want] = [transposed, plain].map(|bias| {
            let settings = Settings {
                bias: Some(bias.clone()),
                ..Settings::softmax(&mask)
            };
            weights(example.q.view(), example.k.view(), &settings).unwrap()
        });
        assert_eq!(got, want);
    }
}

#[test]
fn sums_over_examples_have_a_fixed_order() {
    let (queries, keys) = (150, 300);
    let example = Example::<f32>::new(queries, keys);
    let values: Array4<f32> = random((1, 1, queries, keys), "bias");
    let table: Array2<f32> = random((HEADS, 9), "table");
    for bias in [
        Bias::fixed(values.view()).unwrap(),
        Bias::relative(table.view()).unwrap(),
    ] {
        let settings = Settings {
            bias: Some(bias),
            ..Settings::softmax(&Mask::none())
        };
        let of = |threads: usize| -> ArrayD<f32> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let [q, k, v] = [&example.q, &example.k, &example.v].map(|x| x.view());
                let attended = attend(q, k, v, &settings).unwrap();
                attend_vjp(&attended, attended.output.view())
                    .unwrap()
                    .bias
                    .unwrap()
            })
        };
        assert!(of(1) == of(2) && of(1) == of(3));
    }
}

/// Biases that decide everything, and beyond what exponentials can hold.
#[test]
fn the_loudest_bias_wins() {
    let (queries, keys) = (3, 5);
    let (example, sets) = (Example::<f64>::new(queries, keys), PointSets::new());
    let mut values = Array4::zeros((1, 1, queries, keys));
    values.index_axis_mut(Axis(3), 3).fill(1e30);
    values.index_axis_mut(Axis(3), 1).fill(-1e30);
    let bias = Bias::fixed(values.view()).unwrap();
    let mask = Mask::none();
    for name in SIMILARITIES {
        for magnitude in [Magnitude::None, Magnitude::Norm { p: 2.0 }] {
            let settings = biased(&with(sets.similarity(name), magnitude, &mask, None), &bias);
            let shown = weights(example.q.view(), example.k.view(), &settings).unwrap();
            let of_loud = shown.index_axis(Axis(3), 3);
            assert!(of_loud.iter().all(|&w| w == 1.0), "{name}: {of_loud}");
        }
    }
}

#[test]
fn a_decoder_takes_what_follows_from_positions() {
    let length = 9;
    let (example, sets) = (Example::<f64>::new(length, length), PointSets::new());
    let mask = Mask::none().with_causality();
    let size = DecoderSize {
        batch: BATCH,
        heads: HEADS,
        width: WIDTH,
        value_width: VALUE_WIDTH,
    };
    let [q, k, v] = [&example.q, &example.k, &example.v].map(|x| x.view());
    for Given { name, bias, .. } in all(length, length) {
        for kernel in SIMILARITIES {
            let plain = with(
                sets.similarity(kernel),
                Magnitude::Norm { p: 2.0 },
                &mask,
                None,
            );
            let settings = biased(&plain, &bias);
            let decoder = Decoder::new(
                &Settings {
                    form: Form::Pairwise,
                    ..settings.clone()
                },
                size,
            );
            if name.starts_with("of") {
                assert!(matches!(
                    decoder,
                    Err(bochner_attention::engine::Error::Unsupported { .. })
                ));
                continue;
            }
            let mut decoder = decoder.unwrap();
            let want = attend(q, k, v, &settings).unwrap().output;
            for t in 0..length {
                let at = s![.., .., t..t + 1, ..];
                let got = decoder.step(q.slice(at), k.slice(at), v.slice(at)).unwrap();
                assert_near(
                    &got,
                    &want.slice(at).to_owned(),
                    &format!("{kernel}, {name}"),
                );
            }
        }
    }
}

#[test]
fn slopes_are_those_of_the_paper() {
    assert_eq!(alibi_slopes(8)[..3], [0.5, 0.25, 0.125]);
    assert_eq!(alibi_slopes(1), [0.5_f64.powi(8)]);
    // Four heads of four, and the first and third of eight.
    let six = [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125];
    assert_eq!(alibi_slopes(6), six);
}

#[test]
fn misuse_is_named() {
    let example = Example::<f64>::new(3, 4);
    let [q, k, v] = [&example.q, &example.k, &example.v].map(|x| x.view());
    let says = |bias: Bias<f64>| {
        let settings = Settings {
            bias: Some(bias),
            ..Settings::softmax(&Mask::none())
        };
        attend(q, k, v, &settings).unwrap_err().to_string()
    };
    for shape in [(1, 1, 4, 3), (3, 1, 3, 4), (1, 3, 3, 4)] {
        let error = says(Bias::fixed(Array4::zeros(shape).view()).unwrap());
        assert!(error.contains("bias"), "{error}");
    }
    assert!(says(Bias::relative(Array2::zeros((3, 5)).view()).unwrap()).contains("bias"));
    assert!(Bias::relative(Array2::<f64>::zeros((2, 4)).view()).is_err());
    assert!(Bias::relative(Array2::from_elem((2, 3), f64::NAN).view()).is_err());
    assert!(Bias::fixed(Array4::from_elem((1, 1, 1, 1), f32::INFINITY).view()).is_err());
    let squared = PointSets::new();
    let none = Mask::none();
    let plain = Plain {
        form: Form::LinearTime,
        ..with(
            squared.similarity("stationary, own"),
            Magnitude::None,
            &none,
            None,
        )
    };
    let refused = attend(q, k, v, &biased(&plain, &Bias::alibi())).unwrap_err();
    assert!(refused.to_string().contains("bias"), "{refused}");
}
