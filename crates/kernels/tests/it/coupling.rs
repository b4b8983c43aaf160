//! Frequencies drawn jointly, whose features have a smaller error than those of independent draws.

use bochner_kernels::{Coupling, Lengthscale, Norms, RbfConfig, coupled_frequencies};
use bochner_numerics::Seed;
use ndarray::{Array2, Axis};

/// Frequencies of length one.
fn directions(coupling: Coupling, width: usize, count: usize) -> Array2<f64> {
    let lengthscale = Lengthscale::Shared((width as f64).sqrt());
    let kernel = RbfConfig { lengthscale }.build().unwrap();
    let mut stream = Seed::new(3).stream("rotations");
    let how = (coupling, Norms::Root);
    let drawn = coupled_frequencies(&kernel, width, count, how, &mut stream);
    drawn.unwrap().w
}

#[test]
fn rotations_are_orthogonal_and_have_no_favourite_direction() {
    let (width, draws) = (5, 4000);
    let mut mean = vec![0.0_f64; width];
    let all = directions(Coupling::Orthogonal, width, width * draws);
    for rows in all.axis_chunks_iter(Axis(0), width) {
        for (i, a) in rows.rows().into_iter().enumerate() {
            for (j, b) in rows.rows().into_iter().enumerate() {
                let want = f64::from(u8::from(i == j));
                assert!((a.dot(&b) - want).abs() < 1e-14);
            }
            mean[i] += a[i] / draws as f64;
        }
    }
    // Six standard deviations of a mean of coordinates of variance 1 / width: a factorisation
    // with signs of its own choice has diagonals of one sign.
    let bound = 6.0 / ((width * draws) as f64).sqrt();
    assert!(mean.iter().all(|m| m.abs() < bound), "{mean:?}");
}

#[test]
fn norms_are_those_of_normal_vectors() {
    let lengthscale = Lengthscale::PerDimension(vec![0.5, 1.0, 4.0]);
    let kernel = RbfConfig { lengthscale }.build().unwrap();
    let mut stream = Seed::new(4).stream("frequencies");
    let count = 20_000;
    let how = (Coupling::Orthogonal, Norms::Chi);
    let w = coupled_frequencies(&kernel, 3, count, how, &mut stream)
        .unwrap()
        .w;
    for (column, variance) in w.columns().into_iter().zip([4.0, 1.0, 0.0625]) {
        let second = column.iter().map(|w| w * w).sum::<f64>() / count as f64;
        let fourth = column.iter().map(|w| w.powi(4)).sum::<f64>() / count as f64;
        assert!((second / variance - 1.0).abs() < 0.05);
        // The ratio would be 9 / 5 with norms that do not vary.
        assert!((fourth / (variance * variance) / 3.0 - 1.0).abs() < 0.15);
    }
}

/// The directions of any width are those that the couplings promise.
#[test]
fn corners_are_as_far_from_each_other_as_they_can_be() {
    for width in [1, 2, 3, 8] {
        let rows = directions(Coupling::Simplex, width, width);
        for (i, a) in rows.rows().into_iter().enumerate() {
            for (j, b) in rows.rows().into_iter().enumerate() {
                let want = if i == j {
                    1.0
                } else {
                    -1.0 / (width as f64 - 1.0)
                };
                assert!((a.dot(&b) - want).abs() < 1e-14, "{width}");
            }
        }
    }
}

#[test]
fn norms_can_be_fixed() {
    let lengthscale = Lengthscale::Shared(1.0_f64);
    let kernel = RbfConfig { lengthscale }.build().unwrap();
    for coupling in [
        Coupling::Independent,
        Coupling::Orthogonal,
        Coupling::Simplex,
    ] {
        let mut stream = Seed::new(7).stream("frequencies");
        let w = coupled_frequencies(&kernel, 3, 7, (coupling, Norms::Root), &mut stream);
        for w in w.unwrap().w.rows() {
            assert!((w.dot(&w) - 3.0).abs() < 1e-13, "{coupling:?}");
        }
    }
}
