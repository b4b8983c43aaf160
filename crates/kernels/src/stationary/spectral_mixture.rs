//! The spectral mixture kernel: any stationary kernel, by a mixture of Gaussians as its density.

use super::component::{self, Component, Parts};
use super::cosine::Cosine;
use super::distance;
use crate::Error;
use crate::kernel::{
    Along, GramGradients, Kernel, Parameter, check_cotangent, check_values, common_width,
};
use crate::written;
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use bochner_numerics::scaling::bounded;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// The spectral mixture kernel of $Q$ components.
///
/// $$k(x, y) = \sum_q w_q \exp\Bigl(-2 \pi^2 \sum_n t_n^2 v_{qn}\Bigr)
/// \cos\Bigl(2 \pi \sum_n t_n \mu_{qn}\Bigr), \qquad t = x - y$$
///
/// *where* $w_q > 0$ are the `weights` `[Q]`, $\mu_q$ the `means` `[Q, d]` and $v_q > 0$ the
/// `variances` `[Q, d]` of the density's components, in cycles per unit (not radians). The cosine
/// of the sum is the default; the product of cosines of the first printing is
/// [`Cosine::Product`].
///
/// # Numerics
/// $O(N N' Q d)$ time; $Q d$ cosines per pair for [`Cosine::Product`], $Q$ otherwise.
///
/// # Reference
/// Wilson, Adams, *Gaussian Process Kernels for Pattern Discovery and Extrapolation*, ICML 2013,
/// equation 12; corrected in Wilson's thesis.
///
/// # Example
/// ```
/// use bochner_kernels::{Cosine, Kernel, SpectralMixtureConfig};
/// use bochner_kernels::ndarray::array;
///
/// // A slow trend, and something that repeats itself four times per unit.
/// let kernel = SpectralMixtureConfig {
///     weights: array![1.0, 0.5],
///     means: array![[0.0], [4.0]],
///     variances: array![[0.01], [0.02]],
///     cosine: Cosine::Joint,
/// }
/// .build()?;
/// let at = |t: f64| kernel.value(array![t].view(), array![0.0].view());
/// assert_eq!(at(0.0)?, 1.5);
/// assert!(at(0.125)? < at(0.25)?);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    try_from = "SpectralMixtureConfig<T>",
    into = "SpectralMixtureConfig<T>"
)]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct SpectralMixture<T: Real> {
    /// The arrays are in row-major order.
    settings: SpectralMixtureConfig<T>,
}

impl<T: Real> From<SpectralMixture<T>> for SpectralMixtureConfig<T> {
    fn from(kernel: SpectralMixture<T>) -> Self {
        kernel.settings
    }
}

impl<T: Real> TryFrom<SpectralMixtureConfig<T>> for SpectralMixture<T> {
    type Error = Error;

    fn try_from(config: SpectralMixtureConfig<T>) -> Result<Self, Error> {
        config.build()
    }
}

/// The settings of a [`SpectralMixture`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
#[serde(bound(serialize = "T: Serialize", deserialize = "T: Deserialize<'de>"))]
pub struct SpectralMixtureConfig<T> {
    /// The components' shares of $k(x, x)$, `[Q]`; positive.
    #[serde(with = "written::list")]
    pub weights: Array1<T>,
    /// Their frequencies in cycles per unit, `[Q, d]`.
    #[serde(with = "written::rows")]
    pub means: Array2<T>,
    /// The variances of the frequencies, `[Q, d]`; positive.
    #[serde(with = "written::rows")]
    pub variances: Array2<T>,
    /// The oscillation of the dimensions together.
    pub cosine: Cosine,
}

bochner_numerics::checked_when_read!(SpectralMixtureConfig<T: Real>);

impl<T: Real> SpectralMixtureConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] if the shapes do not fit each other, if there is no component or no dimension, or
    /// unless all values are finite and the weights and variances positive.
    pub fn build(self) -> Result<SpectralMixture<T>, Error> {
        self.validate()?;
        Ok(SpectralMixture {
            settings: Self {
                means: self.means.as_standard_layout().into_owned(),
                variances: self.variances.as_standard_layout().into_owned(),
                ..self
            },
        })
    }

    fn validate(&self) -> Result<(), ArgumentError> {
        let (count, width) = (self.weights.len(), self.means.ncols());
        argument::shape("means", &[count, width], self.means.shape())?;
        argument::shape("variances", &[count, width], self.variances.shape())?;
        argument::not_empty("means", &[count, width])?;
        let mut weights = self.weights.iter();
        weights.try_for_each(|&w| argument::positive("weights", w))?;
        argument::finite("means", &[count, width], &self.means)?;
        let mut variances = self.variances.iter();
        variances.try_for_each(|&v| argument::positive("variances", v))
    }
}

impl<T: Real> SpectralMixture<T> {
    /// The settings it was made of, or that its parameters were set to since.
    pub fn settings(&self) -> &SpectralMixtureConfig<T> {
        &self.settings
    }

    fn check_width(&self, x: &ArrayView2<T>, y: &ArrayView2<T>) -> Result<usize, Error> {
        let width = common_width(x, y)?;
        let own = self.settings.means.ncols();
        argument::shape("x", &[x.nrows(), own], x.shape())?;
        Ok(width)
    }

    fn parts(&self, width: usize, count: usize) -> Parts<T> {
        Parts::new(self.settings.cosine, width, count)
    }

    fn components(&self) -> impl Iterator<Item = Component<'_, T>> {
        let settings = &self.settings;
        let means = settings.means.rows().into_iter();
        let variances = settings.variances.rows().into_iter();
        let both = means.zip(variances).zip(&settings.weights);
        both.map(|((mean, variance), &weight)| Component {
            weight,
            mean: mean.to_slice().expect("kept in row-major order"),
            variance: variance.to_slice().expect("kept in row-major order"),
            cosine: settings.cosine,
        })
    }
}

impl<T: Real> Kernel<T> for SpectralMixture<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let width = self.check_width(&x, &y)?;
        let (mut differences, mut parts) = (Differences::from(y), self.parts(width, y.nrows()));
        let mut values = Array2::zeros((x.nrows(), y.nrows()));
        for (a, mut values) in x.rows().into_iter().zip(values.rows_mut()) {
            let t = differences.of(a);
            let sums = values.as_slice_mut().expect("a row of an owned array");
            for component in self.components() {
                component.add_values(t, &mut parts, sums);
            }
        }
        Ok(values)
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        let width = self.check_width(&x, &y)?;
        check_cotangent(&x, &y, &cotangent)?;
        let (count, columns) = (self.settings.weights.len(), y.nrows());
        let (mut differences, mut parts) = (Differences::from(y), self.parts(width, columns));
        let mut along_t = vec![T::zero(); width * columns];
        let [mut along_x, mut along_y] = [&x, &y].map(|points| along.zeros(points));
        let mut parameters = vec![T::zero(); count * (1 + 2 * width)];
        let (weights, rest) = parameters.split_at_mut(count);
        let (means, variances) = rest.split_at_mut(count * width);

        let cotangent = cotangent.as_standard_layout();
        for (i, a) in x.rows().into_iter().enumerate() {
            let (t, cotangents) = (differences.of(a), cotangent.row(i));
            let cotangents = cotangents.to_slice().expect("in row-major order");
            along_t.fill(T::zero());
            for (q, component) in self.components().enumerate() {
                let row = q * width..(q + 1) * width;
                let mut parameters = component::Along {
                    t: &mut along_t,
                    weight: &mut weights[q],
                    mean: &mut means[row.clone()],
                    variance: &mut variances[row],
                };
                component.pull_back(cotangents, t, &mut parts, &mut parameters);
            }
            if along == Along::Parameters {
                continue;
            }
            let along_t = ArrayView2::from_shape((width, columns), &along_t);
            let along_t = along_t.expect("allocated with this shape");
            along_x.row_mut(i).assign(&along_t.sum_axis(Axis(1)));
            along_y -= &along_t.t();
        }
        Ok(GramGradients {
            x: along_x,
            y: along_y,
            parameters,
        })
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        self.check_width(&x, &x)?;
        let weights = self.settings.weights.iter();
        Ok(distance::diagonal(x, weights.copied().sum()))
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        let mut gradient = distance::constant_diagonal_vjp(self, x, cotangent)?;
        gradient[..self.settings.weights.len()].fill(bounded(cotangent.sum()));
        Ok(gradient)
    }

    /// The weights, then the means row by row, then the variances row by row.
    fn parameters(&self) -> Vec<Parameter<T>> {
        let settings = &self.settings;
        let weights = settings.weights.indexed_iter();
        let weights = weights.map(|(q, &w)| Parameter::positive(format!("weights[{q}]"), w));
        let means = settings.means.indexed_iter();
        let means = means.map(|((q, n), &m)| Parameter::frequency(format!("means[{q},{n}]"), m, n));
        let variances = settings.variances.indexed_iter();
        let variances =
            variances.map(|((q, n), &v)| Parameter::positive(format!("variances[{q},{n}]"), v));
        weights.chain(means).chain(variances).collect()
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        check_values(&self.parameters(), values)?;
        let settings = &mut self.settings;
        let weights = settings.weights.iter_mut();
        let own = weights
            .chain(&mut settings.means)
            .chain(&mut settings.variances);
        for (own, &value) in own.zip(values) {
            *own = value;
        }
        Ok(())
    }
}

/// The differences of one input from all of some others, dimension by dimension.
struct Differences<T> {
    /// The others, `[d, N]`.
    columns: Array2<T>,
    t: Array2<T>,
}

impl<T: Real> Differences<T> {
    fn from(y: ArrayView2<T>) -> Self {
        let columns = y.t().as_standard_layout().into_owned();
        Self {
            t: columns.clone(),
            columns,
        }
    }

    /// $a - y_j$ for each $j$, `[d, N]`.
    fn of(&mut self, a: ArrayView1<T>) -> &[T] {
        let rows = self.t.rows_mut().into_iter().zip(self.columns.rows());
        for ((mut t, column), &a) in rows.zip(a) {
            t.zip_mut_with(&column, |t, &y| *t = bounded(a - y));
        }
        self.t.as_slice().expect("an owned row-major array")
    }
}
