//! Seeds, random streams opened by purpose, and dropout masks.

use crate::Real;
use crate::argument::{self, ArgumentError};
use crate::elementary::normal_quantile_in_place;
use crate::fingerprint;
use crate::instructions::{self, Arithmetic, Task};
use rand::{Error, Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

/// The root of everything random in one computation.
///
/// A seed is a value, not a generator: it can be passed around and split by name or number, and
/// what is drawn under one name never depends on what is drawn under another.
///
/// ```
/// use bochner_numerics::Seed;
/// use bochner_numerics::rand::RngCore;
///
/// let seed = Seed::new(2021);
/// let first = seed.stream("dropout").next_u64();
/// let _other = seed.stream("initial values").next_u64();
/// assert_eq!(first, seed.stream("dropout").next_u64());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seed(u64);

impl Seed {
    /// A seed with the given value.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The value the seed was made of.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The seed of a part, by name.
    pub fn child(self, name: &str) -> Self {
        Self(mix(self.0 ^ fingerprint(name.bytes())))
    }

    /// The seed of a part, by number: a layer, a fold, a step.
    pub fn nth(self, index: u64) -> Self {
        Self(mix(self.0 ^ mix(index.wrapping_add(GOLDEN))))
    }

    /// Opens the stream of one purpose.
    pub fn stream(self, purpose: &str) -> Stream {
        let mut rng = ChaCha8Rng::seed_from_u64(self.0);
        rng.set_stream(fingerprint(purpose.bytes()));
        Stream(rng)
    }
}

/// A ChaCha8 generator whose position can be saved and restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream(ChaCha8Rng);

/// The position of a [`Stream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamState {
    /// The 256-bit key.
    pub key: [u8; 32],
    /// The stream's number, from its purpose.
    pub stream: u64,
    /// Words drawn so far.
    pub position: u128,
}

impl Stream {
    /// The present position of the stream.
    pub fn state(&self) -> StreamState {
        StreamState {
            key: self.0.get_seed(),
            stream: self.0.get_stream(),
            position: self.0.get_word_pos(),
        }
    }

    /// The stream that goes on from a saved state.
    pub fn from_state(state: &StreamState) -> Self {
        let mut rng = ChaCha8Rng::from_seed(state.key);
        rng.set_stream(state.stream);
        rng.set_word_pos(state.position);
        Self(rng)
    }
}

impl RngCore for Stream {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, dest: &mut [u8]) {
        self.0.fill_bytes(dest);
    }

    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        self.0.try_fill_bytes(dest)
    }
}

/// One draw from the standard normal distribution.
///
/// Drawn in double precision and rounded, so that `f32` and `f64` see the same numbers.
pub fn standard_normal<T: Real>(rng: &mut (impl RngCore + ?Sized)) -> T {
    T::of(rng.sample(StandardNormal))
}

/// One draw from the uniform distribution between `-bound` and `bound`.
///
/// Drawn in double precision and rounded, so that `f32` and `f64` see the same numbers.
///
/// ```
/// use bochner_numerics::{Seed, uniform_within};
///
/// let mut stream = Seed::new(1).stream("initial values");
/// let draws: Vec<f64> = (0..1000).map(|_| uniform_within(0.5, &mut stream)).collect();
/// assert!(draws.iter().all(|x| x.abs() <= 0.5));
/// // A uniform number in +-b has the variance b^2 / 3.
/// assert!((draws.iter().map(|x| x * x).sum::<f64>() / 1000.0 - 0.25 / 3.0).abs() < 0.01);
/// ```
pub fn uniform_within<T: Real>(bound: f64, rng: &mut (impl RngCore + ?Sized)) -> T {
    T::of((2.0 * rng.r#gen::<f64>() - 1.0) * bound)
}

/// Draws from the standard normal distribution, many at a time.
///
/// $$x = \Phi^{-1}\bigl(2^{-52} (k + \tfrac12)\bigr)$$
///
/// *where* $k$ are the upper 52 bits of the next 64: all values are exact, symmetric around one
/// half, and never 0 or 1, so that the draws stay below 8.2 in absolute value. The draws differ from
/// those of [`standard_normal`]; draw $i$ is the same however many are drawn at once.
///
/// ```
/// use bochner_numerics::{Seed, fill_standard_normal};
///
/// let mut draws = [0.0; 1000];
/// fill_standard_normal(&mut Seed::new(1).stream("noise"), &mut draws);
/// assert!((draws.iter().map(|x| x * x).sum::<f64>() / 1000.0 - 1.0).abs() < 0.2);
/// ```
pub fn fill_standard_normal(rng: &mut (impl RngCore + ?Sized), out: &mut [f64]) {
    let mut bytes = [[0_u8; 8]; 512];
    for part in out.chunks_mut(bytes.len()) {
        let bytes = &mut bytes[..part.len()];
        rng.fill_bytes(bytes.as_flattened_mut());
        for (x, &bytes) in part.iter_mut().zip(&*bytes) {
            // The number 1 + 2^-52 k, by its bits; taking off one and a half step less is exact.
            let one_and_more = f64::from_bits(1023 << 52 | u64::from_le_bytes(bytes) >> 12);
            *x = one_and_more - (1.0 - 0.5 * f64::EPSILON);
        }
        normal_quantile_in_place(part);
    }
}

/// A dropout mask, a function of the seed and the element's index alone.
///
/// No array is stored, any part can be computed anywhere, and so the mask is the same whatever
/// the number of threads or the blocking.
///
/// ```
/// use bochner_numerics::{DropoutMask, Seed};
///
/// let dropout = DropoutMask::new(0.25, Seed::new(1)).unwrap();
/// let factors: Vec<f64> = (0..1000).map(|i| dropout.factor(i)).collect();
/// assert!(factors.iter().all(|&f| f == 0.0 || f == 4.0 / 3.0));
/// assert!((factors.iter().sum::<f64>() / 1000.0 - 1.0).abs() < 0.1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropoutMask {
    key: u64,
    threshold: u64,
    scale: f64,
}

impl DropoutMask {
    /// The mask of this seed, which drops elements with probability `rate`.
    ///
    /// # Errors
    /// [`ArgumentError::OutOfRange`] unless `0 <= rate < 1`.
    pub fn new(rate: f64, seed: Seed) -> Result<Self, ArgumentError> {
        argument::rate("rate", rate)?;
        Ok(Self {
            key: seed.child("dropout mask").0,
            threshold: (rate * (1u64 << 53) as f64) as u64,
            scale: 1.0 / (1.0 - rate),
        })
    }

    /// The factor of element `index`: `0` with the probability given, `1 / (1 - rate)` otherwise.
    #[inline(always)]
    pub fn factor<T: Real>(&self, index: u64) -> T {
        if self.keeps(index) {
            T::of(self.scale)
        } else {
            T::zero()
        }
    }

    /// Whether element `index` is kept.
    #[inline(always)]
    pub fn keeps(&self, index: u64) -> bool {
        mix(self.key ^ mix(index.wrapping_add(GOLDEN))) >> 11 >= self.threshold
    }

    /// The factor of every element that is kept: `1 / (1 - rate)`.
    pub fn kept_factor(&self) -> f64 {
        self.scale
    }

    /// The factors of the elements from `first` on.
    pub fn factors<T: Real>(&self, first: u64, out: &mut [T]) {
        out.fill(T::one());
        self.scale(first, out);
    }

    /// Multiplies `values` by the factors of the elements from `first` on.
    pub fn scale<T: Real>(&self, first: u64, values: &mut [T]) {
        instructions::run(Scale {
            dropout: *self,
            first,
            values,
        });
    }
}

/// Multiplies by the factors of consecutive elements.
struct Scale<'a, T> {
    dropout: DropoutMask,
    first: u64,
    values: &'a mut [T],
}

impl<T: Real> Task for Scale<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for (index, x) in (self.first..).zip(self.values) {
            *x *= self.dropout.factor(index);
        }
    }
}

/// 2^64 divided by the golden ratio: keeps index 0 from mixing to 0.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
