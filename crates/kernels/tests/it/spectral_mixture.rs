//! The spectral mixture kernel: any stationary kernel, by a mixture of Gaussians as its density.

use crate::testing::{gradients_agree, refused};
use bochner_kernels::{Cosine, Kernel, SpectralMixtureConfig};
use bochner_numerics::check::random;
use ndarray::{Array1, Array2, array};

fn config(cosine: Cosine) -> SpectralMixtureConfig<f64> {
    SpectralMixtureConfig {
        weights: array![0.8, 0.3],
        means: array![[0.1, 0.3, -0.2], [0.0, -0.4, 0.15]],
        variances: array![[0.02, 0.05, 0.01], [0.04, 0.01, 0.03]],
        cosine,
    }
}

#[test]
fn a_cosine_close_to_zero_has_a_derivative() {
    // A quarter of a turn in the second dimension.
    let (mut x, mut y) = (random((4, 3), "x"), random((5, 3), "y"));
    x.row_mut(0).assign(&array![0.3, 1.0, 0.2]);
    y.row_mut(0).fill(0.0);
    for cosine in [Cosine::Joint, Cosine::Product] {
        let means = array![[0.1, 0.25, 0.4]];
        let (weights, variances) = (array![1.0], array![[0.02, 0.05, 0.01]]);
        let config = SpectralMixtureConfig {
            weights,
            means,
            variances,
            cosine,
        };
        gradients_agree(&mut config.build().unwrap(), &x, &y);
    }
}

#[test]
fn the_two_cosines_agree_on_the_line_alone() {
    let value = |cosine, width| -> f64 {
        let config = SpectralMixtureConfig {
            weights: array![0.8],
            means: Array2::from_elem((1, width), 0.7),
            variances: Array2::from_elem((1, width), 0.02),
            cosine,
        };
        let (x, y) = (Array1::from_elem(width, 0.3), Array1::zeros(width));
        config.build().unwrap().value(x.view(), y.view()).unwrap()
    };
    let [joint, product] = [Cosine::Joint, Cosine::Product];
    assert_eq!(value(joint, 1), value(product, 1));
    assert!((value(joint, 2) - value(product, 2)).abs() > 0.1);
    let pair = value(product, 2) / 0.8;
    let one = value(product, 1) / 0.8;
    assert!((pair - one * one).abs() < 1e-15);
}

#[test]
fn no_parameter_is_too_large_for_a_difference_of_zero() {
    let huge = Array2::from_elem((1, 2), f64::MAX);
    for cosine in [Cosine::Joint, Cosine::Product] {
        let config = SpectralMixtureConfig {
            weights: array![0.8],
            means: huge.clone(),
            variances: huge.clone(),
            cosine,
        };
        let x = array![[0.3, -1.0]];
        let gram = config.build().unwrap().gram(x.view(), x.view()).unwrap();
        assert_eq!(gram, array![[0.8]]);
    }
}

#[test]
fn the_memory_layout_of_the_settings_does_not_matter() {
    let turned = |a: &Array2<f64>| a.t().as_standard_layout().into_owned().reversed_axes();
    let plain = config(Cosine::Joint);
    let other = SpectralMixtureConfig {
        means: turned(&plain.means),
        variances: turned(&plain.variances),
        ..plain.clone()
    };
    let (plain, other) = (plain.build().unwrap(), other.build().unwrap());
    let (x, y) = (random((4, 3), "x"), random((5, 3), "y"));
    assert_eq!(
        plain.gram(x.view(), y.view()),
        other.gram(x.view(), y.view())
    );
}

#[test]
fn settings_that_cannot_stand_are_named() {
    let good = config(Cosine::Joint);
    let narrow = SpectralMixtureConfig {
        variances: array![[0.1], [0.2]],
        ..good.clone()
    };
    assert_eq!(refused(narrow.build()), "variances");
    let mut negative = good.clone();
    negative.weights[1] = 0.0;
    assert_eq!(refused(negative.build()), "weights");
    let mut infinite = good;
    infinite.means[[1, 0]] = f64::INFINITY;
    assert_eq!(refused(infinite.build()), "means");
    let none = SpectralMixtureConfig {
        weights: array![],
        means: Array2::<f64>::zeros((0, 2)),
        variances: Array2::zeros((0, 2)),
        cosine: Cosine::Product,
    };
    assert_eq!(refused(none.build()), "means");
}
