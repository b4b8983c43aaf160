//! A joint distribution: a copula over any marginals.

use crate::Error;
use crate::distributions::cdf::{Lattice, Probability};
use crate::distributions::copula::Copula;
use crate::distributions::marginal::{Marginal, normal_score, number};
use bochner_numerics::{argument, parallel};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// The joint distribution with the given marginals and the dependence of a copula.
///
/// $$\log p(z) = \log c\big(F_1(z_1), \dots, F_M(z_M)\big) + \sum_m \log p_m(z_m)$$
///
/// *where* $F_m$ and $p_m$ are the distribution function and the density of marginal `m`; the
/// copula's density without those of the marginals is no density of *z*.
///
/// The columns have names: the numbers of the coordinates, or those of the table that it was fitted to
/// ([`Joint::fit`]). With serde data as marginals, such as [`Univariate`](crate::Univariate), a joint distribution is
/// serde data too and is checked when it is read.
///
/// # Numerics
/// The scores $x_m = \Phi^{-1}(F_m(z_m))$ come from the logarithm of the smaller of the two tails, so that they
/// keep their digits as far out as the marginal's functions do: inside the supports every density is finite. A finite
/// *z* never gives NaN.
///
/// # Example
///
/// ```
/// use bochner_copula::ndarray::array;
/// use bochner_copula::statrs::distribution::{Gamma, Normal};
/// use bochner_copula::{GaussianCopula, Joint, Marginal};
/// use bochner_numerics::Seed;
///
/// let copula = GaussianCopula::from_correlation(array![[1.0, 0.7], [0.7, 1.0]].view())?;
/// let marginals: Vec<Box<dyn Marginal>> = vec![
///     Box::new(Normal::new(1.0, 2.0).unwrap()),
///     Box::new(Gamma::new(2.0, 0.5).unwrap()),
/// ];
/// let joint = Joint::new(copula, marginals)?;
///
/// let mut rng = Seed::new(1).stream("draws");
/// let z = joint.sample(1000, &mut rng)?;
/// assert!((z.column(1).mean().unwrap() - 4.0).abs() < 0.5);
/// assert!(joint.log_density(z.view())?.iter().all(|p| p.is_finite()));
///
/// // One coordinate known: a large first makes a large second likely.
/// let z = joint.conditional_sample(&[(0, 7.0)], 1000, &mut rng)?;
/// assert!(z.column(1).mean().unwrap() > 7.0);
/// # Ok::<(), bochner_copula::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    try_from = "Parts<D>",
    into = "Parts<D>",
    bound(
        serialize = "D: Clone + Serialize",
        deserialize = "D: Marginal + Deserialize<'de>"
    )
)]
pub struct Joint<D> {
    copula: Copula,
    marginals: Vec<D>,
    names: Vec<String>,
}

/// The serialised form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts<D> {
    names: Vec<String>,
    marginals: Vec<D>,
    copula: Copula,
}

impl<D> From<Joint<D>> for Parts<D> {
    fn from(joint: Joint<D>) -> Self {
        let Joint {
            copula,
            marginals,
            names,
        } = joint;
        Self {
            names,
            marginals,
            copula,
        }
    }
}

impl<D: Marginal> TryFrom<Parts<D>> for Joint<D> {
    type Error = Error;

    fn try_from(parts: Parts<D>) -> Result<Self, Error> {
        Self::new(parts.copula, parts.marginals)?.with_names(parts.names)
    }
}

impl<D: Marginal> Joint<D> {
    /// Puts a copula and one marginal for each of its coordinates together.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there are as many marginals as coordinates, and for a marginal whose parameters give
    /// no distribution.
    pub fn new(copula: impl Into<Copula>, marginals: Vec<D>) -> Result<Self, Error> {
        let copula = copula.into();
        argument::shape("marginals", &[copula.dimension()], &[marginals.len()])?;
        marginals.iter().try_for_each(Marginal::check)?;
        let names = (0..marginals.len()).map(|m| m.to_string()).collect();
        Ok(Self {
            copula,
            marginals,
            names,
        })
    }

    /// This distribution with names for its coordinates.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there are as many names as coordinates, [`Error::RepeatedName`].
    pub fn with_names(self, names: Vec<String>) -> Result<Self, Error> {
        argument::shape("names", &[self.marginals.len()], &[names.len()])?;
        check_names(&names)?;
        Ok(Self { names, ..self })
    }

    /// The copula.
    pub fn copula(&self) -> &Copula {
        &self.copula
    }

    /// The marginals, one for each coordinate.
    pub fn marginals(&self) -> &[D] {
        &self.marginals
    }

    /// The names of the coordinates.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The coordinate of a name.
    ///
    /// # Errors
    /// [`Error::NoColumn`] if there is none.
    pub fn coordinate(&self, name: &str) -> Result<usize, Error> {
        let found = self.names.iter().position(|known| known == name);
        found.ok_or_else(|| Error::NoColumn {
            name: name.to_owned(),
            names: self.names.clone(),
        })
    }

    /// The logarithm of the density.
    ///
    /// # Shapes
    /// `z: [n, M]` to `[n]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of coordinates or points that are not finite,
    /// [`Error::Marginal`] if a marginal's own function is NaN.
    ///
    /// # Numerics
    /// The value is minus infinity if any coordinate is outside its marginal's support, and finite inside of all. At an
    /// end of a support it is the limit from inside, which may be infinite.
    pub fn log_density(&self, z: ArrayView2<f64>) -> Result<Array1<f64>, Error> {
        let scores = self.scores(z)?;
        let is_limit = |row: ArrayView1<f64>| row.iter().any(|x| x.is_infinite());
        let limits: Vec<usize> = (0..z.nrows())
            .filter(|&i| is_limit(scores.row(i)))
            .collect();
        let mut value = self.log_density_at(z, scores)?;
        for i in limits {
            value[i] = self.limit(z.row(i))?;
        }
        Ok(value)
    }

    /// The logarithm of the density of points with these normal scores.
    fn log_density_at(
        &self,
        z: ArrayView2<f64>,
        scores: Array2<f64>,
    ) -> Result<Array1<f64>, Error> {
        let mut value = self.copula.log_density_at_scores(scores);
        let blocks = parallel::map(z.nrows().div_ceil(ROWS), |block| {
            let rows = block * ROWS..z.nrows().min((block + 1) * ROWS);
            let marginals = rows.map(|i| self.log_marginals(z.row(i)));
            marginals.collect::<Result<Vec<_>, _>>()
        });
        let marginals = blocks.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (value, marginals) in value.iter_mut().zip(marginals.concat()) {
            let impossible = value.min(marginals) == f64::NEG_INFINITY;
            *value = if impossible {
                f64::NEG_INFINITY
            } else {
                *value + marginals
            };
        }
        Ok(value)
    }

    /// The logarithm of the density at a point that is at the end of a support, or outside of one: the limit from
    /// inside.
    ///
    /// Near an end the logarithms of the copula's and the marginal's densities go with the square of the normal score
    /// *x*. The larger of the two decides; where neither does, the density is that of a point as near as numbers allow.
    fn limit(&self, z: ArrayView1<f64>) -> Result<f64, Error> {
        const TOLERANCE: f64 = 1e-9;
        let decay = self.copula.decay();
        let mut inside = z.to_owned().insert_axis(Axis(0));
        let mut is_pole = false;
        for (m, (&z, marginal)) in z.iter().zip(&self.marginals).enumerate() {
            let (low, high) = marginal.support();
            if z < low || z > high {
                return Ok(f64::NEG_INFINITY);
            }
            let [near, far] = [1.0, 1e8].map(|units| match z {
                z if z == low => beyond(low, units),
                _ => -beyond(-high, units),
            });
            if z != low && z != high {
                continue;
            }
            let half_square = |z| normal_score(marginal, m, z).map(|x| 0.5 * x * x);
            let rise = marginal.log_density(near) - marginal.log_density(far);
            let rate = rise / (half_square(near)? - half_square(far)?) - decay[m];
            if rate < -TOLERANCE {
                return Ok(f64::NEG_INFINITY);
            }
            is_pole |= rate > TOLERANCE;
            inside[[0, m]] = near;
        }
        if is_pole {
            return Ok(f64::INFINITY);
        }
        let scores = self.scores(inside.view())?;
        Ok(self.log_density_at(inside.view(), scores)?[0])
    }

    /// The density, `exp` of [`log_density`](Self::log_density).
    ///
    /// # Shapes
    /// `z: [n, M]` to `[n]`.
    ///
    /// # Errors
    /// The errors of [`log_density`](Self::log_density).
    pub fn density(&self, z: ArrayView2<f64>) -> Result<Array1<f64>, Error> {
        Ok(self.log_density(z)?.mapv_into(f64::exp))
    }

    /// The distribution function, $P(Z_1 \le z_1, \dots, Z_M \le z_M)$.
    ///
    /// # Shapes
    /// `z: [M]`.
    ///
    /// # Errors
    /// The errors of [`log_density`](Self::log_density), and [`Error::Argument`] for a lattice of no points
    /// or fewer than two shifts.
    ///
    /// # Numerics
    /// The accuracy of [`GaussianCopula::cdf`](crate::GaussianCopula::cdf); exactly 0 below a support.
    pub fn cdf(
        &self,
        z: ArrayView1<f64>,
        lattice: Lattice,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Probability, Error> {
        let scores = self.scores(z.insert_axis(Axis(0)))?;
        let bounds = scores.as_slice().expect("made in standard layout");
        self.copula.cdf_at_scores(bounds, lattice, rng)
    }

    /// The normal scores of points `[n, M]`, infinite at the ends of supports.
    fn scores(&self, z: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
        argument::shape("z", &[z.nrows(), self.marginals.len()], z.shape())?;
        argument::finite("z", z.shape(), z)?;
        let blocks = parallel::map(z.nrows().div_ceil(ROWS), |block| {
            let rows = z.slice(s![block * ROWS..z.nrows().min((block + 1) * ROWS), ..]);
            let points = rows.indexed_iter();
            let scores = points.map(|((_, m), z)| normal_score(&self.marginals[m], m, *z));
            scores.collect::<Result<Vec<_>, _>>()
        });
        let scores = blocks.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(Array2::from_shape_vec(z.dim(), scores.concat()).expect("as many as there were"))
    }

    /// `sum_m log p_m(z_m)`, minus infinity as soon as one term is.
    fn log_marginals(&self, z: ArrayView1<f64>) -> Result<f64, Error> {
        let mut sum = 0.0;
        let mut supported = true;
        for (coordinate, (&z, marginal)) in z.iter().zip(&self.marginals).enumerate() {
            let function = "logarithm of the density";
            let value = number(coordinate, function, z, marginal.log_density(z))?;
            supported &= value != f64::NEG_INFINITY;
            sum += value;
        }
        Ok(if supported { sum } else { f64::NEG_INFINITY })
    }
}

/// The number of rows that are computed together.
const ROWS: usize = 256;

/// The number that is inside of the lower end of a support by some units of its precision; at zero, by a power of the
/// smallest.
fn beyond(end: f64, units: f64) -> f64 {
    if end == 0.0 {
        if units == 1.0 {
            f64::MIN_POSITIVE
        } else {
            f64::MIN_POSITIVE.sqrt()
        }
    } else {
        end + end.abs() * units * f64::EPSILON
    }
}

/// Refuses a name that is given twice.
pub(crate) fn check_names(names: &[String]) -> Result<(), Error> {
    let repeated = |(i, name): &(usize, &String)| names[..*i].contains(name);
    match names.iter().enumerate().find(repeated) {
        Some((_, name)) => Err(Error::RepeatedName { name: name.clone() }),
        None => Ok(()),
    }
}
