//! A kernel of some columns of the points.

use crate::kernel::{Along, Domain, GramGradients, Kernel, Parameter, common_width};
use crate::written::written_as_config;
use crate::{AnyKernel, Error};
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// A kernel that sees some columns of the points, $k(x, y) = k_0(x_c, y_c)$.
///
/// *where* $c$ are the `columns`. The parameters are those of $k_0$.
///
/// # Example
///
/// A field in the plane that repeats itself along both axes, each with a period of its own. The periodic
/// kernel of the distance in the plane would be no covariance:
///
/// ```
/// use bochner_kernels::{Columns, ColumnsConfig, Error, ExpsinConfig, Kernel, Lengthscale};
/// use bochner_kernels::ndarray::array;
///
/// let along = |column: usize, period: f64| -> Result<Columns<f64>, Error> {
///     let base = ExpsinConfig { period, lengthscale: Lengthscale::Shared(1.0) }.build()?.into();
///     ColumnsConfig { columns: vec![column], base }.build()
/// };
/// let kernel = along(0, 2.0)? * along(1, 5.0)?;
/// let k = kernel.value(array![0.3, 0.7].view(), array![2.3, 5.7].view())?;
/// assert!((k - 1.0).abs() < 1e-12);
/// kernel.check_positive_semi_definite(2)?;
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "ColumnsConfig<T>", into = "ColumnsConfig<T>")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct Columns<T: Real> {
    columns: Vec<usize>,
    base: AnyKernel<T>,
}

/// The settings of a [`Columns`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct ColumnsConfig<T: Real> {
    /// The columns, counted from 0, in the order in which the kernel sees them.
    pub columns: Vec<usize>,
    /// The kernel of these columns.
    pub base: AnyKernel<T>,
}

written_as_config!(Columns, ColumnsConfig, columns, base);

impl<T: Real> ColumnsConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are no columns.
    pub fn build(self) -> Result<Columns<T>, Error> {
        argument::not_empty("columns", &[self.columns.len()])?;
        let Self { columns, base } = self;
        Ok(Columns { columns, base })
    }
}

impl<T: Real> Columns<T> {
    /// The columns of both sides.
    fn select(&self, x: &ArrayView2<T>, y: &ArrayView2<T>) -> Result<[Array2<T>; 2], Error> {
        let width = common_width(x, y)?;
        for &column in &self.columns {
            argument::index("columns", column, width)?;
        }
        Ok([x, y].map(|x| x.select(Axis(1), &self.columns)))
    }

    /// The gradient along all columns from that along those selected.
    fn spread(&self, along: &Array2<T>, width: usize) -> Array2<T> {
        let mut all = Array2::zeros((along.nrows(), width));
        for (&column, along) in self.columns.iter().zip(along.columns()) {
            let mut all = all.column_mut(column);
            all += &along;
        }
        all
    }
}

impl<T: Real> Kernel<T> for Columns<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let [x, y] = self.select(&x, &y)?;
        self.base.gram(x.view(), y.view())
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        let width = x.ncols();
        let [x, y] = self.select(&x, &y)?;
        let own = (self.base).gram_vjp_along(along, x.view(), y.view(), cotangent)?;
        Ok(GramGradients {
            x: self.spread(&own.x, width),
            y: self.spread(&own.y, width),
            ..own
        })
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        let [x, _] = self.select(&x, &x)?;
        self.base.diagonal(x.view())
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        let [x, _] = self.select(&x, &x)?;
        self.base.diagonal_vjp(x.view(), cotangent)
    }

    fn check_positive_semi_definite(&self, _: usize) -> Result<(), Error> {
        self.base.check_positive_semi_definite(self.columns.len())
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        let mut parameters = self.base.parameters();
        for parameter in &mut parameters {
            if let Domain::Frequency { column } = &mut parameter.domain {
                *column = self.columns.get(*column).copied().unwrap_or(*column);
            }
        }
        parameters
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        self.base.set_parameters(values)
    }
}
