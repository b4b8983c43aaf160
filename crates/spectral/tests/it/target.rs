//! The target of a density's fit: values of a kernel at pairs of inputs.

use bochner_spectral::empirical_kernel;
use ndarray::{Array2, array};

#[test]
fn the_empirical_kernel_by_hand() {
    let samples = array![[1.0, 2.0], [1.0, -1.0], [0.0, 1.0]];
    let want = array![[2.0, 1.0], [1.0, 6.0]] / 4.0;
    assert_eq!(empirical_kernel(samples.view()).unwrap(), want);
    assert!(empirical_kernel(array![[0.0, 0.0]].view()).is_err());
    assert!(empirical_kernel(Array2::zeros((0, 3)).view()).is_err());
}
