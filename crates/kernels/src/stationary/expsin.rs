//! The exponentiated sine, or periodic, kernel.

use super::distance;
use crate::Error;
use crate::kernel::{Along, GramGradients, Kernel, Parameter, check_cotangent, check_values};
use crate::lengthscale::Lengthscale;
use crate::written::written_as_config;
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use bochner_numerics::scaling::bounded;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// The exponentiated sine kernel, which repeats itself with the distance.
///
/// $$k(x, y) = \exp\Bigl(-\frac{2 \sin^2(\pi |x - y| / P)}{l^2}\Bigr)$$
///
/// *where* $P > 0$ is the `period` and $l > 0$ the `lengthscale`, without a unit.
///
/// # Numerics
/// **Positive semi-definite for `d = 1` only.** The spectrum on the line is discrete, at the
/// multiples of $2 \pi / P$; in more dimensions no kernel of the Euclidean distance but the
/// constant one is periodic, and a Gram matrix can have negative eigenvalues. Attention, which
/// needs positive weights and no positive definiteness, may use it there all the same; a Gaussian
/// process takes a product of one per dimension. At coincident points the gradients are zero.
///
/// Any positive period and lengthscale will do: what overflows is replaced by the largest number, and finite points
/// never give NaN. Where a distance is so many periods long that its phase has no digits left, the value is some
/// number from 0 to 1.
///
/// # Reference
/// MacKay, *Introduction to Gaussian processes*, 1998; Rasmussen, Williams, 2006, equation 4.31.
///
/// # Example
/// ```
/// use bochner_kernels::{ExpsinConfig, Kernel};
/// use bochner_kernels::ndarray::array;
///
/// let kernel = ExpsinConfig { period: 12.0, lengthscale: 0.8 }.build()?;
/// let k = kernel.value(array![0.0].view(), array![24.0].view())?;
/// assert!((k - 1.0_f64).abs() < 1e-12);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ExpsinConfig<T>", into = "ExpsinConfig<T>")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct Expsin<T: Real> {
    period: T,
    lengthscale: T,
}

/// The settings of an [`Expsin`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ExpsinConfig<T> {
    /// The distance after which the kernel repeats itself; positive.
    pub period: T,
    /// How different two points of a period are; positive.
    pub lengthscale: T,
}

bochner_numerics::checked_when_read!(ExpsinConfig<T: Real>);

written_as_config!(Expsin, ExpsinConfig, period, lengthscale);

impl<T: Real> ExpsinConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] unless both are finite and positive.
    pub fn build(self) -> Result<Expsin<T>, Error> {
        self.validate()?;
        Ok(Expsin {
            period: self.period,
            lengthscale: self.lengthscale,
        })
    }
}

impl<T: Real> ExpsinConfig<T> {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::positive("period", self.period)?;
        argument::positive("lengthscale", self.lengthscale)
    }
}

impl<T: Real> Expsin<T> {
    /// The sine of half a turn per period, at the squared distance `s`.
    fn sine(&self, s: T) -> T {
        bounded(T::PI() * s.sqrt() / self.period).sin()
    }

    fn profile(&self, s: T) -> T {
        let sine = self.sine(s) / self.lengthscale;
        (-T::of(2.0) * sine * sine).exp()
    }

    /// $\sin(2 \pi r / P)$, from which all derivatives but one come.
    fn double_sine(&self, r: T) -> T {
        bounded(T::of(2.0) * T::PI() * r / self.period).sin()
    }

    /// The derivative along the squared distance.
    fn slope(&self, s: T) -> T {
        let (r, k) = (bounded(s.sqrt()), self.profile(s));
        if k == T::zero() {
            return k;
        }
        let rate = bounded(T::PI() / self.period);
        let along_r = if r == T::zero() {
            rate
        } else {
            self.double_sine(r) / (T::of(2.0) * r)
        };
        bounded(bounded(bounded(-T::of(2.0) * rate) * along_r * k) / square(self.lengthscale))
    }

    /// The derivatives along the period and the lengthscale.
    fn along_parameters(&self, s: T) -> [T; 2] {
        let (k, sine, r) = (self.profile(s), self.sine(s), bounded(s.sqrt()));
        if k == T::zero() || r == T::zero() {
            return [T::zero(); 2];
        }
        let double = bounded(T::of(2.0) * k / square(self.lengthscale));
        let along_period = bounded(double * self.double_sine(r) * T::PI() * r);
        [
            along_period / square(self.period),
            bounded(T::of(2.0) * double) * sine * sine / self.lengthscale,
        ]
        .map(bounded)
    }
}

/// The square of a positive number, which is not zero even where it underflows.
fn square<T: Real>(x: T) -> T {
    let square = x * x;
    if square == T::zero() {
        T::min_positive_value()
    } else {
        square
    }
}

impl<T: Real> Kernel<T> for Expsin<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        distance::gram(x, y, &plain(), |s| self.profile(s))
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        let distances = distance::gram(x, y, &plain(), |s| s)?;
        check_cotangent(&x, &y, &cotangent)?;
        let mut parameters = vec![T::zero(); 2];
        for (&s, &g) in distances.iter().zip(&cotangent) {
            for (sum, along) in parameters.iter_mut().zip(self.along_parameters(s)) {
                *sum += bounded(g * along);
            }
        }
        let along_points = match along {
            Along::Everything => {
                distance::gram_vjp(along, x, y, &plain(), cotangent, |s| self.slope(s))?
            }
            Along::Parameters => GramGradients {
                x: along.zeros(&x),
                y: along.zeros(&y),
                parameters: Vec::new(),
            },
        };
        Ok(GramGradients {
            parameters,
            ..along_points
        })
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        distance::unit_diagonal(x, &plain())
    }

    fn check_positive_semi_definite(&self, width: usize) -> Result<(), Error> {
        if width == 1 {
            return Ok(());
        }
        let kernel = "periodic";
        Err(Error::Indefinite { kernel, width })
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        distance::constant_diagonal_vjp(self, x, cotangent)
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        vec![
            Parameter::positive("period", self.period),
            Parameter::positive("lengthscale", self.lengthscale),
        ]
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        check_values(&self.parameters(), values)?;
        [self.period, self.lengthscale] = [values[0], values[1]];
        Ok(())
    }
}

/// The lengthscale that leaves distances as they are.
fn plain<T: Real>() -> Lengthscale<T> {
    Lengthscale::Shared(T::one())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{gradients_agree, values_are_replaced_or_refused};
    use crate::{AnyKernel, ColumnsConfig, Product, ScaleConfig, Sum};
    use bochner_numerics::check::random;
    use ndarray::array;

    fn expsin() -> Expsin<f64> {
        let config = ExpsinConfig {
            period: 1.7,
            lengthscale: 0.9,
        };
        config.build().unwrap()
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for width in [1, 3] {
            let (x, y) = (random((4, width), "x"), random((5, width), "y"));
            gradients_agree(&mut expsin(), &x, &y);
        }
        values_are_replaced_or_refused(&mut expsin());
    }

    #[test]
    fn gradients_vanish_at_coincident_points() {
        let (x, one) = (array![[0.3, -2.0]], array![[1.0]]);
        let vjp = expsin().gram_vjp(x.view(), x.view(), one.view()).unwrap();
        assert!(vjp.x.iter().chain(&vjp.y).all(|&g| g == 0.0));
        assert_eq!(vjp.parameters, [0.0, 0.0]);
    }

    #[test]
    fn the_curvature_at_coincidence_is_finite() {
        let (x, y) = (array![[1e-9]], array![[0.0]]);
        let vjp = expsin().gram_vjp(x.view(), y.view(), array![[1.0]].view());
        let curvature = 4.0 * (std::f64::consts::PI / (1.7 * 0.9)).powi(2);
        assert!((vjp.unwrap().x[[0, 0]] / (-curvature * 1e-9) - 1.0).abs() < 1e-7);
    }

    #[test]
    fn no_nan_comes_out_of_finite_points() {
        fn holds<T: Real>(sizes: &[f64], points: &[f64]) {
            let all = |x: &[f64]| x.iter().map(|&x| T::of(x)).collect::<Vec<_>>();
            let x = Array2::from_shape_vec((points.len(), 1), all(points)).unwrap();
            let signs = |(i, j)| T::of(if (i + j) % 2 == 0 { 2.0 } else { -2.0 });
            let cotangent = Array2::from_shape_fn((points.len(), points.len()), signs);
            for &period in &all(sizes) {
                for &lengthscale in &all(sizes) {
                    let config = ExpsinConfig {
                        period,
                        lengthscale,
                    };
                    let kernel = config.build().unwrap();
                    let k = kernel.gram(x.view(), x.view()).unwrap();
                    let within = |&k: &T| k >= T::zero() && k <= T::one();
                    assert!(k.iter().all(within), "{kernel:?}: {k:?}");
                    let got = kernel.gram_vjp(x.view(), x.view(), cotangent.view());
                    let got = got.unwrap();
                    let mut all = got.x.iter().chain(&got.y).chain(&got.parameters);
                    assert!(all.all(|g| !g.is_nan()), "{kernel:?}: {got:?}");
                }
            }
        }
        let sizes = [5e-324, 1e-310, 1e-200, 1e-155, 1e-80, 1.0, 1e155, 1e308];
        let points = [0.0, 1e-320, 1e-155, 0.3, 1.0, 1e160, -1.7e308];
        holds::<f64>(&sizes, &points);
        holds::<f32>(
            &[1e-45, 1e-38, 1e-20, 1.0, 1e20, 3e38],
            &[0.0, 1e-40, 0.3, 1e20, -3e38],
        );
    }

    /// At the corners of a square whose side is one period, neighbours are as like as can be, and opposite
    /// corners, 1.41 periods apart, are not.
    #[test]
    fn in_the_plane_it_is_not_positive_semi_definite() {
        let config = ExpsinConfig {
            period: 2.0,
            lengthscale: 3.0,
        };
        let kernel = config.build().unwrap();
        let corners = array![[0.0, 0.0], [0.0, 2.0], [2.0, 2.0], [2.0, 0.0]];
        let weights = array![1.0, -1.0, 1.0, -1.0];
        let k = kernel.gram(corners.view(), corners.view()).unwrap();
        assert!(weights.dot(&k.dot(&weights)) < -0.1);
        let refused = |kernel: &dyn Kernel<f64>, width| {
            kernel.check_positive_semi_definite(width)
                == Err(Error::Indefinite {
                    kernel: "periodic",
                    width: 2,
                })
        };
        let base = || AnyKernel::from(kernel.clone());
        let scaled = ScaleConfig {
            variance: 2.0,
            base: base(),
        }
        .build()
        .unwrap();
        for kernel in [
            &kernel as &dyn Kernel<_>,
            &scaled,
            &Sum::new(vec![base()]).unwrap(),
            &Product::new(vec![base()]).unwrap(),
        ] {
            assert!(refused(kernel, 2) && !refused(kernel, 1));
        }
        let columns = |columns| {
            ColumnsConfig {
                columns,
                base: base(),
            }
            .build()
            .unwrap()
        };
        assert!(!refused(&columns(vec![1]), 2) && refused(&columns(vec![0, 1]), 3));
    }
}
