//! Random features of $e^{x \cdot y}$, and of kernels like it.

use crate::Error;
use crate::matrix::mat;
use bochner_numerics::argument::{self, ArgumentError};
use bochner_numerics::elementary::{exp_in_place, ln_in_place, sin_cos};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::memory::zeros;
use bochner_numerics::{Mat, MatMut, Panels, Real, matmul};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// A feature map whose inner products are, on average over the frequencies, $e^{x \cdot y}$ or a kernel like
/// it.
///
/// With frequencies $w_r \sim N(0, I)$, $r = 1, \dots, m$, and $u_r = w_r \cdot x$:
///
/// | map | $\phi(x)$ | features | mean of $\phi(x) \cdot \phi(y)$ |
/// |---|---|---|---|
/// | [`Positive`](Self::Positive) | $e^{u - \lvert x \rvert^2 / 2} / \sqrt m$ | m | $e^{x \cdot y}$ |
/// | [`Hyperbolic`](Self::Hyperbolic) | $[e^{u - \lvert x \rvert^2 / 2}, e^{-u - \lvert x \rvert^2 / 2}] / \sqrt{2m}$ | 2m | $e^{x \cdot y}$ |
/// | [`Trigonometric`](Self::Trigonometric) | $e^{\lvert x \rvert^2 / 2} [\cos u, \sin u] / \sqrt m$ | 2m | $e^{x \cdot y}$ |
/// | [`Relu`](Self::Relu) | $(\max(u, 0) + \epsilon) / \sqrt m$ | m | none in closed form |
///
/// Where $e^{x \cdot y}$ is small, so is the error of the positive maps, while that of the trigonometric one
/// grows; where $x = y$ the trigonometric one is exact, and where $x = -y$ the positive ones are.
///
/// # Reference
/// Choromanski et al., *Rethinking Attention with Performers*, ICLR 2021.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, remote = "Self")]
pub enum RandomFeatureMap {
    /// Exponentials: FAVOR+.
    #[default]
    Positive,
    /// Exponentials of both signs: an estimate of the hyperbolic cosine, whose error is less than half that of
    /// the positive features.
    Hyperbolic,
    /// Cosines and sines, of either sign.
    Trigonometric,
    /// Angles above zero.
    Relu {
        /// A number that is added to each, above 0; at least the type's smallest normal number.
        epsilon: f64,
    },
}

bochner_numerics::checked_when_read!(RandomFeatureMap);

/// Features of some rows, each as the exponential of a number, times a number of modulus one at most where the
/// map is signed.
///
/// A reference subtracted from the logarithms multiplies the feature, and nothing overflows: what attention
/// does with features of any size.
#[derive(Debug)]
pub struct Logarithms<'a, T> {
    /// The logarithms, `[rows, features]`, without the map's factor $1 / \sqrt m$ or $1 / \sqrt{2m}$.
    pub logs: &'a mut [T],
    /// The factors of the exponentials, `[rows, features]`; empty for a positive map.
    pub signs: &'a mut [T],
}

/// Destinations of the gradients along features.
#[derive(Debug)]
pub struct AngleGradients<'a, T> {
    /// Along the angles $u$, `[rows, m]`, added to what is there.
    pub angles: &'a mut [T],
    /// Along the logarithms, summed over the features of each row, `[rows]`, added to what is there.
    pub logs: &'a mut [T],
}

impl RandomFeatureMap {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`ArgumentError`] unless $\epsilon$ is above 0 and finite in single precision, whichever type the
    /// features have.
    pub fn validate(&self) -> Result<(), ArgumentError> {
        let Self::Relu { epsilon } = *self else {
            return Ok(());
        };
        let range = f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX);
        let allowed = "above 0 and finite, in single precision too";
        argument::in_range(range.contains(&epsilon), "epsilon", epsilon, allowed)
    }

    /// The number of features that `frequencies` m give.
    pub fn features(&self, frequencies: usize) -> usize {
        match self {
            Self::Positive | Self::Relu { .. } => frequencies,
            Self::Hyperbolic | Self::Trigonometric => 2 * frequencies,
        }
    }

    /// Whether all features are above zero.
    pub fn is_positive(&self) -> bool {
        *self != Self::Trigonometric
    }

    /// The sign with which $|x|^2 / 2$ enters every logarithm.
    fn square(&self) -> f64 {
        match self {
            Self::Positive | Self::Hyperbolic => -1.0,
            Self::Trigonometric => 1.0,
            Self::Relu { .. } => 0.0,
        }
    }

    /// Writes the features of the rows of `x: [rows, d]`, given the transposed frequencies $W^T$, `[d, m]`.
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn write_logarithms<T: Real>(&self, x: Mat<T>, w: &Panels<T>, out: &mut Logarithms<T>) {
        let (rows, count) = (x.shape().0, w.shape().1);
        let Logarithms { logs, signs } = out;
        assert_eq!(logs.len(), rows * self.features(count), "one a feature");
        let angles = &mut logs[..rows * count];
        matmul(T::one(), x, w, T::zero(), MatMut::new(angles, rows, count));
        match *self {
            Self::Relu { epsilon } => {
                // An epsilon below the type's range would make features zero, which have no logarithm.
                let epsilon = T::of(epsilon).max(T::min_positive_value());
                let above = |u: T| if u < T::zero() { T::zero() } else { u };
                angles.iter_mut().for_each(|u| *u = above(*u) + epsilon);
                ln_in_place(angles);
            }
            Self::Positive => instructions::run(SubtractHalfSquares { x, logs }),
            Self::Hyperbolic => {
                // The last row first, since it moves furthest to the right.
                for i in (0..rows).rev() {
                    let half = half_square(x.row(i));
                    logs.copy_within(i * count..(i + 1) * count, 2 * i * count);
                    let row = &mut logs[2 * i * count..2 * (i + 1) * count];
                    let (forth, back) = row.split_at_mut(count);
                    for (forth, back) in forth.iter_mut().zip(back) {
                        (*forth, *back) = (*forth - half, -*forth - half);
                    }
                }
            }
            Self::Trigonometric => {
                let rows = angles.chunks_exact(count);
                for (angles, signs) in rows.zip(signs.chunks_exact_mut(2 * count)) {
                    let (cos, sin) = signs.split_at_mut(count);
                    sin_cos(angles, sin, cos);
                }
                for (i, logs) in logs.chunks_exact_mut(2 * count).enumerate() {
                    logs.fill(half_square(x.row(i)));
                }
            }
        }
    }

    /// Pulls a cotangent of features back to their angles: `features` holds each feature, the exponential of
    /// its logarithm in `logs`, times a constant factor that may differ by row and by feature. `cotangent` is
    /// the cotangent of `features`.
    ///
    /// Where the cotangent is zero nothing is added, whatever the feature.
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn pull_back<T: Real>(
        &self,
        (logs, features): (&[T], &[T]),
        cotangent: &[T],
        out: AngleGradients<T>,
    ) {
        assert_eq!(logs.len(), features.len(), "a feature a logarithm");
        assert_eq!(logs.len(), cotangent.len(), "a cotangent a feature");
        instructions::run(PullBack {
            map: *self,
            logs,
            features,
            cotangent,
            inactive: self.inactive(),
            out,
        });
    }

    /// The logarithm of a rectified feature whose angle is not above zero, rounded as
    /// [`write_logarithms`](Self::write_logarithms) rounds it: another function for the logarithm would tell
    /// some of these features from themselves.
    fn inactive<T: Real>(&self) -> T {
        let Self::Relu { epsilon } = *self else {
            return T::neg_infinity();
        };
        let mut log = [T::of(epsilon)];
        ln_in_place(&mut log);
        log[0]
    }

    /// Adds the gradients along rows of `x` to `out`, given those of [`RandomFeatureMap::pull_back`] and the
    /// frequencies W, `[m, d]`.
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn add_input_gradients<T: Real>(
        &self,
        x: Mat<T>,
        w: &Panels<T>,
        AngleGradients { angles, logs }: &AngleGradients<T>,
        out: &mut [T],
    ) {
        let (rows, width) = x.shape();
        let angles = Mat::new(angles, rows, w.shape().0);
        matmul(T::one(), angles, w, T::one(), MatMut::new(out, rows, width));
        let sign = T::of(self.square());
        for (i, (&sum, out)) in logs.iter().zip(out.chunks_exact_mut(width)).enumerate() {
            if sign != T::zero() && sum != T::zero() {
                let x = x.row(i).iter();
                out.iter_mut()
                    .zip(x)
                    .for_each(|(out, &x)| *out += sign * sum * x);
            }
        }
    }
}

/// $|x|^2 / 2$, in double precision.
#[inline(always)]
fn half_square<T: Real>(x: &[T]) -> T {
    let square = |x: &T| x.as_f64() * x.as_f64();
    let (chunks, rest) = x.as_chunks::<16>();
    let mut lanes = [0.0; 16];
    for chunk in chunks {
        let each = lanes.iter_mut().zip(chunk);
        each.for_each(|(lane, x)| *lane += square(x));
    }
    let rest: f64 = rest.iter().map(square).sum();
    T::of(0.5 * (lanes.iter().sum::<f64>() + rest))
}

/// Subtracts from the angles of each row of `x` half of its square.
struct SubtractHalfSquares<'a, T> {
    x: Mat<'a, T>,
    logs: &'a mut [T],
}

impl<T: Real> Task for SubtractHalfSquares<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let count = self.logs.len() / self.x.shape().0.max(1);
        let rows = self.logs.chunks_exact_mut(count.max(1));
        for (i, logs) in rows.enumerate() {
            let half = half_square(self.x.row(i));
            logs.iter_mut().for_each(|u| *u -= half);
        }
    }
}

/// From cotangents of features to those of angles.
struct PullBack<'a, T> {
    map: RandomFeatureMap,
    logs: &'a [T],
    features: &'a [T],
    cotangent: &'a [T],
    /// The logarithm of an inactive rectified feature.
    inactive: T,
    out: AngleGradients<'a, T>,
}

impl<T: Real> Task for PullBack<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let AngleGradients { angles, logs: sums } = self.out;
        let count = angles.len() / sums.len().max(1);
        let per_row = self.map.features(count).max(1);
        let rows = (self.features.chunks_exact(per_row)).zip(self.cotangent.chunks_exact(per_row));
        let rows = rows.zip(self.logs.chunks_exact(per_row));
        let out = angles.chunks_exact_mut(count.max(1)).zip(sums);
        for ((out, sum), ((f, x), logs)) in out.zip(rows) {
            *sum += match self.map {
                RandomFeatureMap::Positive => add_products(f, x, out),
                _ => along_logs(f, x),
            };
            match self.map {
                // The gradients are the terms of the sum.
                RandomFeatureMap::Positive => {}
                RandomFeatureMap::Hyperbolic => {
                    let ((f, f_back), (x, x_back)) = (f.split_at(count), x.split_at(count));
                    for (r, out) in out.iter_mut().enumerate() {
                        *out += times(f[r], x[r]) - times(f_back[r], x_back[r]);
                    }
                }
                RandomFeatureMap::Trigonometric => {
                    let ((cos, sin), (x_cos, x_sin)) = (f.split_at(count), x.split_at(count));
                    for (r, out) in out.iter_mut().enumerate() {
                        *out += times(cos[r], x_sin[r]) - times(sin[r], x_cos[r]);
                    }
                }
                RandomFeatureMap::Relu { .. } => {
                    for (r, out) in out.iter_mut().enumerate() {
                        if logs[r] > self.inactive {
                            *out += times(f[r], x[r]) * (-logs[r]).exp();
                        }
                    }
                }
            }
        }
    }
}

/// A product that is zero where the second factor is.
#[inline(always)]
fn times<T: Real>(a: T, b: T) -> T {
    if b == T::zero() { T::zero() } else { a * b }
}

/// Adds the products to `out`, and returns their sum.
#[inline(always)]
fn add_products<T: Real>(f: &[T], x: &[T], out: &mut [T]) -> T {
    let ((f, f_rest), (x, x_rest)) = (f.as_chunks::<16>(), x.as_chunks::<16>());
    let (out, out_rest) = out.as_chunks_mut::<16>();
    let mut lanes = [T::zero(); 16];
    for ((out, f), x) in out.iter_mut().zip(f).zip(x) {
        for (((lane, out), &f), &x) in lanes.iter_mut().zip(out).zip(f).zip(x) {
            let product = times(f, x);
            *lane += product;
            *out += product;
        }
    }
    let mut sum = lanes.into_iter().fold(T::zero(), |sum, x| sum + x);
    for ((out, &f), &x) in out_rest.iter_mut().zip(f_rest).zip(x_rest) {
        let product = times(f, x);
        sum += product;
        *out += product;
    }
    sum
}

/// The sum of the products.
#[inline(always)]
fn along_logs<T: Real>(f: &[T], x: &[T]) -> T {
    let ((f, f_rest), (x, x_rest)) = (f.as_chunks::<16>(), x.as_chunks::<16>());
    let mut lanes = [T::zero(); 16];
    for (f, x) in f.iter().zip(x) {
        for ((lane, &f), &x) in lanes.iter_mut().zip(f).zip(x) {
            *lane += times(f, x);
        }
    }
    let rest = f_rest.iter().zip(x_rest).map(|(&f, &x)| times(f, x));
    lanes
        .into_iter()
        .chain(rest)
        .fold(T::zero(), |sum, x| sum + x)
}

/// The features of the rows of `x`: `[T, m]` or `[T, 2m]`, the cosines or the features of $+u$ first.
///
/// # Shapes
/// `x` is `[T, d]`, the frequencies `w` are `[m, d]`.
///
/// # Errors
/// [`Error::Argument`] if `x` and `w` differ in width, if there are no frequencies, or for an $\epsilon$ out
/// of its range.
///
/// # Numerics
/// $O(T m d)$ time on the calling thread. A feature beyond the type's range is infinite or zero; attention
/// works with the [`Logarithms`].
///
/// # Reference
/// Choromanski et al., *Rethinking Attention with Performers*, ICLR 2021, lemmas 1 and 2.
///
/// # Example
/// ```
/// use bochner_kernels::{Coupling, Lengthscale, Norms, RandomFeatureMap, RbfConfig, coupled_frequencies, random_feature_map};
/// use bochner_numerics::Seed;
/// use bochner_kernels::ndarray::array;
///
/// let kernel = RbfConfig { lengthscale: Lengthscale::Shared(1.0_f64) }.build()?;
/// let mut stream = Seed::new(1).stream("frequencies");
/// let w = coupled_frequencies(&kernel, 2, 4096, (Coupling::Orthogonal, Norms::Chi), &mut stream)?.w;
/// let x = array![[0.3, 0.1], [-0.2, 0.4]];
/// let phi = random_feature_map(x.view(), w.view(), RandomFeatureMap::Positive)?;
/// let want = x.dot(&x.t()).mapv(f64::exp);
/// assert!((phi.dot(&phi.t()) - want).iter().all(|error| error.abs() < 0.05));
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
pub fn random_feature_map<T: Real>(
    x: ArrayView2<T>,
    w: ArrayView2<T>,
    map: RandomFeatureMap,
) -> Result<Array2<T>, Error> {
    let Features { scaled, count, .. } = Features::new(x, w, map)?;
    let features = map.features(count);
    Ok(Array2::from_shape_vec((x.nrows(), features), scaled).expect("a row a position"))
}

/// The vector-Jacobian product of [`random_feature_map`]: gradients along `x` and `w`.
///
/// # Shapes
/// `cotangent` is shaped as the features.
///
/// # Errors
/// The errors of [`random_feature_map`], and [`Error::Argument`] if `cotangent` does not fit.
///
/// # Numerics
/// At $u = 0$ the gradient of $\max(u, 0)$ is 0.
pub fn random_feature_map_vjp<T: Real>(
    x: ArrayView2<T>,
    w: ArrayView2<T>,
    map: RandomFeatureMap,
    cotangent: ArrayView2<T>,
) -> Result<[Array2<T>; 2], Error> {
    let own = Features::new(x, w, map)?;
    let (rows, width) = x.dim();
    argument::shape(
        "cotangent",
        &[rows, map.features(own.count)],
        cotangent.shape(),
    )?;
    let (x, w) = (x.as_standard_layout(), w.as_standard_layout());
    let cotangent = cotangent.as_standard_layout();
    let (mut angles, mut logs) = (zeros(rows * own.count), zeros(rows));
    let out = AngleGradients {
        angles: &mut angles,
        logs: &mut logs,
    };
    map.pull_back((&own.logs, &own.scaled), mat(&cotangent).data(), out);
    let (mut along_x, mut along_w) = (Array2::zeros((rows, width)), Array2::zeros(w.raw_dim()));
    let given = AngleGradients {
        angles: &mut angles,
        logs: &mut logs,
    };
    let target = along_x.as_slice_mut().expect("row-major");
    map.add_input_gradients(mat(&x), &Panels::new(mat(&w)), &given, target);
    let target = along_w.as_slice_mut().expect("row-major");
    let target = MatMut::new(target, own.count, width);
    let angles = Mat::new(&angles, rows, own.count);
    matmul(T::one(), angles.t(), mat(&x), T::zero(), target);
    Ok([along_x, along_w])
}

/// Features as they are, with their logarithms.
struct Features<T> {
    logs: Vec<T>,
    scaled: Vec<T>,
    count: usize,
}

impl<T: Real> Features<T> {
    fn new(x: ArrayView2<T>, w: ArrayView2<T>, map: RandomFeatureMap) -> Result<Self, Error> {
        map.validate()?;
        let (rows, count) = (x.nrows(), w.nrows());
        argument::not_empty("w", w.shape())?;
        argument::shape("x", &[rows, w.ncols()], x.shape())?;
        let (x, w) = (x.as_standard_layout(), w.as_standard_layout());
        let features = map.features(count);
        let signed = if map.is_positive() {
            0
        } else {
            rows * features
        };
        let (mut logs, mut signs) = (zeros(rows * features), zeros(signed));
        let mut out = Logarithms {
            logs: &mut logs,
            signs: &mut signs,
        };
        map.write_logarithms(mat(&x), &Panels::new(mat(&w).t()), &mut out);
        let mut scaled = logs.clone();
        exp_in_place(&mut scaled);
        // Hyperbolic features divide by the number of both halves.
        let factor = match map {
            RandomFeatureMap::Hyperbolic => T::of(2.0 * count as f64),
            _ => T::of(count as f64),
        };
        let factor = factor.sqrt().recip();
        scaled.iter_mut().for_each(|f| *f *= factor);
        scaled
            .iter_mut()
            .zip(&signs)
            .for_each(|(f, &sign)| *f *= sign);
        Ok(Self {
            logs,
            scaled,
            count,
        })
    }
}
