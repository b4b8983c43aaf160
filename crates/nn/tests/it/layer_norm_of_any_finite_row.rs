//! A row of any finite numbers has the normalisation and the gradient that it has in a type whose
//! squares do not overflow.

use crate::common::{random, values};
use bochner_nn::{Dropout, LayerNorm};
use bochner_numerics::Seed;
use bochner_ops::Mode;
use dfdx::prelude::*;

type Rows<E> = Tensor<(usize, usize), E, Cpu>;
type Layer<E> = LayerNorm<usize, E>;

/// Output, and under one cotangent the gradients of the rows (twice, if there is a branch), `gamma` and
/// `beta`, in double precision.
fn outcome<E: bochner_nn::Element>(
    layer: &Layer<E>,
    x: &Rows<E>,
    run: impl Fn(
        &Layer<E>,
        Tensor<(usize, usize), E, Cpu, OwnedTape<E, Cpu>>,
    ) -> Tensor<(usize, usize), E, Cpu, OwnedTape<E, Cpu>>,
) -> [Vec<f64>; 4]
where
    Cpu: Device<E>,
{
    let y = run(layer, x.leaky_trace());
    let output = values(&y);
    let found = (y * random(*x.shape(), "cotangent")).sum().backward();
    let parameters = [&layer.gamma, &layer.beta].map(|p| values(&found.get(p)));
    let [gamma, beta] = parameters;
    [output, values(&found.get(x)), gamma, beta]
}

fn layer<E: bochner_nn::Element>(width: usize) -> Layer<E>
where
    Cpu: Device<E>,
{
    let mut layer = LayerNorm::try_new(&Cpu::default(), width).unwrap();
    layer.gamma = random((width,), "gamma");
    layer.beta = random((width,), "beta");
    layer
}

/// Rows of one width, in single precision: usual ones, ones whose squares or sums overflow, ones whose
/// squares underflow.
fn rows(width: usize) -> Vec<f32> {
    let mut rows: Vec<Vec<f32>> = Vec::new();
    let usual: Rows<f64> = random((9, width), "rows");
    for (row, size) in usual
        .as_vec()
        .chunks(width)
        .zip([1.0, 1e18, 1e20, 1e30, 1e37, 1e-10, 1e-19, 1e-22, 1e-39])
    {
        rows.push(row.iter().map(|x| (x * size) as f32).collect());
    }
    let of = |f: &dyn Fn(usize) -> f32| (0..width).map(f).collect::<Vec<f32>>();
    rows.push(of(&|i| if i % 2 == 0 { f32::MAX } else { -f32::MAX }));
    rows.push(of(&|i| if i == 0 { 3e38 } else { i as f32 }));
    rows.push(of(&|i| 3.1e38 + 1e36 * i as f32 / width as f32));
    rows.push(of(&|i| 3e19 - 1e19 * (i % 3) as f32));
    rows.push(of(&|_| f32::MAX));
    rows.push(of(&|_| -2.3e38));
    rows.push(of(&|_| 0.0));
    rows.concat()
}

fn in_type<E: bochner_nn::Element>(rows: &[f32], width: usize) -> Rows<E> {
    let values: Vec<E> = rows.iter().map(|x| E::of(f64::from(*x))).collect();
    Cpu::default().tensor_from_vec(values, (rows.len() / width, width))
}

/// Row by row, relative to the row's largest number or to its floor.
#[track_caller]
fn near(got: &[f64], want: &[f64], floors: &[f64], what: &str) {
    let width = got.len() / floors.len();
    let rows = got.chunks(width).zip(want.chunks(width)).zip(floors);
    for (i, ((got, want), floor)) in rows.enumerate() {
        let largest = want.iter().fold(*floor, |most, x| most.max(x.abs()));
        for (got, want) in got.iter().zip(want) {
            let error = (got - want).abs() / largest;
            assert!(
                error < 2e-5,
                "{what}, width {width}, row {i}: {got:e}, not {want:e}"
            );
        }
    }
}

/// The size of a row's gradient where nothing cancels.
fn reciprocal_deviation(row: &[f32]) -> f64 {
    let (n, row) = (row.len() as f64, row.iter().map(|x| f64::from(*x)));
    let mean = row.clone().sum::<f64>() / n;
    let variance = row.map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    (variance + 1e-5).sqrt().recip()
}

#[track_caller]
fn all_near(got: &[Vec<f64>; 4], want: &[Vec<f64>; 4], sizes: &[f64]) {
    near(&got[0], &want[0], &vec![1.0; sizes.len()], "output");
    near(&got[1], &want[1], sizes, "gradient");
    near(&got[2], &want[2], &[1.0], "gamma");
    near(&got[3], &want[3], &[1.0], "beta");
}

#[test]
fn single_precision_agrees_with_double() {
    for width in [1, 2, 3, 4, 19, 64, 300] {
        let rows = rows(width);
        let plain = |layer: &Layer<f32>, x| layer.apply(x).unwrap();
        let got = outcome(&layer(width), &in_type(&rows, width), plain);
        let plain = |layer: &Layer<f64>, x| layer.apply(x).unwrap();
        let want = outcome(&layer(width), &in_type(&rows, width), plain);
        let sizes: Vec<f64> = rows.chunks(width).map(reciprocal_deviation).collect();
        all_near(&got, &want, &sizes);
    }
}

#[test]
fn so_it_does_at_the_end_of_a_residual_branch() {
    let (dropout, mode) = (Dropout::new(0.3).unwrap(), Mode::Training(Seed::new(6)));
    for width in [1, 3, 19, 64] {
        let rows = rows(width);
        // The branch is the rows' own, so that sums overflow: x + 10/7 x where nothing is dropped.
        let both = |layer: &Layer<f32>,
                    x: Tensor<(usize, usize), f32, Cpu, OwnedTape<f32, Cpu>>| {
            let branch = x.retaped::<OwnedTape<f32, Cpu>>();
            layer.apply_residual(x, branch, dropout, mode).unwrap()
        };
        let got = outcome(&layer(width), &in_type(&rows, width), both);
        let both = |layer: &Layer<f64>,
                    x: Tensor<(usize, usize), f64, Cpu, OwnedTape<f64, Cpu>>| {
            let branch = x.retaped::<OwnedTape<f64, Cpu>>();
            layer.apply_residual(x, branch, dropout, mode).unwrap()
        };
        let want = outcome(&layer(width), &in_type(&rows, width), both);
        // Smaller than any of these gradients where none of it cancels.
        all_near(&got, &want, &vec![1e-39; rows.len() / width]);
    }
}

/// Where epsilon is nothing, a row times a power of two has the same output to the bit, and its gradient
/// divided by that power.
#[test]
fn double_precision_overflows_no_more() {
    let width = 19;
    let up = 2.0_f64.powi(1020);
    let small: Rows<f64> = random((5, width), "rows");
    let small = small
        .as_vec()
        .iter()
        .map(|x| (x * 1e6).round() * 1e4)
        .collect::<Vec<_>>();
    // Up to 5e10 or 2^36, scaled up to just below the largest numbers.
    let large = small
        .iter()
        .map(|x| x * (up / 2.0_f64.powi(33)))
        .collect::<Vec<_>>();
    assert!(large.iter().all(|x| x.is_finite()) && large.iter().any(|x| x.abs() > 1e307));
    let plain = |layer: &Layer<f64>, x| layer.apply(x).unwrap();
    let of = |values: Vec<f64>| {
        let rows = values.len() / width;
        outcome(
            &layer(width),
            &Cpu::default().tensor_from_vec(values, (rows, width)),
            plain,
        )
    };
    let (got, want) = (of(large), of(small));
    for part in [0, 2, 3] {
        assert!(bochner_numerics::relative_error(&got[part], &want[part]) < 1e-13);
    }
    let scaled: Vec<f64> = want[1]
        .iter()
        .map(|g| g / (up / 2.0_f64.powi(33)))
        .collect();
    assert!(want[1].iter().any(|g| *g != 0.0));
    for (got, want) in got[1].iter().zip(&scaled) {
        // Subnormal: a few bits are left.
        assert!(
            (got - want).abs() <= 1e-3 * want.abs() + 1e-322,
            "{got:e}, not {want:e}"
        );
    }
}

#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    let width = 19;
    let rows = rows(width);
    let plain = |layer: &Layer<f32>, x| layer.apply(x).unwrap();
    let together = outcome(&layer(width), &in_type(&rows, width), plain);
    for (i, row) in rows.chunks(width).enumerate() {
        let alone = layer::<f32>(width).apply(in_type(row, width)).unwrap();
        assert_eq!(values(&alone), together[0][i * width..(i + 1) * width]);
    }
}

#[test]
fn what_is_not_finite_stays_visible() {
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for other in [0.0, 1.0, 3e38] {
            let x = Cpu::default().tensor_from_vec(vec![other, wrong, other], (1, 3));
            let y = layer::<f32>(3).apply(x).unwrap();
            assert!(
                values(&y).iter().all(|y| y.is_nan()),
                "{wrong} beside {other}"
            );
        }
    }
}

#[test]
fn an_epsilon_that_is_none_in_the_layers_type_is_refused() {
    fn refused<E: bochner_nn::Element>(epsilon: f64) -> bool
    where
        Cpu: Device<E>,
    {
        let layer = Layer::<E> {
            epsilon,
            ..layer(3)
        };
        let zeros = || in_type(&[0.0; 3], 3);
        let results = [
            layer.apply(zeros()),
            layer.apply_residual(
                zeros(),
                zeros(),
                Dropout::new(0.0).unwrap(),
                Mode::Evaluation,
            ),
        ];
        let refusals = results.map(|y| match y {
            Ok(y) => {
                assert_eq!(values(&y), values(&layer.beta));
                false
            }
            Err(error) => {
                assert!(error.to_string().starts_with("`epsilon` is "), "{error}");
                true
            }
        });
        assert_eq!(refusals[0], refusals[1]);
        refusals[0]
    }
    for epsilon in [1e-50, 1e-40, 1e39] {
        assert!(
            refused::<f32>(epsilon) && !refused::<f64>(epsilon),
            "{epsilon}"
        );
    }
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE / 2.0] {
        assert!(
            refused::<f32>(epsilon) && refused::<f64>(epsilon),
            "{epsilon}"
        );
    }
}
