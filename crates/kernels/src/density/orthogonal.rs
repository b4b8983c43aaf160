//! Frequencies at right angles to each other.

use super::RandomFeatures;
use super::rows;
use super::stationary::scales;
use crate::Error;
use crate::stationary::Rbf;
use bochner_numerics::{Real, standard_normal};
use rand::RngCore;

/// Draws `count` frequencies for an RBF kernel in blocks of `width`, orthogonal within a block
/// (before the lengthscales of the dimensions are put in).
///
/// A block's directions are a uniformly distributed rotation; the norms are drawn anew, as those
/// of $d$ normal numbers, so that every single frequency has the kernel's own density. The
/// directions of a block are spread out evenly, so they repeat each other less than independent ones.
///
/// # Errors
/// The errors of [`random_features`](crate::random_features).
///
/// # Numerics
/// The mean is the kernel, as for independent draws; the variance is smaller, the more so the
/// larger $d$ is. With `width` one there is nothing to be orthogonal to. $O(R d^2)$ time.
///
/// # Reference
/// Yu, Suresh, Choromanski, Holtmann-Rice, Kumar, *Orthogonal Random Features*, NIPS 2016.
///
/// # Example
/// ```
/// use bochner_kernels::{Lengthscale, RbfConfig, orthogonal_features};
/// use bochner_numerics::Seed;
///
/// let kernel = RbfConfig { lengthscale: Lengthscale::Shared(1.0_f64) }.build()?;
/// let w = orthogonal_features(&kernel, 4, 8, &mut Seed::new(5).stream("frequencies"))?.w;
/// assert!(w.row(0).dot(&w.row(3)).abs() < 1e-12);
/// assert!(w.row(0).dot(&w.row(4)).abs() > 1e-3);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
pub fn orthogonal_features<T: Real>(
    kernel: &Rbf<T>,
    width: usize,
    count: usize,
    rng: &mut dyn RngCore,
) -> Result<RandomFeatures<T>, Error> {
    let scales = scales(kernel.lengthscale(), width)?;
    let mut block = Vec::new();
    let mut next = 0;
    let w = rows(count, width, |w: &mut [T]| {
        if next == block.len() {
            (block, next) = (rotation(width, rng), 0);
        }
        let norm = normal_vector(width, rng).0;
        for ((w, scale), direction) in w.iter_mut().zip(&scales).zip(&block[next]) {
            *w = T::of(scale.as_f64() * norm * direction);
        }
        next += 1;
    })?;
    Ok(RandomFeatures {
        w,
        variance: T::one(),
    })
}

/// The rows of a uniformly distributed orthogonal matrix.
fn rotation(width: usize, rng: &mut dyn RngCore) -> Vec<Vec<f64>> {
    orthonormal_rows(width, width, rng)
}

/// Draws `count` directions of `width` numbers in blocks of `width`, orthogonal within a block: normal
/// vectors, each made orthogonal to those before it.
///
/// # Numerics
/// A block is uniformly distributed among all sets of orthonormal vectors. $O(n \min(n, d) d)$ time for n
/// vectors of d numbers.
///
/// ```
/// use bochner_kernels::orthonormal_rows;
/// use bochner_numerics::Seed;
///
/// let rows = orthonormal_rows(2, 3, &mut Seed::new(5).stream("directions"));
/// let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
/// assert!(dot(&rows[0], &rows[1]).abs() < 1e-14);
/// assert!((dot(&rows[0], &rows[0]) - 1.0).abs() < 1e-14);
/// ```
pub fn orthonormal_rows(count: usize, width: usize, rng: &mut dyn RngCore) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(count);
    for n in 0..count {
        let block = n - n % width.max(1);
        let mut row = normal_vector(width, rng).1;
        // The second pass removes what rounding left of the first; two are enough.
        for _ in 0..2 {
            rows[block..]
                .iter()
                .for_each(|other| remove(other, &mut row));
            normalise(&mut row);
        }
        rows.push(row);
    }
    rows
}

/// A vector of standard normal numbers, with its norm.
fn normal_vector(width: usize, rng: &mut dyn RngCore) -> (f64, Vec<f64>) {
    let x: Vec<f64> = (0..width).map(|_| standard_normal(rng)).collect();
    (dot(&x, &x).sqrt(), x)
}

fn remove(direction: &[f64], x: &mut [f64]) {
    let along = dot(direction, x);
    for (x, d) in x.iter_mut().zip(direction) {
        *x -= along * d;
    }
}

fn normalise(x: &mut [f64]) {
    let norm = dot(x, x).sqrt();
    x.iter_mut().for_each(|x| *x /= norm);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lengthscale, RbfConfig};
    use bochner_numerics::Seed;

    #[test]
    fn rotations_are_orthogonal_and_have_no_favourite_direction() {
        let mut stream = Seed::new(3).stream("rotations");
        let (width, draws) = (5, 4000);
        let mut mean = vec![0.0; width];
        for _ in 0..draws {
            let rows = rotation(width, &mut stream);
            for (i, a) in rows.iter().enumerate() {
                for (j, b) in rows.iter().enumerate() {
                    let want = f64::from(u8::from(i == j));
                    assert!((dot(a, b) - want).abs() < 1e-14);
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
        let w = orthogonal_features(&kernel, 3, count, &mut stream)
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
}
