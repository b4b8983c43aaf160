//! The process: a kernel, a constant mean and the variance of the noise.

use crate::testing::{process, scaled_rbf};
use bochner_gp::{Error, GaussianProcessConfig, Jitter};
use bochner_kernels::Kernel;

#[test]
fn settings_that_cannot_stand_are_named() {
    let refused = |mean, noise, jitter, name| {
        let kernel = scaled_rbf(1.0, 1.0);
        let config = GaussianProcessConfig {
            kernel,
            mean,
            noise,
            observation_noise: None,
            jitter,
        };
        let error = config.build().unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with(&format!("`{name}` is")), "{said}");
    };
    refused(f64::NAN, 0.1, Jitter::Fixed(0.0), "mean");
    refused(0.0, 0.0, Jitter::Fixed(0.0), "noise");
    refused(0.0, 0.1, Jitter::Fixed(-1.0), "jitter");
}

#[test]
fn parameters_are_replaced_together_or_not_at_all() {
    let mut process = process(scaled_rbf(2.0, 0.5), 0.3, 0.1);
    let names: Vec<_> = process.parameters().into_iter().map(|p| p.name).collect();
    assert_eq!(
        names,
        [
            "mean",
            "noise",
            "kernel.variance",
            "kernel.base.lengthscale"
        ]
    );
    let before = process.parameters();
    for wrong in [
        &[f64::INFINITY, 1.0, 1.0, 1.0][..],
        &[5.0, -1.0, 1.0, 1.0],
        &[5.0, 1.0, 1.0, 0.0],
        &[5.0, 1.0, 1.0],
    ] {
        assert!(process.set_parameters(wrong).is_err());
        assert_eq!(process.parameters(), before);
    }
    process.set_parameters(&[-1.0, 0.2, 3.0, 4.0]).unwrap();
    assert_eq!(process.mean(), -1.0);
    assert_eq!(process.noise(), 0.2);
    assert_eq!(process.kernel().parameters()[1].value, 4.0);
}

#[test]
fn coordinates_are_logarithms_except_the_means() {
    let mut process = process(scaled_rbf(2.0, 0.5), -0.3, 0.1);
    let coordinates = process.coordinates();
    let want = [-0.3, 0.1_f64.ln(), 2.0_f64.ln(), 0.5_f64.ln()];
    assert_eq!(coordinates, want);
    process.set_coordinates(&[0.1, 0.0, 1.0, -1.0]).unwrap();
    assert_eq!(process.noise(), 1.0);
    let before = process.parameters();
    for (coordinates, name, got) in [
        ([0.1, -1e6, 1.0, -1.0], "noise", -1e6),
        ([0.1, 0.0, 1e3, -1.0], "kernel.variance", 1e3),
        ([f64::INFINITY, 0.0, 1.0, -1.0], "mean", f64::INFINITY),
    ] {
        let parameter = name.to_owned();
        let want = Err(Error::Coordinate { parameter, got });
        assert_eq!(process.set_coordinates(&coordinates), want);
        assert_eq!(process.parameters(), before);
    }
    assert!(process.set_coordinates(&[0.1]).is_err());
}
