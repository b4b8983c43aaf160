//! Tests of layer normalisation.

use crate::testing::{gradients_are_right, pull_back, run};
use bochner_numerics::{DropoutMask, Real, Seed, standard_normal};
use bochner_ops::{LayerNorm, Operation, ResidualNorm, slices};
use ndarray::{ArrayD, IxDyn};

const EPSILON: f64 = 1e-5;

#[test]
fn gradients_agree_with_finite_differences() {
    let epsilon = EPSILON;
    gradients_are_right(LayerNorm { epsilon }, &[&[3, 2, 5], &[5], &[5]]);
    for mask in [None, DropoutMask::new(0.4, Seed::new(3)).ok()] {
        let norm = ResidualNorm { epsilon, mask };
        gradients_are_right(norm, &[&[7, 4], &[7, 4], &[4], &[4]]);
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    fn shapes<T: Real>(epsilon: f64, x: &[usize], gamma: &[usize], beta: &[usize]) -> bool {
        let residual = ResidualNorm {
            epsilon,
            mask: None,
        };
        let shapes = Operation::<T>::output_shapes(&residual, &[x, x, gamma, beta]);
        let plain = Operation::<T>::output_shapes(&LayerNorm { epsilon }, &[x, gamma, beta]);
        assert_eq!(shapes.is_ok(), plain.is_ok());
        shapes == Ok(vec![x.to_vec()])
    }
    assert!(shapes::<f32>(EPSILON, &[3, 4], &[4], &[4]));
    assert!(!shapes::<f32>(EPSILON, &[3, 4], &[3], &[4]));
    assert!(!shapes::<f32>(EPSILON, &[3, 4], &[4], &[4, 1]));
    assert!(!shapes::<f32>(EPSILON, &[3, 4], &[3], &[3]));
    for epsilon in [1e-50, 1e-40, 1e39] {
        assert!(!shapes::<f32>(epsilon, &[3, 4], &[4], &[4]));
        assert!(shapes::<f64>(epsilon, &[3, 4], &[4], &[4]));
    }
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE / 2.0] {
        assert!(!shapes::<f32>(epsilon, &[3, 4], &[4], &[4]));
        assert!(!shapes::<f64>(epsilon, &[3, 4], &[4], &[4]));
    }
}

/// Draws for which no row of the usual size is nearly constant.
fn random<T: Real>(shape: IxDyn, purpose: &str) -> ArrayD<T> {
    let mut stream = Seed::new(1).stream(purpose);
    ArrayD::from_shape_simple_fn(shape, || standard_normal(&mut stream))
}

/// The output for rows given once for each input that has rows, and under one cotangent the gradients of
/// all inputs, in double precision.
fn outcome<T: Real, const N: usize>(
    operation: impl Operation<T>,
    rows: [&[T]; N],
    width: usize,
) -> Vec<Vec<f64>> {
    let shape = IxDyn(&[rows[0].len() / width, width]);
    let array = |x: &[T]| ArrayD::from_shape_vec(shape.clone(), x.to_vec()).unwrap();
    let mut inputs = rows.map(array).to_vec();
    inputs.extend(["gamma", "beta"].map(|name| random(IxDyn(&[width]), name)));
    let (outputs, saved) = run(&operation, &inputs);
    let wanted = vec![Some(Vec::new()); inputs.len()];
    let cotangents = [random(shape.clone(), "cotangent")];
    let gradients = pull_back(&operation, &inputs, &saved, &cotangents, wanted);
    let output = outputs[0].iter().copied().collect();
    let all = std::iter::once(output).chain(gradients.into_iter().flatten());
    all.map(|x: Vec<T>| x.iter().map(|x| x.as_f64()).collect())
        .collect()
}

fn plain<T: Real>(rows: &[T], width: usize) -> Vec<Vec<f64>> {
    outcome(LayerNorm { epsilon: EPSILON }, [rows], width)
}

/// The branch is the rows' own: x + 10/7 x where nothing is dropped.
fn residual<T: Real>(rows: &[T], width: usize) -> Vec<Vec<f64>> {
    let norm = ResidualNorm {
        epsilon: EPSILON,
        mask: DropoutMask::new(0.3, Seed::new(6)).ok(),
    };
    outcome(norm, [rows, rows], width)
}

/// Rows of one width, in single precision: usual ones, the largest in range, and ones whose squares underflow.
fn rows(width: usize) -> Vec<f32> {
    let sizes = [1.0, 1e4, 1e9, 1e-10, 1e-19, 1e-22, 1e-39];
    let usual: ArrayD<f64> = random(IxDyn(&[sizes.len(), width]), "rows");
    let rows = usual.rows().into_iter().zip(sizes);
    let scaled = rows.map(|(row, size)| row.iter().map(|x| (x * size) as f32).collect());
    let mut rows: Vec<Vec<f32>> = scaled.collect();
    rows.push((0..width).map(|i| 3e9 - 1e9 * (i % 3) as f32).collect());
    rows.push(vec![0.0; width]);
    rows.concat()
}

/// Compares row by row, relative to the row's largest number or to its floor.
#[track_caller]
fn near(got: &[f64], want: &[f64], floors: &[f64]) {
    let width = got.len() / floors.len();
    let rows = got.chunks(width).zip(want.chunks(width)).zip(floors);
    for (i, ((got, want), floor)) in rows.enumerate() {
        let largest = want.iter().fold(*floor, |most, x| most.max(x.abs()));
        for (got, want) in got.iter().zip(want) {
            let error = (got - want).abs() / largest;
            assert!(
                error < 2e-5,
                "width {width}, row {i}: {got:e}, not {want:e}"
            );
        }
    }
}

/// The size of a row's gradient where nothing cancels.
fn reciprocal_deviation(row: &[f64]) -> f64 {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    (variance + EPSILON).sqrt().recip()
}

/// Compares the output, the gradients of rows and those of `gamma` and `beta`.
#[track_caller]
fn all_near(got: &[Vec<f64>], want: &[Vec<f64>], sizes: &[f64]) {
    let parameters = got.len() - 2;
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        match i {
            0 => near(got, want, &vec![1.0; sizes.len()]),
            _ if i < parameters => near(got, want, sizes),
            _ => near(got, want, &[1.0]),
        }
    }
}

#[test]
fn single_precision_agrees_with_double() {
    let in_double = |rows: &[f32]| rows.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    for width in [1, 2, 3, 4, 19, 64, 300] {
        let single = rows(width);
        let double = in_double(&single);
        let sizes: Vec<f64> = double.chunks(width).map(reciprocal_deviation).collect();
        all_near(&plain(&single, width), &plain(&double, width), &sizes);
    }
    for width in [1, 3, 19, 64] {
        let single = rows(width);
        let double = in_double(&single);
        // Smaller than any gradient of these sums where none of it cancels.
        let sizes = vec![1e-39; single.len() / width];
        all_near(&residual(&single, width), &residual(&double, width), &sizes);
    }
}

#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    let width = 19;
    let rows = rows(width);
    let together = &plain(&rows, width)[0];
    for (row, together) in rows.chunks(width).zip(together.chunks(width)) {
        assert_eq!(plain(row, width)[0], together);
    }
}

/// Rows beyond the first block drop their own elements of the branch, and so do their gradients: where the
/// branch is dropped its gradient is zero, and where it is kept that of the other summand by the kept factor.
#[test]
fn the_gradient_of_a_branch_passes_the_mask_of_its_values() {
    let (rows, width) = (70, 3);
    let mask = DropoutMask::new(0.4, Seed::new(3)).unwrap();
    let norm = ResidualNorm {
        epsilon: EPSILON,
        mask: Some(mask),
    };
    let x: ArrayD<f64> = random(IxDyn(&[rows, width]), "rows");
    let x = x.as_slice().unwrap();
    let got = outcome(norm, [x, x], width);
    for (i, (along_x, along_branch)) in got[1].iter().zip(&got[2]).enumerate() {
        assert_eq!(*along_branch, along_x * mask.factor::<f64>(i as u64), "{i}");
    }
}

#[test]
fn elements_that_are_not_finite_stay_visible() {
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for other in [0.0, 1.0, 3e38] {
            let y = &plain(&[other, wrong, other], 3)[0];
            assert!(y.iter().all(|y| y.is_nan()), "{wrong} beside {other}");
        }
    }
}

/// Ordinary rows, a constant one, large ones, and one that is not finite; one block and several.
#[test]
fn rows_that_are_normalised_once_have_the_bits_of_the_operation() {
    let width = 70;
    for rows in [6, 2000] {
        let mut x: ArrayD<f32> = random(IxDyn(&[rows, width]), "rows");
        for (i, mut row) in x.outer_iter_mut().enumerate() {
            match i % 6 {
                1 => row.fill(0.3),
                2 => row.mapv_inplace(|x| x * 1e9),
                4 => row[[3]] = f32::INFINITY,
                _ => {}
            }
        }
        let (gamma, beta) = (
            random(IxDyn(&[width]), "gamma"),
            random(IxDyn(&[width]), "beta"),
        );
        let norm = LayerNorm { epsilon: EPSILON };
        let inputs = [x.view(), gamma.view(), beta.view()];
        let [want] = bochner_ops::filled([x.len()], |[y]| {
            norm.forward(&inputs, vec![y]).unwrap();
        });
        let [x, gamma, beta] = slices(&inputs);
        let mut got = vec![0.0; want.len()];
        norm.apply(x, [gamma, beta], &mut got);
        let bits = |values: &[f32]| -> Vec<_> {
            let known = values.iter().map(|x| x.is_finite().then(|| x.to_bits()));
            known.collect()
        };
        assert_eq!(bits(&got), bits(&want));
    }
}
