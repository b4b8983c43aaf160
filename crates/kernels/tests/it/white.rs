//! White noise.

use bochner_kernels::{Kernel, White, WhiteConfig};
use bochner_numerics::check::random;
use ndarray::Array2;

#[test]
fn it_is_the_identity_of_points_that_differ() {
    let mut kernel = WhiteConfig { variance: 1.7 }.build().unwrap();
    let mut x = random((4, 3), "x");
    assert_eq!(
        kernel.gram(x.view(), x.view()).unwrap(),
        Array2::<f64>::eye(4) * 1.7
    );
    gradients_along_variance_agree(&mut kernel, &x);
    let row = x.row(0).to_owned();
    x.row_mut(2).assign(&row);
    let k = kernel.gram(x.view(), x.view()).unwrap();
    assert_eq!([k[[0, 2]], k[[2, 0]], k[[0, 1]]], [1.7, 1.7, 0.0]);
    x[[2, 1]] += 1e-160;
    assert_eq!(kernel.gram(x.view(), x.view()).unwrap()[[0, 2]], 1.7);
    x.fill(0.0);
    x[[2, 1]] = 1e-320;
    assert_eq!(kernel.gram(x.view(), x.view()).unwrap()[[0, 2]], 0.0);
}

fn gradients_along_variance_agree(kernel: &mut White<f64>, x: &Array2<f64>) {
    let cotangent = random((4, 4), "cotangent");
    let got = kernel
        .gram_vjp(x.view(), x.view(), cotangent.view())
        .unwrap();
    assert!((got.parameters[0] - cotangent.diag().sum()).abs() < 1e-14);
    assert!(got.x.iter().chain(&got.y).all(|&g| g == 0.0));
}
