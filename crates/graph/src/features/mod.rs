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
/// # Errors
/// [`Error::Argument`] for NaN and infinity.
///
/// ```
/// use bochner_graph::ndarray::array;
///
/// let x = array![[1.0, 3.0], [0.0, 0.0]];
/// assert_eq!(bochner_graph::row_normalised(x.view())?, array![[0.25, 0.75], [0.0, 0.0]]);
/// # Ok::<(), bochner_graph::Error>(())
/// ```
pub fn row_normalised<T: Real>(x: ArrayView2<T>) -> Result<Array2<T>, Error> {
    let mut x = x.as_standard_layout().into_owned();
    finite(
        "features",
        &[x.nrows(), x.ncols()],
        x.as_slice().expect("in row-major order"),
    )?;
    for mut row in x.rows_mut() {
        normalise(row.as_slice_mut().expect("in row-major order"));
    }
    Ok(x)
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
