//! The spectral mixture kernel: any stationary kernel, by a mixture of Gaussians as its density.

use super::component::{Along, Component};
use super::cosine::Cosine;
use super::distance::{self, for_each_pair};
use crate::Error;
use crate::error::{expect_finite, expect_positive, expect_shape, expect_some};
use crate::kernel::{
    GramGradients, Kernel, Parameter, check_cotangent, check_values, common_width,
};
use crate::written;
use bochner_numerics::Real;
use ndarray::{Array1, Array2, ArrayView2};
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
/// use ndarray::array;
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
#[derive(Clone, Debug, PartialEq)]
pub struct SpectralMixture<T> {
    /// The arrays are in row-major order.
    settings: SpectralMixtureConfig<T>,
}

/// The settings of a [`SpectralMixture`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// How the dimensions oscillate together.
    pub cosine: Cosine,
}

impl<T: Real> SpectralMixtureConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the shapes do not fit each other, [`Error::Empty`] if there is
    /// no component or no dimension, [`Error::OutOfRange`] unless all values are finite and the
    /// weights and variances positive.
    pub fn build(self) -> Result<SpectralMixture<T>, Error> {
        let (count, width) = (self.weights.len(), self.means.ncols());
        expect_shape("means", [count, width], self.means.shape())?;
        expect_shape("variances", [count, width], self.variances.shape())?;
        expect_some("means", &[count, width])?;
        let mut weights = self.weights.iter();
        weights.try_for_each(|&w| expect_positive("weights", w))?;
        let mut means = self.means.iter();
        means.try_for_each(|&m| expect_finite("means", m))?;
        let mut variances = self.variances.iter();
        variances.try_for_each(|&v| expect_positive("variances", v))?;
        Ok(SpectralMixture {
            settings: Self {
                means: self.means.as_standard_layout().into_owned(),
                variances: self.variances.as_standard_layout().into_owned(),
                ..self
            },
        })
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
        expect_shape("x", [x.nrows(), own], x.shape())?;
        Ok(width)
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
        let components: Vec<_> = self.components().collect();
        let (mut t, mut phases) = (vec![T::zero(); width], vec![T::zero(); width]);
        let mut values = Vec::with_capacity(x.nrows() * y.nrows());
        for_each_pair(x, y, |a, b| {
            subtract(a, b, &mut t);
            let terms = components.iter().map(|c| c.value(&t, &mut phases));
            values.push(terms.sum());
        });
        Ok(Array2::from_shape_vec((x.nrows(), y.nrows()), values).expect("one value per pair"))
    }

    fn gram_vjp(
        &self,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        let width = self.check_width(&x, &y)?;
        check_cotangent(&x, &y, &cotangent)?;
        let components: Vec<_> = self.components().collect();
        let count = components.len();
        let zeros = |length: usize| vec![T::zero(); length];
        let (mut t, mut phases, mut along_t) = (zeros(width), zeros(width), zeros(width));
        let (mut along_x, mut along_y) = (zeros(x.len()), zeros(y.len()));
        let mut parameters = zeros(count * (1 + 2 * width));
        let (weights, rest) = parameters.split_at_mut(count);
        let (means, variances) = rest.split_at_mut(count * width);

        let mut pairs = cotangent.indexed_iter();
        for_each_pair(x, y, |a, b| {
            let ((i, j), &cotangent) = pairs.next().expect("one for each pair");
            subtract(a, b, &mut t);
            along_t.fill(T::zero());
            for (q, component) in components.iter().enumerate() {
                let row = q * width..(q + 1) * width;
                let mut along = Along {
                    t: &mut along_t,
                    weight: &mut weights[q],
                    mean: &mut means[row.clone()],
                    variance: &mut variances[row],
                };
                component.pull_back(cotangent, &t, &mut phases, &mut along);
            }
            for (n, &step) in along_t.iter().enumerate() {
                along_x[i * width + n] += step;
                along_y[j * width + n] -= step;
            }
        });
        Ok(GramGradients {
            x: Array2::from_shape_vec(x.dim(), along_x).expect("allocated with this shape"),
            y: Array2::from_shape_vec(y.dim(), along_y).expect("allocated with this shape"),
            parameters,
        })
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        self.check_width(&x, &x)?;
        let weights = self.settings.weights.iter();
        Ok(distance::diagonal(x, weights.copied().sum()))
    }

    /// The weights, then the means row by row, then the variances row by row.
    fn parameters(&self) -> Vec<Parameter<T>> {
        let settings = &self.settings;
        let weights = settings.weights.indexed_iter();
        let weights = weights.map(|(q, &w)| Parameter::positive(format!("weights[{q}]"), w));
        let means = settings.means.indexed_iter();
        let means = means.map(|((q, n), &m)| Parameter::finite(format!("means[{q},{n}]"), m));
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

fn subtract<T: Real>(a: &[T], b: &[T], t: &mut [T]) {
    for ((t, &a), &b) in t.iter_mut().zip(a).zip(b) {
        *t = a - b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{gradients_agree, points, values_are_replaced_or_refused};
    use ndarray::array;

    fn config(cosine: Cosine) -> SpectralMixtureConfig<f64> {
        SpectralMixtureConfig {
            weights: array![0.8, 0.3],
            means: array![[0.1, 0.3, -0.2], [0.0, -0.4, 0.15]],
            variances: array![[0.02, 0.05, 0.01], [0.04, 0.01, 0.03]],
            cosine,
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for cosine in [Cosine::Joint, Cosine::Product] {
            let mut kernel = config(cosine).build().unwrap();
            gradients_agree(&mut kernel, &points(4, 3, "x"), &points(5, 3, "y"));
            values_are_replaced_or_refused(&mut kernel);
        }
    }

    #[test]
    fn the_memory_layout_of_the_settings_does_not_matter() {
        let turned = |a: &Array2<f64>| a.t().as_standard_layout().into_owned().reversed_axes();
        let plain = config(Cosine::Joint);
        let other = SpectralMixtureConfig {
            means: turned(&plain.means),
            variances: turned(&plain.variances),
            ..plain.clone()
        };
        let (plain, other) = (plain.build().unwrap(), other.build().unwrap());
        let (x, y) = (points(4, 3, "x"), points(5, 3, "y"));
        assert_eq!(
            plain.gram(x.view(), y.view()),
            other.gram(x.view(), y.view())
        );
    }

    #[test]
    fn settings_that_cannot_stand_are_named() {
        let refused = |config: SpectralMixtureConfig<f64>| config.build().unwrap_err();
        let good = config(Cosine::Joint);
        let narrow = SpectralMixtureConfig {
            variances: array![[0.1], [0.2]],
            ..good.clone()
        };
        assert!(matches!(
            refused(narrow),
            Error::ShapeMismatch {
                what: "variances",
                ..
            }
        ));
        let mut negative = good.clone();
        negative.weights[1] = 0.0;
        assert!(matches!(refused(negative), Error::OutOfRange { what, .. } if what == "weights"));
        let mut infinite = good;
        infinite.means[[1, 0]] = f64::INFINITY;
        assert!(matches!(refused(infinite), Error::OutOfRange { what, .. } if what == "means"));
        let none = SpectralMixtureConfig {
            weights: array![],
            means: Array2::zeros((0, 2)),
            variances: Array2::zeros((0, 2)),
            cosine: Cosine::Product,
        };
        assert!(matches!(refused(none), Error::Empty { .. }));
    }
}
