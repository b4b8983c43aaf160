//! Starts of inducing points.

use bochner_gp::{Error, inducing_points};
use bochner_numerics::Seed;
use bochner_numerics::check::random;
use ndarray::array;

#[test]
fn rows_are_chosen_once_whatever_their_units() {
    let x = random((40, 2), "x");
    let chosen = inducing_points(x.view(), 40, Seed::new(3)).unwrap();
    let mut sums: Vec<f64> = chosen.rows().into_iter().map(|r| r.sum()).collect();
    let mut want: Vec<f64> = x.rows().into_iter().map(|r| r.sum()).collect();
    sums.sort_by(f64::total_cmp);
    want.sort_by(f64::total_cmp);
    assert_eq!(sums, want);
    let scaled = &x * &array![1024.0, 0.125];
    let few = inducing_points(x.view(), 7, Seed::new(3)).unwrap() * array![1024.0, 0.125];
    assert_eq!(
        few,
        inducing_points(scaled.view(), 7, Seed::new(3)).unwrap()
    );
}

#[test]
fn more_points_than_distinct_rows_are_refused() {
    let x = array![[0.0], [1.0], [0.0], [1.0]];
    let (inducing, rows) = (3, 2);
    let refused = inducing_points(x.view(), 3, Seed::new(1));
    assert_eq!(refused, Err(Error::InducingPoints { inducing, rows }));
    assert!(inducing_points(array![[f64::NAN]].view(), 1, Seed::new(1)).is_err());
}
