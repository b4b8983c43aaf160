//! Strided matrix views and their product.

use crate::Real;
use crate::operations::{Operations, record};
use std::ops::Range;

/// A read-only matrix over a slice, with a stride (in elements) for each axis.
#[derive(Clone, Copy, Debug)]
pub struct Mat<'a, T> {
    data: &'a [T],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a, T> Mat<'a, T> {
    /// A row-major matrix of shape `[rows, cols]`.
    ///
    /// # Panics
    /// If `data` does not have `rows * cols` elements.
    #[inline]
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "a matrix of {rows} x {cols}");
        Self {
            data,
            rows,
            cols,
            row_stride: cols,
            col_stride: 1,
        }
    }

    /// The transposed view.
    #[inline]
    pub fn t(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// `(rows, columns)`.
    #[inline]
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// The elements, in the order of the underlying slice.
    #[inline]
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// The element in row `i` and column `j`.
    ///
    /// # Panics
    /// If it lies outside.
    #[inline]
    pub fn get(&self, i: usize, j: usize) -> T
    where
        T: Copy,
    {
        assert!(i < self.rows && j < self.cols);
        self.data[i * self.row_stride + j * self.col_stride]
    }

    /// The rows in `range` of a row-major matrix.
    ///
    /// # Panics
    /// If the range is out of bounds or the matrix is a transposed view.
    #[inline]
    pub fn row_range(self, range: Range<usize>) -> Self {
        assert!(self.col_stride == 1 && self.row_stride == self.cols);
        Self::new(
            &self.data[range.start * self.cols..range.end * self.cols],
            range.len(),
            self.cols,
        )
    }

    /// Row `i` of a row-major matrix.
    ///
    /// # Panics
    /// If `i` is out of bounds or the matrix is a transposed view.
    #[inline]
    pub fn row(self, i: usize) -> &'a [T] {
        self.row_range(i..i + 1).data
    }
}

/// A writable, row-major matrix over a slice.
#[derive(Debug)]
pub struct MatMut<'a, T> {
    data: &'a mut [T],
    rows: usize,
    cols: usize,
}

impl<'a, T> MatMut<'a, T> {
    /// A row-major matrix of shape `[rows, cols]`.
    ///
    /// # Panics
    /// If `data` does not have `rows * cols` elements.
    #[inline]
    pub fn new(data: &'a mut [T], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "a matrix of {rows} x {cols}");
        Self { data, rows, cols }
    }
}

/// $C \leftarrow \alpha A B + \beta C$, on the calling thread.
///
/// # Shapes
/// `a` is `[m, k]`, `b` is `[k, n]`, `c` is `[m, n]`.
///
/// # Numerics
/// $O(m n k)$ time. With `beta` zero, `c` is overwritten without being read. Call it from inside
/// [`parallel`](crate::parallel) to use several threads: the order of summation is then the same
/// for any number of them.
///
/// # Panics
/// If the shapes do not fit.
#[allow(unsafe_code)]
pub fn matmul<T: Real>(alpha: T, a: Mat<T>, b: Mat<T>, beta: T, c: MatMut<T>) {
    let (m, k, n) = (a.rows, a.cols, b.cols);
    assert_eq!(k, b.rows, "inner dimensions");
    assert_eq!((m, n), (c.rows, c.cols), "shape of the product");
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        scale(beta, c.data);
        return;
    }
    record(Operations::multiply_adds(m * n * k));
    // SAFETY: each view was built over a slice of exactly rows * cols elements, and transposing
    // only swaps the two strides, so every index (i, j) inside the shape lies inside the slice.
    // `c` is borrowed mutably, hence aliases neither `a` nor `b`.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.data.as_mut_ptr(),
            1,
            c.cols as isize,
            beta != T::zero(),
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            beta,
            alpha,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

fn scale<T: Real>(factor: T, data: &mut [T]) {
    for x in data {
        *x = if factor == T::zero() {
            T::zero()
        } else {
            factor * *x
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use crate::random::standard_normal;

    fn random<T: Real>(n: usize, purpose: &str) -> Vec<T> {
        let mut stream = Seed::new(1).stream(purpose);
        (0..n).map(|_| standard_normal(&mut stream)).collect()
    }

    fn agrees_with_the_definition<T: Real>(tolerance: f64) {
        for (m, k, n) in [(1, 1, 1), (3, 5, 2), (17, 33, 9), (64, 40, 70), (2, 0, 3)] {
            let (a, b): (Vec<T>, Vec<T>) = (random(m * k, "a"), random(k * n, "b"));
            let c: Vec<T> = random(m * n, "c");
            for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
                let left = if ta {
                    Mat::new(&a, k, m).t()
                } else {
                    Mat::new(&a, m, k)
                };
                let right = if tb {
                    Mat::new(&b, n, k).t()
                } else {
                    Mat::new(&b, k, n)
                };
                let mut got = c.clone();
                let (alpha, beta) = (T::of(0.5), T::of(-2.0));
                matmul(alpha, left, right, beta, MatMut::new(&mut got, m, n));
                for i in 0..m {
                    for j in 0..n {
                        let at = |l: usize| if ta { a[l * m + i] } else { a[i * k + l] };
                        let bt = |l: usize| if tb { b[j * k + l] } else { b[l * n + j] };
                        let sum: f64 = (0..k).map(|l| at(l).as_f64() * bt(l).as_f64()).sum();
                        let want = 0.5 * sum - 2.0 * c[i * n + j].as_f64();
                        assert!((got[i * n + j].as_f64() - want).abs() < tolerance);
                    }
                }
            }
        }
    }

    #[test]
    fn products_agree_with_the_definition() {
        agrees_with_the_definition::<f32>(1e-4);
        agrees_with_the_definition::<f64>(1e-12);
    }

    #[test]
    fn zero_beta_does_not_read_the_target() {
        let mut c = [f32::NAN];
        matmul(
            1.0,
            Mat::new(&[2.0], 1, 1),
            Mat::new(&[3.0], 1, 1),
            0.0,
            MatMut::new(&mut c, 1, 1),
        );
        assert_eq!(c, [6.0]);
    }
}
