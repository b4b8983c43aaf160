//! The features whose inner product is the squared kernel.

use bochner_numerics::operations::record;
use bochner_numerics::{Mat, Operations, Real};

/// $\psi$ of a block of rows, a feature a row: $\psi_{aa} = x_a^2$ and, for a < b,
/// $\psi_{ab} = \sqrt 2\, x_a x_b$, so that $\psi(x) \cdot \psi(y) = (x \cdot y)^2$.
pub(super) struct SymmetricFeatures<T> {
    /// The scaled rows x, transposed.
    columns: Vec<T>,
    psi: Vec<T>,
    rows: usize,
    width: usize,
    scale: T,
}

/// How many features rows of some width have.
pub(super) fn count(width: usize) -> usize {
    width * (width + 1) / 2
}

impl<T: Real> SymmetricFeatures<T> {
    /// Of $x = $ `scale` times each row of `phi`.
    pub(super) fn new(phi: Mat<T>, scale: T) -> Self {
        let (rows, width) = phi.shape();
        // The features, and each entry once by the scale and once by the root of two.
        record(Operations::multiply_adds(rows * (count(width) + 2 * width)));
        let columns = transposed(phi.data(), rows, width, scale);
        let column = |a: usize| &columns[a * rows..(a + 1) * rows];
        let mut psi = Vec::with_capacity(count(width) * rows);
        let mut scaled = vec![T::zero(); rows];
        for a in 0..width {
            psi.extend(column(a).iter().map(|&x| x * x));
            for (scaled, &x) in scaled.iter_mut().zip(column(a)) {
                *scaled = T::SQRT_2() * x;
            }
            for b in a + 1..width {
                psi.extend(scaled.iter().zip(column(b)).map(|(&x, &y)| x * y));
            }
        }
        Self {
            columns,
            psi,
            rows,
            width,
            scale,
        }
    }

    /// $\psi^T$, of shape `[features, rows]`.
    pub(super) fn transposed(&self) -> Mat<'_, T> {
        Mat::new(&self.psi, count(self.width), self.rows)
    }

    /// Adds the gradient with respect to `phi`, given that with respect to $\psi^T$.
    ///
    /// It is the product of the symmetric matrix of which `cotangent` holds one half with x.
    pub(super) fn pull_back(&self, cotangent: &[T], gradient: &mut [T]) {
        let (rows, width) = (self.rows, self.width);
        let mut columns = vec![T::zero(); rows * width];
        let mut pairs = cotangent.chunks_exact(rows.max(1));
        for a in 0..width {
            let (head, tail) = columns.split_at_mut((a + 1) * rows);
            let own = &mut head[a * rows..];
            let x = &self.columns[a * rows..(a + 1) * rows];
            let diagonal = pairs.next().expect("a pair of the row with itself");
            let two = T::one() + T::one();
            add_scaled_product(own, two, diagonal, x);
            for (b, other) in (a + 1..).zip(tail.chunks_exact_mut(rows)) {
                let pair = pairs.next().expect("a pair with every later one");
                let y = &self.columns[b * rows..(b + 1) * rows];
                add_scaled_product(own, T::SQRT_2(), pair, y);
                add_scaled_product(other, T::SQRT_2(), pair, x);
            }
        }
        let back = transposed(&columns, width, rows, self.scale);
        gradient.iter_mut().zip(back).for_each(|(g, x)| *g += x);
    }
}

#[inline(always)]
fn add_scaled_product<T: Real>(sum: &mut [T], factor: T, x: &[T], y: &[T]) {
    for ((sum, &x), &y) in sum.iter_mut().zip(x).zip(y) {
        *sum += factor * x * y;
    }
}

fn transposed<T: Real>(x: &[T], rows: usize, cols: usize, scale: T) -> Vec<T> {
    let mut out = Vec::with_capacity(x.len());
    for j in 0..cols {
        out.extend((0..rows).map(|i| x[i * cols + j] * scale));
    }
    out
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

    #[test]
    fn their_product_is_the_square_of_the_rows_product() {
        let (x, y) = (random(ROWS * WIDTH, "x"), random(ROWS * WIDTH, "y"));
        let of = |data| SymmetricFeatures::new(Mat::new(data, ROWS, WIDTH), 0.5);
        let (psi_x, psi_y) = (of(&x), of(&y));
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

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        let x = random(ROWS * WIDTH, "x");
        let cotangent = random(ROWS * count(WIDTH), "cotangent");
        let of = |data: &[f64]| SymmetricFeatures::new(Mat::new(data, ROWS, WIDTH), 0.7);
        let mut got = vec![0.0; x.len()];
        of(&x).pull_back(&cotangent, &mut got);
        let want = finite_difference(&x, |x| {
            let psi = of(x);
            let pairs = psi.transposed().data().iter().zip(&cotangent);
            pairs.map(|(a, b)| a * b).sum()
        });
        assert!(relative_error(&got, &want) < 1e-6);
    }
}
