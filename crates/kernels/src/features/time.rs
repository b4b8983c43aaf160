//! Features of time stamps, whose inner products are kernels of the gap between two times.

use crate::Error;
use bochner_numerics::elementary::sin_cos;
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use std::f64::consts::PI;

/// Features $\Phi(t)$ of time stamps: two times are as alike as $\Phi(t) \cdot \Phi(t')$.
///
/// **Bochner**: random features of a kernel of the gap,
///
/// $$\Phi(t) = \sqrt{1/D} [\cos \omega_1 t, \sin \omega_1 t, \dots, \cos \omega_D t, \sin \omega_D t]$$
///
/// **Mercer**: for each base, a truncated Fourier series of degree D with coefficients of its own,
///
/// $$\Phi_b(t) = [\sqrt{c_0}, \sqrt{c_1} \cos \tfrac{\pi t}{b}, \sqrt{c_2} \sin \tfrac{\pi t}{b}, \dots,
/// \sqrt{c_{2D-1}} \cos \tfrac{D \pi t}{b}, \sqrt{c_{2D}} \sin \tfrac{D \pi t}{b}]$$
///
/// where b is the *half*-period (the paper's $\omega$: the function repeats after 2 b). The kernel depends on
/// the gap alone for Bochner features, and for Mercer features where $c_{2j-1} = c_{2j}$; otherwise it is
/// positive semi-definite, but not stationary. The official code has sines and cosines of different
/// frequencies, which are not paired: its kernel is not a function of the gap. Here each frequency has both.
///
/// # Numerics
/// Phases are taken in double precision whatever the type. No origin is subtracted: Unix times of
/// $10^9$ seconds leave a phase $10^{-7}$ radians of accuracy at $\omega = 1$.
///
/// # Reference
/// Xu, Ruan, Kumar, Korpeoglu, Achan, *Self-attention with functional time representation learning*, 2019.
///
/// ```
/// use bochner_kernels::TimeFeatures;
/// use bochner_kernels::ndarray::{array, s};
///
/// let time = TimeFeatures::Bochner { frequencies: array![0.3_f64, 2.0] };
/// let phi = time.features(array![1.0, 4.0, 101.0, 104.0].view())?;
/// let alike = |i: usize, j: usize| phi.row(i).dot(&phi.row(j));
/// // The gap decides, not the times.
/// assert!((alike(0, 1) - alike(2, 3)).abs() < 1e-12);
/// assert!((alike(0, 0) - 1.0).abs() < 1e-12);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum TimeFeatures<T> {
    /// One vector of frequencies.
    Bochner {
        /// $\omega$, `[D]`, in radians per unit of time.
        frequencies: Array1<T>,
    },
    /// Fourier series.
    Mercer {
        /// b, `[K]`, above 0.
        half_periods: Array1<T>,
        /// c, `[K, 2 D + 1]`, at least 0.
        coefficients: Array2<T>,
    },
}

/// Gradients along the parameters of [`TimeFeatures`], of the same variant. Their numbers may have any sign,
/// so that [`TimeFeatures::validate`] is not meant for them.
pub type TimeFeatureGradients<T> = TimeFeatures<T>;

impl<T: Real> TimeFeatures<T> {
    /// The number of features of one time stamp: 2 D, or K (2 D + 1).
    pub fn width(&self) -> usize {
        match self {
            Self::Bochner { frequencies } => 2 * frequencies.len(),
            Self::Mercer { coefficients, .. } => coefficients.len(),
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`Error::Argument`] without parameters, for an even number of coefficients, a half-period that is not
    /// above 0, a coefficient below 0, or anything that is not finite.
    pub fn validate(&self) -> Result<(), Error> {
        match self {
            Self::Bochner { frequencies } => {
                argument::not_empty("frequencies", frequencies.shape())?;
                argument::finite("frequencies", frequencies.shape(), frequencies)?;
            }
            Self::Mercer {
                half_periods,
                coefficients,
            } => {
                argument::not_empty("half_periods", half_periods.shape())?;
                let (bases, terms) = (half_periods.len(), coefficients.ncols());
                let odd = terms.saturating_sub(1) / 2 * 2 + 1;
                argument::shape("coefficients", &[bases, odd], coefficients.shape())?;
                for &b in half_periods {
                    argument::positive("half_periods", b)?;
                }
                for &c in coefficients {
                    argument::non_negative("coefficients", c)?;
                }
            }
        }
        Ok(())
    }

    /// The features of time stamps.
    ///
    /// # Shapes
    /// `t: [N]` to `[N, width]`.
    ///
    /// # Errors
    /// The errors of [`TimeFeatures::validate`]; [`Error::Argument`] for a time stamp that is not finite, or whose product
    /// with a frequency overflows.
    pub fn features(&self, t: ArrayView1<f64>) -> Result<Array2<T>, Error> {
        let waves = self.waves(t)?;
        let mut phi = Array2::zeros((t.len(), self.width()));
        for (mut phi, waves) in phi.rows_mut().into_iter().zip(waves.rows(t.len())) {
            for (at, (phi, wave)) in phi.iter_mut().zip(waves).enumerate() {
                *phi = T::of(self.amplitude(at) * wave.value);
            }
        }
        Ok(phi)
    }

    /// The vector-Jacobian product of [`TimeFeatures::features`], along the parameters; time stamps are data.
    ///
    /// # Errors
    /// The errors of [`TimeFeatures::features`]; [`Error::Argument`] if the cotangent does not fit.
    ///
    /// # Numerics
    /// The derivative along a coefficient of zero is infinite; here it is zero. Train a coefficient through a
    /// parametrisation that keeps it above zero.
    pub fn features_vjp(
        &self,
        t: ArrayView1<f64>,
        cotangent: ArrayView2<T>,
    ) -> Result<TimeFeatureGradients<T>, Error> {
        let shape = [t.len(), self.width()];
        argument::shape("cotangent", &shape, cotangent.shape())?;
        let waves = self.waves(t)?;
        // Sums over the time stamps, in order: along the amplitude and along the angle's factor.
        let mut sums = vec![[0.0; 2]; self.width()];
        let rows = waves.rows(t.len()).zip(cotangent.rows()).zip(t);
        for ((waves, cotangent), &t) in rows {
            for ((sum, wave), g) in sums.iter_mut().zip(waves).zip(cotangent) {
                sum[0] += g.as_f64() * wave.value;
                sum[1] += g.as_f64() * wave.slope * t;
            }
        }
        Ok(match self {
            Self::Bochner { frequencies } => {
                let amplitude = self.amplitude(0);
                let of = |n: usize| amplitude * (sums[2 * n][1] + sums[2 * n + 1][1]);
                Self::Bochner {
                    frequencies: (0..frequencies.len()).map(|n| T::of(of(n))).collect(),
                }
            }
            Self::Mercer {
                half_periods,
                coefficients,
            } => {
                let terms = coefficients.ncols();
                // The angle of degree j is j pi t / b.
                let along_base = |(base, b): (usize, &T)| {
                    let of = |n: usize| {
                        let degree = n.div_ceil(2) as f64;
                        let at = base * terms + n;
                        self.amplitude(at) * sums[at][1] * degree
                    };
                    let sum: f64 = (1..terms).map(of).sum();
                    // The square of a tiny b may be zero, and zero by zero is no number.
                    let square = b.as_f64().powi(2).max(f64::from_bits(1));
                    T::of(-sum * PI / square)
                };
                let of = |at: usize| match self.amplitude(at) {
                    0.0 => T::zero(),
                    amplitude => T::of(0.5 * sums[at][0] / amplitude),
                };
                let shape = coefficients.raw_dim();
                Self::Mercer {
                    half_periods: half_periods.iter().enumerate().map(along_base).collect(),
                    coefficients: Array2::from_shape_fn(shape, |(base, n)| of(base * terms + n)),
                }
            }
        })
    }

    /// The factor of the sine or cosine of feature `at`.
    fn amplitude(&self, at: usize) -> f64 {
        match self {
            Self::Bochner { frequencies } => (frequencies.len() as f64).sqrt().recip(),
            Self::Mercer { coefficients, .. } => {
                let terms = coefficients.ncols();
                coefficients[[at / terms, at % terms]].as_f64().sqrt()
            }
        }
    }

    /// The sines and cosines of all features.
    fn waves(&self, t: ArrayView1<f64>) -> Result<Waves, Error> {
        self.validate()?;
        argument::finite("t", t.shape(), t)?;
        let factors: Vec<f64> = match self {
            Self::Bochner { frequencies } => frequencies.iter().map(|w| w.as_f64()).collect(),
            Self::Mercer {
                half_periods,
                coefficients,
            } => {
                let degrees = 0..=coefficients.ncols() / 2;
                let of = |b: &T| {
                    let b = b.as_f64();
                    degrees.clone().map(move |degree| degree as f64 * PI / b)
                };
                half_periods.iter().flat_map(of).collect()
            }
        };
        let phases: Vec<f64> = t
            .iter()
            .flat_map(|t| factors.iter().map(move |factor| factor * t))
            .collect();
        let name = "products of frequencies and times";
        argument::finite(name, &[t.len(), factors.len()], &phases)?;
        let (mut sin, mut cos) = (vec![0.0; phases.len()], vec![0.0; phases.len()]);
        sin_cos(&phases, &mut sin, &mut cos);
        // A constant has a cosine alone.
        let degrees = match self {
            Self::Bochner { .. } => None,
            Self::Mercer { coefficients, .. } => Some(1 + coefficients.ncols() / 2),
        };
        Ok(Waves {
            sin,
            cos,
            factors: factors.len(),
            degrees,
        })
    }
}

/// Sines and cosines of each time stamp's phases.
struct Waves {
    sin: Vec<f64>,
    cos: Vec<f64>,
    /// The number of phases of a time stamp.
    factors: usize,
    /// The number of phases of a base, of which the first is zero; `None` if there is no such one.
    degrees: Option<usize>,
}

/// A sine or cosine, and its derivative along the angle.
struct Wave {
    value: f64,
    slope: f64,
}

impl Waves {
    fn rows(&self, count: usize) -> impl Iterator<Item = impl Iterator<Item = Wave>> {
        (0..count).map(move |row| {
            (0..self.factors).flat_map(move |n| {
                let (sin, cos) = (
                    self.sin[row * self.factors + n],
                    self.cos[row * self.factors + n],
                );
                let cosine = Wave {
                    value: cos,
                    slope: -sin,
                };
                let sine = Wave {
                    value: sin,
                    slope: cos,
                };
                let constant = self.degrees.is_some_and(|degrees| n % degrees == 0);
                [Some(cosine), (!constant).then_some(sine)]
                    .into_iter()
                    .flatten()
            })
        })
    }
}
