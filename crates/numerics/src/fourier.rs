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
