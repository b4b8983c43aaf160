//! Fourier transforms of real numbers, of any length.
//!
//! A transform needs a plan, which takes longer to make than to use. Plans are made once for each length and kept
//! as long as the program runs, O(n) numbers each, for all threads.

use crate::Real;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

pub use realfft::num_complex::Complex;

/// The Fourier transform of n real numbers, and its inverse times n.
///
/// $$X_k = \sum_{t=0}^{n-1} x_t e^{-2 \pi i k t / n} \qquad k = 0, \dots, \lfloor n / 2 \rfloor$$
///
/// where x is `x`, and X, `spectrum`, is half of the transform: the other half is its mirror image.
///
/// ```
/// use bochner_numerics::fourier::{Complex, Fourier};
///
/// let fourier = Fourier::<f64>::new(3);
/// let (mut x, mut spectrum) = ([1.0, 2.0, 4.0], [Complex::default(); 2]);
/// let mut scratch = vec![Complex::default(); fourier.scratch()];
/// fourier.transform(&mut x, &mut spectrum, &mut scratch);
/// assert_eq!(spectrum[0].re, 7.0);
///
/// fourier.invert(&mut spectrum, &mut x, &mut scratch);
/// assert!((x[2] / 3.0 - 4.0).abs() < 1e-15);
/// ```
#[derive(Clone)]
pub struct Fourier<T> {
    forward: Arc<dyn RealToComplex<T>>,
    inverse: Arc<dyn ComplexToReal<T>>,
}

impl<T: Real> Fourier<T> {
    /// The transform of `n` numbers.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(n: usize) -> Self {
        assert!(n > 0, "a transform of no numbers");
        T::fourier(n)
    }

    /// The number n of real numbers.
    #[expect(clippy::len_without_is_empty, reason = "there is no empty transform")]
    pub fn len(&self) -> usize {
        self.forward.len()
    }

    /// The number of complex numbers in a spectrum.
    pub fn frequencies(&self) -> usize {
        self.len() / 2 + 1
    }

    /// The number of complex numbers that both directions want to scribble on.
    pub fn scratch(&self) -> usize {
        let (forward, inverse) = (&self.forward, &self.inverse);
        forward.get_scratch_len().max(inverse.get_scratch_len())
    }

    /// Writes the transform of `x`, which is overwritten too, to `spectrum`.
    ///
    /// # Panics
    /// If a slice has another length than the transform says.
    pub fn transform(&self, x: &mut [T], spectrum: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        let done = self.forward.process_with_scratch(x, spectrum, scratch);
        done.expect("slices of the lengths that the plan asks for");
    }

    /// Writes n times the numbers of which `spectrum` is the transform to `x`; `spectrum` is overwritten too.
    ///
    /// What rounding has left of the imaginary parts that must be zero does not count.
    ///
    /// # Panics
    /// If a slice has another length than the transform says.
    pub fn invert(&self, spectrum: &mut [Complex<T>], x: &mut [T], scratch: &mut [Complex<T>]) {
        spectrum[0].im = T::zero();
        if self.len().is_multiple_of(2) {
            spectrum[self.len() / 2].im = T::zero();
        }
        let done = self.inverse.process_with_scratch(spectrum, x, scratch);
        done.expect("slices of the lengths that the plan asks for");
    }
}

impl<T: Real> fmt::Debug for Fourier<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fourier").field(&self.len()).finish()
    }
}

pub(crate) mod planned {
    /// A type that transforms are planned for.
    pub trait Planned: Sized {
        /// The transform of `n` numbers.
        fn fourier(n: usize) -> super::Fourier<Self>;
    }
}

/// The planners of both types.
macro_rules! planned {
    ($real:ty, $name:ident) => {
        static $name: LazyLock<Mutex<RealFftPlanner<$real>>> =
            LazyLock::new(|| Mutex::new(RealFftPlanner::new()));

        impl planned::Planned for $real {
            fn fourier(n: usize) -> Fourier<Self> {
                // A planner that panicked has at worst not kept a plan.
                let mut planner = $name.lock().unwrap_or_else(PoisonError::into_inner);
                Fourier {
                    forward: planner.plan_fft_forward(n),
                    inverse: planner.plan_fft_inverse(n),
                }
            }
        }
    };
}

planned!(f32, SINGLE);
planned!(f64, DOUBLE);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, Tolerance, standard_normal};
    use std::f64::consts::TAU;

    fn check<T: Real>(n: usize) {
        let mut stream = Seed::new(1).stream("numbers");
        let x: Vec<T> = (0..n).map(|_| standard_normal(&mut stream)).collect();
        let fourier = Fourier::new(n);
        let mut spectrum = vec![Complex::default(); fourier.frequencies()];
        let mut scratch = vec![Complex::default(); fourier.scratch()];
        let mut y = x.clone();
        fourier.transform(&mut y, &mut spectrum, &mut scratch);
        let bound = Tolerance::outputs::<T>().bound([(n as f64).sqrt()]);
        for (k, got) in spectrum.iter().enumerate() {
            let turn = |t: usize| TAU * ((k * t) % n) as f64 / n as f64;
            let part = |f: fn(f64) -> f64| -> f64 {
                let terms = x.iter().enumerate();
                terms.map(|(t, x)| x.as_f64() * f(turn(t))).sum()
            };
            let error = (got.re.as_f64() - part(f64::cos)).abs();
            assert!(error < bound, "{n}, {k}: {error:e}");
            let error = (got.im.as_f64() + part(f64::sin)).abs();
            assert!(error < bound, "{n}, {k}: {error:e}");
        }
        fourier.invert(&mut spectrum, &mut y, &mut scratch);
        for (got, want) in y.iter().zip(&x) {
            let error = (got.as_f64() / n as f64 - want.as_f64()).abs();
            assert!(error < bound, "{n}: {error:e}");
        }
    }

    #[test]
    #[cfg_attr(
        miri,
        ignore = "rustfft loads pairs of f32 as an f64 that is not aligned: the instruction may, a pointer may not"
    )]
    fn transforms_are_sums_of_sines_and_cosines() {
        for n in [1, 2, 3, 4, 7, 8, 30, 97, 128] {
            check::<f32>(n);
            check::<f64>(n);
        }
    }

    #[test]
    fn plans_are_made_once() {
        let plans = [12, 12].map(Fourier::<f32>::new);
        assert!(Arc::ptr_eq(&plans[0].forward, &plans[1].forward));
        assert_eq!(format!("{:?}", plans[0]), "Fourier(12)");
    }
}
