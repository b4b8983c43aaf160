//! The features whose inner product is the squared kernel.

use super::Augmented;
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::operations::record;
use bochner_numerics::{Mat, MatMut, Operations, Real, matmul};

/// $\psi$ of a block of rows, a feature a row: $\psi_{aa} = x_a^2$ and, for a < b,
/// $\psi_{ab} = \sqrt 2\, x_a x_b$, so that $\psi(x) \cdot \psi(y) = (x \cdot y)^2$.
///
/// A feature a row: then each is one product of two rows of x, and $\psi$ may stand on either side
/// of a matrix product as it is.
pub(super) struct SymmetricFeatures<T> {
    /// The scaled rows x, transposed.
    columns: Vec<T>,
    psi: Vec<T>,
    rows: usize,
    width: usize,
    scale: T,
    /// Room for the gradients of psi and of x, transposed.
    d_psi: Vec<T>,
    d_columns: Vec<T>,
}

/// How many features rows of some width have.
pub(super) fn count(width: usize) -> usize {
    width * (width + 1) / 2
}

impl<T: Real> SymmetricFeatures<T> {
    /// Of no rows; later of $x = $ `scale` times rows of `width` numbers.
    pub(super) fn new(width: usize, scale: T) -> Self {
        Self {
            columns: Vec::new(),
            psi: Vec::new(),
            rows: 0,
            width,
            scale,
            d_psi: Vec::new(),
            d_columns: Vec::new(),
        }
    }

    /// The same of other rows, in the same memory.
    pub(super) fn of(&mut self, phi: Mat<T>) -> &mut Self {
        let (rows, width) = phi.shape();
        // The features, and each entry once by the scale and once by the root of two.
        record(Operations::multiply_adds(rows * (count(width) + 2 * width)));
        self.rows = rows;
        self.columns.resize(rows * width, T::zero());
        transpose(phi.data(), width, self.scale, &mut self.columns);
        self.psi.resize(rows * count(width), T::zero());
        instructions::run(Products {
            columns: &self.columns,
            rows,
            psi: &mut self.psi,
        });
        self
    }

    /// $\psi^T$, of shape `[features, rows]`.
    pub(super) fn transposed(&self) -> Mat<'_, T> {
        Mat::new(&self.psi, count(self.width), self.rows)
    }

    /// $S \leftarrow S + \sum_i \psi_i y_i^T$.
    pub(super) fn add_to(&self, y: &Augmented<T>, moments: &mut Augmented<T>) {
        let (features, width) = (count(self.width), y.width());
        let target = MatMut::new(&mut moments.wide, features, width);
        matmul(T::one(), self.transposed(), y.matrix(), T::one(), target);
        record(Operations::multiply_adds(features * self.rows));
        instructions::run(Sums {
            psi: &self.psi,
            y: &y.last,
            sums: &mut moments.last,
        });
    }

    /// $S^T \psi_i$ of each row.
    pub(super) fn read(&self, moments: &Augmented<T>) -> Augmented<T> {
        let (features, width) = (count(self.width), moments.width());
        let mut read = Augmented::zeros(self.rows, width);
        let target = MatMut::new(&mut read.wide, self.rows, width);
        let psi = self.transposed().t();
        matmul(T::one(), psi, moments.matrix(), T::zero(), target);
        record(Operations::multiply_adds(features * self.rows));
        instructions::run(Reading {
            psi: &self.psi,
            moments: &moments.last,
            out: &mut read.last,
        });
        read
    }

    /// Adds to the gradient with respect to `phi` what that with respect to $\psi_i$, namely
    /// $S y_i$, comes to.
    ///
    /// It is the product of the symmetric matrix of which $S y_i$ holds one half with x.
    pub(super) fn pull_back(
        &mut self,
        moments: &Augmented<T>,
        y: &Augmented<T>,
        gradient: &mut [T],
    ) {
        let (features, rows) = (count(self.width), self.rows);
        self.d_psi.resize(features * rows, T::zero());
        let target = MatMut::new(&mut self.d_psi, features, rows);
        let y_transposed = y.matrix().t();
        matmul(T::one(), moments.matrix(), y_transposed, T::zero(), target);
        self.d_columns.clear();
        self.d_columns.resize(self.columns.len(), T::zero());
        record(Operations::multiply_adds(3 * features * rows));
        instructions::run(PullBack {
            columns: &self.columns,
            d_psi: &self.d_psi,
            moments: &moments.last,
            y: &y.last,
            d_columns: &mut self.d_columns,
        });
        for (i, gradient) in gradient.chunks_exact_mut(self.width).enumerate() {
            for (g, column) in gradient.iter_mut().zip(self.d_columns.chunks_exact(rows)) {
                *g += self.scale * column[i];
            }
        }
    }
}

/// From transposed rows to their features.
struct Products<'a, T> {
    columns: &'a [T],
    rows: usize,
    psi: &'a mut [T],
}

impl<T: Real> Task for Products<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let Self { columns, rows, psi } = self;
        let mut features = psi.chunks_exact_mut(rows);
        let mut scaled = vec![T::zero(); rows];
        for (a, x) in columns.chunks_exact(rows).enumerate() {
            let squares = features.next().expect("a feature of each column alone");
            squares.iter_mut().zip(x).for_each(|(f, &x)| *f = x * x);
            let root = scaled.iter_mut().zip(x);
            root.for_each(|(scaled, &x)| *scaled = T::SQRT_2() * x);
            let later = columns[(a + 1) * rows..].chunks_exact(rows);
            for (y, feature) in later.zip(&mut features) {
                for ((f, &x), &y) in feature.iter_mut().zip(&scaled).zip(y) {
                    *f = x * y;
                }
            }
        }
    }
}

/// Adds $\sum_i \psi_{ia} y_i$ to each sum.
struct Sums<'a, T> {
    psi: &'a [T],
    y: &'a [T],
    sums: &'a mut [T],
}

impl<T: Real> Task for Sums<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let features = self.psi.chunks_exact(self.y.len());
        for (sum, feature) in self.sums.iter_mut().zip(features) {
            *sum += dot::<T, A>(feature, self.y);
        }
    }
}

/// A product of two slices, in sixteen lanes.
#[inline(always)]
fn dot<T: Real, A: Arithmetic>(x: &[T], y: &[T]) -> T {
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<16>(), y.as_chunks::<16>());
    let mut lanes = [T::zero(); 16];
    for (x, y) in x.iter().zip(y) {
        for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
            *lane = A::mul_add(x, y, *lane);
        }
    }
    for ((lane, &x), &y) in lanes.iter_mut().zip(x_rest).zip(y_rest) {
        *lane = A::mul_add(x, y, *lane);
    }
    lanes.iter().fold(T::zero(), |sum, &lane| sum + lane)
}

/// $\sum_a S_a \psi_{ia}$ of each row.
struct Reading<'a, T> {
    psi: &'a [T],
    moments: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Task for Reading<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let features = self.psi.chunks_exact(self.out.len());
        for (&moment, feature) in self.moments.iter().zip(features) {
            for (out, &f) in self.out.iter_mut().zip(feature) {
                *out = A::mul_add(moment, f, *out);
            }
        }
    }
}

/// From the gradients of features to those of transposed rows.
struct PullBack<'a, T> {
    columns: &'a [T],
    d_psi: &'a [T],
    moments: &'a [T],
    y: &'a [T],
    d_columns: &'a mut [T],
}

impl<T: Real> Task for PullBack<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let Self { columns, y, .. } = self;
        let rows = y.len();
        let mut pairs = self.d_psi.chunks_exact(rows).zip(self.moments);
        for (a, x) in columns.chunks_exact(rows).enumerate() {
            let (own, later) = self.d_columns[a * rows..].split_at_mut(rows);
            let pair = pairs.next().expect("a pair of the column with itself");
            pull_pair::<T, A>(pair, y, |i, d| own[i] += (d + d) * x[i]);
            let others = columns[(a + 1) * rows..].chunks_exact(rows);
            let others = others.zip(later.chunks_exact_mut(rows));
            for ((z, other), pair) in others.zip(&mut pairs) {
                pull_pair::<T, A>(pair, y, |i, d| {
                    let d = T::SQRT_2() * d;
                    own[i] = A::mul_add(d, z[i], own[i]);
                    other[i] = A::mul_add(d, x[i], other[i]);
                });
            }
        }
    }
}

/// Calls `f` with the gradient of a feature of each row.
#[inline(always)]
fn pull_pair<T: Real, A: Arithmetic>(
    (d_psi, &moment): (&[T], &T),
    y: &[T],
    mut f: impl FnMut(usize, T),
) {
    for (i, (&d, &y)) in d_psi.iter().zip(y).enumerate() {
        f(i, A::mul_add(moment, y, d));
    }
}

/// Rows of `width` numbers, scaled and transposed.
fn transpose<T: Real>(x: &[T], width: usize, scale: T, out: &mut [T]) {
    let rows = out.len() / width;
    for (i, row) in x.chunks_exact(width).enumerate() {
        for (&x, column) in row.iter().zip(out.chunks_exact_mut(rows)) {
            column[i] = scale * x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::{Seed, finite_difference, relative_error, standard_normal};

    const ROWS: usize = 3;
    const WIDTH: usize = 4;

    fn random(n: usize, purpose: &str) -> Vec<f64> {
        let mut stream = Seed::new(1).stream(purpose);
        (0..n).map(|_| standard_normal(&mut stream)).collect()
    }

    fn features(scale: f64) -> SymmetricFeatures<f64> {
        SymmetricFeatures::new(WIDTH, scale)
    }

    #[test]
    fn their_product_is_the_square_of_the_rows_product() {
        let (x, y) = (random(ROWS * WIDTH, "x"), random(ROWS * WIDTH, "y"));
        let (mut psi_x, mut psi_y) = (features(0.5), features(0.5));
        let psi_x = psi_x.of(Mat::new(&x, ROWS, WIDTH));
        let psi_y = psi_y.of(Mat::new(&y, ROWS, WIDTH));
        let (psi_x, psi_y) = (psi_x.transposed(), psi_y.transposed());
        for i in 0..ROWS {
            for j in 0..ROWS {
                let dot: f64 = (0..WIDTH)
                    .map(|a| x[i * WIDTH + a] * y[j * WIDTH + a])
                    .sum();
                let got: f64 = (0..count(WIDTH))
                    .map(|p| psi_x.get(p, i) * psi_y.get(p, j))
                    .sum();
                assert!((got - (0.25 * dot).powi(2)).abs() < 1e-13);
            }
        }
    }

    fn augmented(rows: usize, purpose: &str) -> Augmented<f64> {
        Augmented {
            wide: random(rows * 2, purpose),
            last: random(rows, &[purpose, "last"].concat()),
        }
    }

    /// $\sum_i y_i^T S^T \psi_i$.
    fn pairing(x: &[f64], moments: &Augmented<f64>, y: &Augmented<f64>) -> f64 {
        let read = features(0.7).of(Mat::new(x, ROWS, WIDTH)).read(moments);
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        dot(&read.wide, &y.wide) + dot(&read.last, &y.last)
    }

    #[test]
    fn adding_to_moments_is_the_transpose_of_reading_them() {
        let x = random(ROWS * WIDTH, "x");
        let (y, other) = (augmented(ROWS, "y"), augmented(count(WIDTH), "moments"));
        let mut sums = Augmented::zeros(count(WIDTH), 2);
        features(0.7)
            .of(Mat::new(&x, ROWS, WIDTH))
            .add_to(&y, &mut sums);
        let wide = sums.wide.iter().zip(&other.wide);
        let last = sums.last.iter().zip(&other.last);
        let got: f64 = wide.chain(last).map(|(a, b)| a * b).sum();
        assert!((got - pairing(&x, &other, &y)).abs() < 1e-12);
    }

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        let x = random(ROWS * WIDTH, "x");
        let (moments, y) = (augmented(count(WIDTH), "moments"), augmented(ROWS, "y"));
        let mut got = vec![0.0; x.len()];
        let mut psi = features(0.7);
        psi.of(Mat::new(&x, ROWS, WIDTH))
            .pull_back(&moments, &y, &mut got);
        let want = finite_difference(&x, |x| pairing(x, &moments, &y));
        assert!(relative_error(&got, &want) < 1e-6);
    }
}
