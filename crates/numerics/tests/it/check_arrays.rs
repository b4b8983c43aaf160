//! Arrays of the feature `ndarray`.

use bochner_numerics::check::{assert_gradient, random};
use bochner_numerics::ndarray::{Array2, ArrayView2};

#[test]
fn a_wrong_gradient_is_noticed() {
    let x = random((3, 2), "x");
    let square = |x: ArrayView2<f64>| x.iter().map(|x| x * x).sum();
    let check = |got| std::panic::catch_unwind(|| assert_gradient(&got, &x, square)).is_ok();
    assert!(
        check(2.0 * &x)
            && check(
                (2.0 * &x)
                    .reversed_axes()
                    .as_standard_layout()
                    .t()
                    .to_owned()
            )
    );
    assert!(!check(2.00001 * &x) && !check(Array2::zeros((2, 3))));
}
