//! The effective rank of attention.

use bochner_interpret::effective_rank;
use bochner_numerics::check::random;
use ndarray::{Array2, Axis, array};

fn of(a: &Array2<f64>) -> f64 {
    let weights = a.view().insert_axis(Axis(0)).insert_axis(Axis(0));
    let all = Array2::from_elem((1, a.nrows()), true);
    effective_rank(weights, all.view()).unwrap()[[0, 0]]
}

#[test]
fn ranks_worked_out_by_hand() {
    assert_eq!(of(&Array2::zeros((3, 2))), 0.0);
    // The singular values are 3 and 1.
    let want = (-(0.75 * 0.75f64.ln() + 0.25 * 0.25f64.ln())).exp();
    assert!((of(&array![[0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]]) - want).abs() < 1e-14);
}

#[test]
fn the_effective_rank_lies_between_one_and_the_rank() {
    for rank in 1..5 {
        let left: Array2<f64> = random((6, rank), "left");
        let rank_of = of(&left.dot(&random((rank, 7), "right")));
        assert!((1.0 - 1e-12..rank as f64 + 1e-9).contains(&rank_of));
        assert!(rank == 1 || rank_of > 1.01, "{rank_of}");
    }
}

#[test]
fn it_has_no_scale() {
    let a: Array2<f64> = random((4, 4), "weights");
    for scale in [1e-300, 1e307] {
        assert!((of(&(scale * &a)) - of(&a)).abs() < 1e-10);
    }
}
