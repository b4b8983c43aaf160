//! Frequencies drawn jointly, whose features have a smaller error than those of independent draws.

use super::RandomFrequencies;
use super::rows;
use super::stationary::scales;
use crate::Error;
use crate::stationary::Rbf;
use bochner_numerics::{Real, standard_normal};
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// The dependence between the directions of frequencies that are drawn together.
///
/// Frequencies come in blocks of `width`, each block drawn independently of the others. By itself each
/// frequency has a uniformly distributed direction, whatever the coupling, and a norm by [`Norms`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// They do not: normal vectors.
    Independent,
    /// The directions of a block are orthogonal.
    #[default]
    Orthogonal,
    /// The directions of a block point to the corners of a simplex, as far from each other as they can: the
    /// cosine between any two is $-1 / (d - 1)$.
    Simplex,
}

/// The norms of frequencies of the RBF kernel of lengthscale one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norms {
    /// Each frequency draws the norm of $d$ normal numbers: the mean of the features is the kernel.
    #[default]
    Chi,
    /// All frequencies have the norm $\sqrt d$: the mean is the regularised kernel, which lies below the RBF's by a
    /// factor from $1 - 2 / d^{1/3}$ (asymptotically) to 1.
    Root,
}

/// Draws `count` frequencies for an RBF kernel on $\mathbb{R}^d$, for `width` $d$, coupled within blocks of
/// `width` (before the lengthscales of the dimensions are put in).
///
/// $$W = D S R$$
///
/// *where* $D$ is the diagonal matrix of the `norms` and $R$ a uniformly distributed rotation. $S$ is the
/// identity for [`Coupling::Orthogonal`]; for [`Coupling::Simplex`] its rows are
/// $s_i = \sqrt{d / (d - 1)} e_i - (\sqrt d + 1) (d - 1)^{-3/2} (1, \dots, 1, 0)$ for $i < d$ and
/// $s_d = (d - 1)^{-1/2} (1, \dots, 1, 0)$.
///
/// # Errors
/// The errors of [`random_frequencies`](crate::random_frequencies).
///
/// # Numerics
/// The mean is the kernel, as for independent draws, unless the norms are [`Norms::Root`]. The variance is
/// smaller than that of independent draws; that of [positive features](crate::RandomFeatureMap) is smallest
/// with a simplex. With `width` one there is nothing to be coupled. $O(R d^2)$ time.
///
/// # Reference
/// Yu, Suresh, Choromanski, Holtmann-Rice, Kumar, *Orthogonal Random Features*, NIPS 2016; Reid,
/// Choromanski, Likhosherstov, Weller, *Simplex Random Features*, ICML 2023.
///
/// # Example
/// ```
/// use bochner_kernels::{Coupling, Lengthscale, Norms, RbfConfig, coupled_frequencies};
/// use bochner_numerics::Seed;
///
/// let kernel = RbfConfig { lengthscale: Lengthscale::Shared(1.0_f64) }.build()?;
/// let mut stream = Seed::new(5).stream("frequencies");
/// let w = coupled_frequencies(&kernel, 4, 8, (Coupling::Orthogonal, Norms::Chi), &mut stream)?.w;
/// assert!(w.row(0).dot(&w.row(3)).abs() < 1e-12);
/// assert!(w.row(0).dot(&w.row(4)).abs() > 1e-3);
///
/// let w = coupled_frequencies(&kernel, 4, 4, (Coupling::Simplex, Norms::Root), &mut stream)?.w;
/// assert!((w.row(0).dot(&w.row(3)) + 4.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
pub fn coupled_frequencies<T: Real>(
    kernel: &Rbf<T>,
    width: usize,
    count: usize,
    (coupling, norms): (Coupling, Norms),
    rng: &mut (impl RngCore + ?Sized),
) -> Result<RandomFrequencies<T>, Error> {
    let scales = scales(kernel.lengthscale(), width)?;
    let mut block = Vec::new();
    let mut next = 0;
    let w = rows(count, width, |w: &mut [T]| {
        if next == block.len() {
            (block, next) = (directions(coupling, width, rng), 0);
        }
        let norm = match norms {
            Norms::Chi => normal_vector(width, rng).0,
            Norms::Root => (width as f64).sqrt(),
        };
        for ((w, scale), direction) in w.iter_mut().zip(&scales).zip(&block[next]) {
            *w = T::of(scale.as_f64() * norm * direction);
        }
        next += 1;
    })?;
    Ok(RandomFrequencies {
        w,
        variance: T::one(),
    })
}

/// The directions of one block.
fn directions(
    coupling: Coupling,
    width: usize,
    rng: &mut (impl RngCore + ?Sized),
) -> Vec<Vec<f64>> {
    match coupling {
        Coupling::Independent => {
            let (_, mut direction) = normal_vector(width, rng);
            normalise(&mut direction);
            vec![direction]
        }
        Coupling::Orthogonal => rotation(width, rng),
        Coupling::Simplex => simplex(&rotation(width, rng)),
    }
}

/// The corners of a simplex whose axes are the rows of a rotation; the rotation itself in one dimension.
fn simplex(axes: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let Some((_, flat)) = axes.split_last().filter(|(_, flat)| !flat.is_empty()) else {
        return axes.to_vec();
    };
    let (width, others) = (axes.len() as f64, flat.len() as f64);
    let sum = |n: usize| flat.iter().map(|axis| axis[n]).sum::<f64>();
    let sums: Vec<f64> = (0..axes.len()).map(sum).collect();
    let along = (width / others).sqrt();
    let towards = (width.sqrt() + 1.0) / others.powf(1.5);
    let corner = |axis: &Vec<f64>| {
        let numbers = axis.iter().zip(&sums);
        numbers.map(|(x, sum)| along * x - towards * sum).collect()
    };
    let last = sums.iter().map(|sum| sum / others.sqrt()).collect();
    flat.iter().map(corner).chain([last]).collect()
}

/// The rows of a uniformly distributed orthogonal matrix.
fn rotation(width: usize, rng: &mut (impl RngCore + ?Sized)) -> Vec<Vec<f64>> {
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
/// let rows = orthonormal_rows(3, 2, &mut Seed::new(5).stream("directions"));
/// let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
/// assert!(dot(&rows[0], &rows[1]).abs() < 1e-14);
/// assert!((dot(&rows[0], &rows[0]) - 1.0).abs() < 1e-14);
/// ```
pub fn orthonormal_rows(
    width: usize,
    count: usize,
    rng: &mut (impl RngCore + ?Sized),
) -> Vec<Vec<f64>> {
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
fn normal_vector(width: usize, rng: &mut (impl RngCore + ?Sized)) -> (f64, Vec<f64>) {
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
