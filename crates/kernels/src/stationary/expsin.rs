//! The exponentiated sine, or periodic, kernel.

use super::distance;
use crate::Error;
use crate::kernel::{
    Along, GramGradients, Kernel, Parameter, check_cotangent, check_values, common_width,
};
use crate::lengthscale::Lengthscale;
use crate::written::written_as_config;
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use bochner_numerics::elementary::{exp_in_place, sin_cos};
use bochner_numerics::scaling::bounded;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// The exponentiated sine kernel, which repeats itself with the distance, or along each column.
///
/// $$k(x, y) = \exp\Bigl(-\frac{2 \sin^2(\pi |x - y| / P)}{l^2}\Bigr) \qquad \text{or} \qquad
/// k(x, y) = \exp\Bigl(-\sum_n \frac{2 \sin^2(\pi (x_n - y_n) / P)}{l_n^2}\Bigr)$$
///
/// *where* $P > 0$ is the `period` and $l > 0$ a [`Lengthscale::Shared`], or $l_n > 0$ a
/// [`Lengthscale::PerDimension`]. Lengthscales have no unit.
///
/// # Numerics
/// **With a shared lengthscale it is positive semi-definite for `d = 1` only.** The spectrum on the line is discrete,
/// at the multiples of $2 \pi / P$. In more dimensions the constant kernel is the only periodic one of the Euclidean
/// distance, and a Gram matrix can have negative eigenvalues. Attention needs positive weights and no positive
/// definiteness, and may use it there. A Gaussian process takes a lengthscale for each column. At coincident points
/// the gradients are zero.
///
/// Any positive period and lengthscale will do: what overflows is replaced by the largest number, and finite points
/// never give NaN. Where a distance is so many periods long that its phase has no digits left, the value is some
/// number from 0 to 1.
///
/// # Reference
/// MacKay, *Introduction to Gaussian processes*, 1998, equation 47; Rasmussen, Williams, 2006, equation 4.31.
///
/// # Example
/// ```
/// use bochner_kernels::{ExpsinConfig, Kernel, Lengthscale};
/// use bochner_kernels::ndarray::array;
///
/// let kernel = ExpsinConfig { period: 12.0, lengthscale: Lengthscale::Shared(0.8) }.build()?;
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
    lengthscale: Lengthscale<T>,
}

/// The settings of an [`Expsin`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct ExpsinConfig<T> {
    /// The distance after which the kernel repeats itself; positive.
    pub period: T,
    /// The difference between two points of a period at which the kernel falls; positive. With one for each column the kernel is a product of periodic
    /// kernels of the columns.
    pub lengthscale: Lengthscale<T>,
}

bochner_numerics::checked_when_read!(ExpsinConfig<T: Real>);

written_as_config!(Expsin, ExpsinConfig, period, lengthscale);

impl<T: Real> ExpsinConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the period and every lengthscale are finite and positive, or if there is no
    /// lengthscale.
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
        self.lengthscale.check()
    }
}

/// The separations of one point from each other one along one direction, with the sine and the cosine of half a turn
/// per period.
struct Turns<T> {
    separations: Vec<T>,
    sin: Vec<T>,
    cos: Vec<T>,
}

impl<T: Real> Expsin<T> {
    /// Checks the width of the points, and returns the columns of `y` as rows.
    fn columns(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        self.lengthscale.inverse(x.nrows(), common_width(&x, &y)?)?;
        Ok(y.t().as_standard_layout().into_owned())
    }

    /// The turns between one point and the others: along the distance if there is one lengthscale, and along each
    /// column if each has its own.
    fn turns(&self, a: ArrayView1<T>, columns: &Array2<T>) -> Vec<Turns<T>> {
        let differences = (a.iter().zip(columns.rows()))
            .map(|(&a, y)| y.iter().map(|&y| bounded(a - y)).collect::<Vec<T>>());
        let directions = match &self.lengthscale {
            Lengthscale::PerDimension(_) => differences.collect(),
            Lengthscale::Shared(_) => {
                let mut squares = vec![T::zero(); columns.ncols()];
                for differences in differences {
                    let pairs = squares.iter_mut().zip(differences);
                    pairs.for_each(|(sum, t)| *sum += t * t);
                }
                let distances = squares.into_iter().map(|s| bounded(s.sqrt()));
                vec![distances.collect::<Vec<T>>()]
            }
        };
        let turns = directions.into_iter().map(|separations| {
            let angles = separations.iter();
            let angles: Vec<T> = angles
                .map(|&t| bounded(T::PI() * t / self.period))
                .collect();
            let [mut sin, mut cos] = [(); 2].map(|()| vec![T::zero(); angles.len()]);
            sin_cos(&angles, &mut sin, &mut cos);
            Turns {
                separations,
                sin,
                cos,
            }
        });
        turns.collect()
    }

    /// Replaces zeros by the kernel.
    fn add_up(&self, turns: &[Turns<T>], values: &mut [T]) {
        for (turns, &l) in turns.iter().zip(self.lengthscale.values()) {
            for (value, &sin) in values.iter_mut().zip(&turns.sin) {
                let scaled = sin / l;
                *value -= T::of(2.0) * scaled * scaled;
            }
        }
        exp_in_place(values);
    }

    /// Adds the gradient along the period and returns that along the lengthscale `l`, given the products $g k$ of
    /// cotangents and values, and replaces these products by the gradient along the separations.
    fn pull_back(&self, turns: &Turns<T>, l: T, products: &mut [T], along_period: &mut T) -> T {
        let (rate, mut along_scale) = (bounded(T::PI() / self.period), T::zero());
        for (j, gk) in products.iter_mut().enumerate() {
            if *gk == T::zero() {
                continue;
            }
            let (t, sin, cos) = (turns.separations[j], turns.sin[j], turns.cos[j]);
            let (double_sine, double) = (
                T::of(2.0) * sin * cos,
                bounded(T::of(2.0) * *gk / square(l)),
            );
            let turned = bounded(double * double_sine * T::PI() * t);
            *along_period += bounded(turned / square(self.period));
            along_scale += bounded(bounded(T::of(2.0) * double) * sin * sin / l);
            *gk = bounded(-double * double_sine * rate);
        }
        bounded(along_scale)
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
        let columns = self.columns(x, y)?;
        let mut values = Array2::zeros((x.nrows(), y.nrows()));
        for (a, mut row) in x.rows().into_iter().zip(values.rows_mut()) {
            let row = row.as_slice_mut().expect("a row of an owned array");
            self.add_up(&self.turns(a, &columns), row);
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
        let columns = self.columns(x, y)?;
        check_cotangent(&x, &y, &cotangent)?;
        let [mut along_x, mut along_y] = [&x, &y].map(|points| along.zeros(points));
        let lengthscales = self.lengthscale.values();
        let mut parameters = vec![T::zero(); 1 + lengthscales.len()];
        let (along_period, along_scales) = parameters.split_at_mut(1);
        for (i, (a, g)) in x.rows().into_iter().zip(cotangent.rows()).enumerate() {
            let turns = self.turns(a, &columns);
            let mut values = vec![T::zero(); y.nrows()];
            self.add_up(&turns, &mut values);
            let products = values.iter().zip(g).map(|(&k, &g)| bounded(bounded(g) * k));
            let products: Vec<T> = products.collect();
            for (c, (turns, &l)) in turns.iter().zip(lengthscales).enumerate() {
                let mut along_separation = products.clone();
                along_scales[c] +=
                    self.pull_back(turns, l, &mut along_separation, &mut along_period[0]);
                if along == Along::Parameters {
                    continue;
                }
                let directions = match self.lengthscale {
                    Lengthscale::Shared(_) => 0..a.len(),
                    Lengthscale::PerDimension(_) => c..c + 1,
                };
                for n in directions {
                    for (j, &g) in along_separation.iter().enumerate() {
                        let difference = bounded(a[n] - columns[[n, j]]);
                        let step = match &self.lengthscale {
                            _ if g == T::zero() || turns.separations[j] == T::zero() => T::zero(),
                            Lengthscale::PerDimension(_) => g,
                            Lengthscale::Shared(_) => {
                                bounded(g * (difference / turns.separations[j]))
                            }
                        };
                        along_x[[i, n]] += step;
                        along_y[[j, n]] -= step;
                    }
                }
            }
        }
        Ok(GramGradients {
            x: along_x,
            y: along_y,
            parameters: parameters.into_iter().map(bounded).collect(),
        })
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        distance::unit_diagonal(x, &self.lengthscale)
    }

    fn check_positive_semi_definite(&self, width: usize) -> Result<(), Error> {
        match &self.lengthscale {
            Lengthscale::Shared(_) if width > 1 => {
                let kernel = "periodic";
                Err(Error::Indefinite { kernel, width })
            }
            _ => Ok(()),
        }
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        distance::constant_diagonal_vjp(self, x, cotangent)
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        let mut parameters = vec![Parameter::positive("period", self.period)];
        parameters.extend(self.lengthscale.parameters());
        parameters
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        check_values(&self.parameters(), values)?;
        self.period = values[0];
        self.lengthscale.assign(&values[1..]);
        Ok(())
    }
}
