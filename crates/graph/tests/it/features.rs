//! Features of nodes, dense and sparse, and their products with a weight.

use bochner_graph::{Error, Features, SparseFeatures};
use bochner_numerics::check::random as normal;
use bochner_numerics::{ArgumentError, DropoutMask, Real, Seed, Tolerance};
use ndarray::{Array2, array};

/// A matrix with many zeros, and a row and a column of nothing else.
fn mostly_zero<T: Real>(rows: usize, columns: usize) -> Array2<T> {
    let mut x = normal((rows, columns), "x");
    for ((i, n), x) in x.indexed_iter_mut() {
        if (i * 5 + n * 3) % 7 > 1 || i == 1 || n == 2 {
            *x = T::zero();
        }
    }
    x
}

fn check_products<T: Real>(rows: usize, columns: usize, width: usize) {
    let x = mostly_zero::<T>(rows, columns);
    let sparse = SparseFeatures::from_dense(x.view()).unwrap();
    let (weight, cotangent) = (normal((columns, width), "w"), normal((rows, width), "c"));
    let (along_weight, along_x) = (x.t().dot(&cotangent), cotangent.dot(&weight.t()));
    let close = |got: &Array2<T>, want: &Array2<T>, tolerance: Tolerance| {
        let bound = tolerance.bound(want.iter().map(|x| x.as_f64()));
        assert_eq!(got.dim(), want.dim());
        assert!(
            got.iter()
                .zip(want)
                .all(|(a, b)| (*a - *b).abs().as_f64() <= bound)
        );
    };
    for features in [Features::Dense(x.view()), Features::Sparse(&sparse)] {
        let product = features.product(weight.view()).unwrap();
        close(&product, &x.dot(&weight), Tolerance::outputs::<T>());
        let gradient = features.weight_vjp(cotangent.view()).unwrap();
        close(&gradient, &along_weight, Tolerance::gradients::<T>());
        let gradient = features
            .features_vjp(weight.view(), cotangent.view())
            .unwrap();
        match features {
            Features::Dense(_) => close(&gradient.unwrap(), &along_x, Tolerance::gradients::<T>()),
            Features::Sparse(_) => assert!(gradient.is_none()),
        }
    }
}

#[test]
fn sparse_and_dense_products_are_products() {
    for (rows, columns, width) in [(7, 5, 3), (2100, 40, 8), (3, 500, 64), (1, 4, 1)] {
        check_products::<f64>(rows, columns, width);
        check_products::<f32>(rows, columns, width);
    }
}

#[test]
fn empty_products_are_empty() {
    for (rows, columns, width) in [(0, 3, 2), (3, 0, 2), (3, 2, 0)] {
        check_products::<f64>(rows, columns, width);
    }
}

#[test]
fn what_is_not_finite_is_named() {
    let (mut x, mut weight) = (normal::<f32, _>((3, 2), "x"), normal::<f32, _>((2, 2), "w"));
    let product = |x: &Array2<f32>, weight: &Array2<f32>| {
        let product = Features::Dense(x.view()).product(weight.view());
        product.map_err(|error| error.to_string())
    };
    let error = |x: &Array2<f32>, weight: &Array2<f32>| product(x, weight).unwrap_err();
    assert!(product(&x, &weight).is_ok());
    weight[[1, 0]] = f32::NAN;
    assert!(error(&x, &weight).starts_with("`weight` is NaN at [1, 0]"));
    x[[2, 1]] = f32::INFINITY;
    assert!(error(&x, &weight).starts_with("`features` is inf at [2, 1]"));
    x.fill(1e19);
    weight.fill(1e19);
    assert_eq!(
        product(&x, &weight).unwrap(),
        Array2::from_elem((3, 2), 2e38)
    );
    x[[1, 0]] = 1e20;
    let error = error(&x, &weight);
    assert!(error.starts_with("the product of features and weight is inf at [1, 0]"));
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let x = normal::<f64, _>((3, 2), "x");
    let features = Features::Dense(x.view());
    let (wrong, right) = (normal((3, 2), "w"), normal((2, 4), "w"));
    let mismatch = |error| matches!(error, Error::Argument(_));
    assert!(mismatch(features.product(wrong.view()).unwrap_err()));
    assert!(mismatch(features.weight_vjp(right.view()).unwrap_err()));
    let got = features.features_vjp(right.view(), wrong.view());
    assert!(mismatch(got.unwrap_err()));
}

fn refused(offsets: &[usize], indices: &[usize], values: &[f64]) -> Error {
    SparseFeatures::new(3, offsets, indices, values.to_vec()).unwrap_err()
}

#[test]
fn ill_formed_rows_are_named() {
    assert!(matches!(
        refused(&[0, 2], &[0], &[1.0]),
        Error::Offsets { at: 1, .. }
    ));
    assert!(matches!(
        refused(&[0, 1, 0], &[], &[]),
        Error::Offsets { at: 2, .. }
    ));
    assert!(matches!(
        refused(&[0, 1], &[0, 1], &[1.0]),
        Error::Argument(ArgumentError::Shape { .. })
    ));
    let error = refused(&[0, 1, 2], &[0, 3], &[1.0, 1.0]).to_string();
    assert!(error.contains("`indices[1]` holds the index 3"), "{error}");
    for bad in [f64::NAN, f64::INFINITY] {
        let error = refused(&[0, 2], &[0, 1], &[1.0, bad]).to_string();
        assert!(
            error.contains("`values` is") && error.contains("at [1]"),
            "{error}"
        );
    }
}

#[test]
fn zeros_are_left_out_and_come_back() {
    let dense = array![[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 3.0]];
    let sparse = SparseFeatures::from_dense(dense.view()).unwrap();
    assert_eq!(sparse.values(), [2.0, -1.0, 3.0]);
    assert_eq!(sparse.to_dense(), dense);
    assert_eq!((sparse.rows(), sparse.columns()), (3, 3));
}

#[test]
fn normalised_rows_sum_to_one_in_absolute_value() {
    let dense = array![[0.0, 2.0, 6.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]];
    let sparse = SparseFeatures::from_dense(dense.view()).unwrap();
    let want = array![[0.0, 0.25, 0.75], [0.0, 0.0, 0.0], [-0.5, 0.0, 0.5]];
    assert_eq!(sparse.row_normalised().to_dense(), want);
    assert_eq!(bochner_graph::row_normalised(dense.view()).unwrap(), want);
    let error = bochner_graph::row_normalised((&dense / 0.0).view())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("`features` is NaN at [0, 0]"), "{error}");
}

#[test]
fn rows_are_selected_in_the_order_given() {
    let words = SparseFeatures::new(3, &[0, 1, 1, 3], &[1, 0, 2], vec![2.0, 1.0, 3.0]).unwrap();
    let some = words.select(&[2, 0, 2]).unwrap();
    let last = [1.0, 0.0, 3.0];
    assert_eq!(some.to_dense(), array![last, [0.0, 2.0, 0.0], last]);
    assert_eq!(words.select(&[]).unwrap().rows(), 0);
    let error = words.select(&[0, 3]).unwrap_err().to_string();
    assert!(error.contains("`rows[1]` holds the index 3"), "{error}");
}

#[test]
fn entries_given_twice_are_stored_as_their_sum() {
    let (offsets, indices) = ([0, 4, 5, 7], [2, 0, 2, 2, 2, 1, 1]);
    let values = vec![2.0, 3.0, -1.0, 4.0, 6.0, 1.0, -1.0];
    let words = SparseFeatures::new(3, &offsets, &indices, values).unwrap();
    assert_eq!(words.values(), [5.0, 3.0, 6.0, 0.0]);
    let want = array![[3.0, 0.0, 5.0], [0.0, 0.0, 6.0], [0.0; 3]];
    assert_eq!(words.to_dense(), want);
    let want = bochner_graph::row_normalised(want.view()).unwrap();
    assert_eq!(words.row_normalised().to_dense(), want);
    let error = refused(&[0, 0, 2], &[1, 1], &[1e308, 1e308]).to_string();
    assert!(error.contains("`values` is inf at [0]"), "{error}");
}

#[test]
fn dropout_drops_the_same_entries_stored_or_not() {
    let dense = Array2::from_shape_fn((300, 70), |(i, n)| ((i * 7 + n) % 3) as f32);
    let dropout = DropoutMask::new(0.6, Seed::new(3)).unwrap();
    let sparse = SparseFeatures::from_dense(dense.view()).unwrap();
    let dropped = sparse.dropped_out(&dropout).to_dense();
    assert_eq!(dropped, bochner_graph::dropped_out(dense.view(), &dropout));
    let kept = dropped.iter().filter(|x| **x != 0.0).count() as f64 / sparse.values().len() as f64;
    assert!((kept - 0.4).abs() < 0.05);
}
