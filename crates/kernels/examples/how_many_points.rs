//! The error of random features against their number, beside the bound of the theory.
//!
//! `cargo run --package bochner-kernels --example how_many_points`

#![allow(clippy::print_stdout)]

use bochner_kernels::ndarray::Array2;
use bochner_kernels::{
    Coupling, Error, Kernel, Lengthscale, Norms, RandomFrequencies, RbfConfig, UniformBoundConfig,
    coupled_frequencies, random_frequencies,
};
use bochner_numerics::{Seed, standard_normal};

const WIDTH: usize = 8;
const REPEATS: u64 = 20;

fn main() -> Result<(), Error> {
    let lengthscale = Lengthscale::Shared(2.0);
    let kernel = RbfConfig { lengthscale }.build()?;
    let mut stream = Seed::new(1).stream("inputs");
    let x = Array2::from_shape_simple_fn((40, WIDTH), || standard_normal::<f64>(&mut stream));
    let exact = kernel.gram(x.view(), x.view())?;
    let largest_error = |features: &RandomFrequencies<f64>| {
        let off = features.gram(x.view(), x.view())? - &exact;
        Ok::<_, Error>(off.iter().fold(0.0_f64, |most, e| most.max(e.abs())))
    };

    println!("largest error over all pairs, mean of {REPEATS} draws");
    println!("points  independent  orthogonal");
    for points in [16, 64, 256, 1024, 4096] {
        let (mut independent, mut orthogonal) = (0.0, 0.0);
        for repeat in 0..REPEATS {
            let mut rng = Seed::new(2).nth(repeat).stream("frequencies");
            independent += largest_error(&random_frequencies(&kernel, WIDTH, points, &mut rng)?)?;
            let how = (Coupling::Orthogonal, Norms::Chi);
            orthogonal +=
                largest_error(&coupled_frequencies(&kernel, WIDTH, points, how, &mut rng)?)?;
        }
        let mean = |sum: f64| sum / REPEATS as f64;
        println!(
            "{points:6}  {:11.4}  {:10.4}",
            mean(independent),
            mean(orthogonal)
        );
    }

    // The frequencies have the standard deviation 1/2 in each of the coordinates, twice over.
    let spread = (2.0 * WIDTH as f64 / 4.0).sqrt();
    let bound = UniformBoundConfig {
        width: WIDTH,
        diameter: 10.0,
        spread,
    }
    .build()?;
    let enough = bound.points(0.1, 0.01)?;
    println!(
        "Proposition 4 promises an error below 0.1 in 99 of 100 cases from {enough} points on"
    );
    Ok(())
}
