//! Features of the nodes: dense or sparse rows, and their products with a weight.

pub(crate) mod dense;
pub(crate) mod multiply;
mod sparse;

pub use sparse::SparseFeatures;

use crate::Error;
use crate::error::{finite, too_large, within};
use bochner_numerics::{DropoutMask, Real, argument};
use ndarray::{Array2, ArrayView2};

/// Features of the nodes, `[N, F]`.
#[derive(Clone, Copy, Debug)]
pub enum Features<'a, T> {
    /// Every number is stored.
    Dense(ArrayView2<'a, T>),
    /// Only the numbers that are not zero are stored.
    Sparse(&'a SparseFeatures<T>),
}

impl<'a, T> From<&'a SparseFeatures<T>> for Features<'a, T> {
    fn from(features: &'a SparseFeatures<T>) -> Self {
        Self::Sparse(features)
    }
}

impl<'a, T> From<ArrayView2<'a, T>> for Features<'a, T> {
    fn from(features: ArrayView2<'a, T>) -> Self {
        Self::Dense(features)
    }
}

impl<T: Real> Features<'_, T> {
    /// The number of nodes.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(x) => x.nrows(),
            Self::Sparse(x) => x.rows(),
        }
    }

    /// The number of features of a node.
    pub fn columns(&self) -> usize {
        match self {
            Self::Dense(x) => x.ncols(),
            Self::Sparse(x) => x.columns(),
        }
    }

    /// $Y = X W$: the features of each node, transformed.
    ///
    /// # Shapes
    /// `weight: [F, F']` to `[N, F']`.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of rows, NaN or infinity in what is multiplied;
    /// [`Error::TooLarge`] if the product overflows.
    ///
    /// # Numerics
    /// $O(N F F')$ time, or $O(S F')$ where $S$ features are stored; by all threads, with the same
    /// result for any number of them.
    ///
    /// ```
    /// use bochner_graph::{Features, SparseFeatures};
    /// use bochner_graph::ndarray::array;
    ///
    /// let x = array![[0.0, 2.0], [1.0, 0.0]];
    /// let weight = array![[1.0, 10.0, 100.0], [3.0, 30.0, 300.0]];
    /// let sparse = SparseFeatures::from_dense(x.view())?;
    /// let y = Features::Sparse(&sparse).product(weight.view())?;
    /// assert_eq!(y, array![[6.0, 60.0, 600.0], [1.0, 10.0, 100.0]]);
    /// assert_eq!(y, Features::Dense(x.view()).product(weight.view())?);
    /// # Ok::<(), bochner_graph::Error>(())
    /// ```
    pub fn product(&self, weight: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let width = weight.ncols();
        argument::shape("weight", &[self.columns(), width], weight.shape())?;
        let weight = weight.as_standard_layout();
        let weight = weight.as_slice().expect("brought to row-major order");
        let product = match self {
            Self::Dense(x) => dense::times(*x, weight, width),
            Self::Sparse(x) if width > 0 => x.times(weight, width),
            Self::Sparse(_) => Vec::new(),
        };
        let product = array(self.rows(), width, product);
        if !within(product.as_slice().expect("just allocated"), T::max_value()) {
            // Sparse features were checked when they were made.
            if let Self::Dense(x) = self {
                argument::finite("features", x.shape(), x)?;
            }
            finite("weight", &[self.columns(), width], weight)?;
            too_large(
                "the product of features and weight",
                product.view(),
                T::max_value(),
            )?;
        }
        Ok(product)
    }

    /// The gradient of [`product`](Self::product) along the weight, $X^T \dot Y$.
    ///
    /// # Shapes
    /// `cotangent: [N, F']` to `[F, F']`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a wrong shape.
    ///
    /// # Numerics
    /// Time and threads are those of [`product`](Self::product); dense features are taken in at most sixteen
    /// parts, whose sums are added in order.
    pub fn weight_vjp(&self, cotangent: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let width = cotangent.ncols();
        argument::shape("cotangent", &[self.rows(), width], cotangent.shape())?;
        let cotangent = cotangent.as_standard_layout();
        let cotangent = cotangent.as_slice().expect("brought to row-major order");
        let gradient = match self {
            Self::Dense(x) => dense::transposed_times(*x, cotangent, width),
            Self::Sparse(x) if width > 0 => x.transposed_times(cotangent, width),
            Self::Sparse(_) => Vec::new(),
        };
        Ok(array(self.columns(), width, gradient))
    }

    /// The gradient of [`product`](Self::product) along the features, $\dot Y W^T$; `None` for sparse
    /// ones, whose gradient would be dense.
    ///
    /// # Shapes
    /// `weight: [F, F']`, `cotangent: [N, F']` to `[N, F]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a wrong shape.
    pub fn features_vjp(
        &self,
        weight: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<Option<Array2<T>>, Error> {
        let width = weight.ncols();
        argument::shape("weight", &[self.columns(), width], weight.shape())?;
        argument::shape("cotangent", &[self.rows(), width], cotangent.shape())?;
        let Self::Dense(_) = self else {
            return Ok(None);
        };
        let gradient = dense::times_transposed(cotangent, weight);
        Ok(Some(array(self.rows(), self.columns(), gradient)))
    }
}

/// The rows of `x`, each divided by the sum of its absolute values; a row of zeros stays one.
///
/// # Shapes
/// `x: [N, F]` to `[N, F]`.
///
/// ```
/// use bochner_graph::ndarray::array;
///
/// let x = array![[1.0, 3.0], [0.0, 0.0]];
/// assert_eq!(bochner_graph::row_normalised(x.view()), array![[0.25, 0.75], [0.0, 0.0]]);
/// ```
pub fn row_normalised<T: Real>(x: ArrayView2<T>) -> Array2<T> {
    let mut x = x.as_standard_layout().into_owned();
    for mut row in x.rows_mut() {
        normalise(row.as_slice_mut().expect("brought to row-major order"));
    }
    x
}

/// `x` after dropout: element `i` in row-major order times the factor `i`.
///
/// It is its own gradient: the cotangent, dropped out in the same way, is that of `x`.
///
/// # Shapes
/// `x: [N, F]` to `[N, F]`.
pub fn dropped_out<T: Real>(x: ArrayView2<T>, dropout: &DropoutMask) -> Array2<T> {
    let standard = x.as_standard_layout();
    let values = standard.as_slice().expect("brought to row-major order");
    array(x.nrows(), x.ncols(), dense::dropped_out(values, dropout))
}

/// Divides by the sum of the absolute values, if that is not zero.
fn normalise<T: Real>(row: &mut [T]) {
    // Divided by the largest first, the numbers have a sum that neither overflows nor vanishes.
    let largest = row
        .iter()
        .fold(T::zero(), |largest, x| largest.max(x.abs()));
    if largest > T::zero() {
        row.iter_mut().for_each(|x| *x /= largest);
        let sum: T = row.iter().map(|x| x.abs()).sum();
        row.iter_mut().for_each(|x| *x /= sum);
    }
}

fn array<T>(rows: usize, columns: usize, data: Vec<T>) -> Array2<T> {
    Array2::from_shape_vec((rows, columns), data).expect("allocated with this shape")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::Tolerance;
    use bochner_numerics::check::random as normal;

    /// A matrix with many zeros, and a row and a column of nothing else.
    fn mostly_zero<T: Real>(rows: usize, columns: usize) -> Array2<T> {
        let mut x = normal((rows, columns), "x");
        for ((i, n), x) in x.indexed_iter_mut() {
            if (i * 5 + n * 3) % 7 > 1 || i == 1 || n == 2 {
                *x = T::zero();
            }
        }
        x
    }

    fn check_products<T: Real>(rows: usize, columns: usize, width: usize) {
        let x = mostly_zero::<T>(rows, columns);
        let sparse = SparseFeatures::from_dense(x.view()).unwrap();
        let (weight, cotangent) = (normal((columns, width), "w"), normal((rows, width), "c"));
        let (along_weight, along_x) = (x.t().dot(&cotangent), cotangent.dot(&weight.t()));
        let close = |got: &Array2<T>, want: &Array2<T>, tolerance: Tolerance| {
            let bound = tolerance.bound(want.iter().map(|x| x.as_f64()));
            assert_eq!(got.dim(), want.dim());
            assert!(
                got.iter()
                    .zip(want)
                    .all(|(a, b)| (*a - *b).abs().as_f64() <= bound)
            );
        };
        for features in [Features::Dense(x.view()), Features::Sparse(&sparse)] {
            let product = features.product(weight.view()).unwrap();
            close(&product, &x.dot(&weight), Tolerance::outputs::<T>());
            let gradient = features.weight_vjp(cotangent.view()).unwrap();
            close(&gradient, &along_weight, Tolerance::gradients::<T>());
            let gradient = features
                .features_vjp(weight.view(), cotangent.view())
                .unwrap();
            match features {
                Features::Dense(_) => {
                    close(&gradient.unwrap(), &along_x, Tolerance::gradients::<T>())
                }
                Features::Sparse(_) => assert!(gradient.is_none()),
            }
        }
    }

    #[test]
    fn sparse_and_dense_products_are_products() {
        for (rows, columns, width) in [(7, 5, 3), (2100, 40, 8), (3, 500, 64), (1, 4, 1)] {
            check_products::<f64>(rows, columns, width);
            check_products::<f32>(rows, columns, width);
        }
    }

    #[test]
    fn empty_products_are_empty() {
        for (rows, columns, width) in [(0, 3, 2), (3, 0, 2), (3, 2, 0)] {
            check_products::<f64>(rows, columns, width);
        }
    }

    #[test]
    fn what_is_not_finite_is_named() {
        let (mut x, mut weight) = (normal::<f32, _>((3, 2), "x"), normal::<f32, _>((2, 2), "w"));
        let product = |x: &Array2<f32>, weight: &Array2<f32>| {
            let product = Features::Dense(x.view()).product(weight.view());
            product.map_err(|error| error.to_string())
        };
        let error = |x: &Array2<f32>, weight: &Array2<f32>| product(x, weight).unwrap_err();
        assert!(product(&x, &weight).is_ok());
        weight[[1, 0]] = f32::NAN;
        assert!(error(&x, &weight).starts_with("`weight` is NaN at [1, 0]"));
        x[[2, 1]] = f32::INFINITY;
        assert!(error(&x, &weight).starts_with("`features` is inf at [2, 1]"));
        x.fill(1e19);
        weight.fill(1e19);
        assert_eq!(
            product(&x, &weight).unwrap(),
            Array2::from_elem((3, 2), 2e38)
        );
        x[[1, 0]] = 1e20;
        let error = error(&x, &weight);
        assert!(error.starts_with("the product of features and weight is inf at [1, 0]"));
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let x = normal::<f64, _>((3, 2), "x");
        let features = Features::Dense(x.view());
        let (wrong, right) = (normal((3, 2), "w"), normal((2, 4), "w"));
        let mismatch = |error| matches!(error, Error::Argument(_));
        assert!(mismatch(features.product(wrong.view()).unwrap_err()));
        assert!(mismatch(features.weight_vjp(right.view()).unwrap_err()));
        let got = features.features_vjp(right.view(), wrong.view());
        assert!(mismatch(got.unwrap_err()));
    }
}
