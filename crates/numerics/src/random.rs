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

    /// Overwrites those of `values` whose elements, from `first` on, are dropped.
    pub fn replace_dropped<T: Real>(&self, first: u64, values: &mut [T], with: T) {
        instructions::run(ReplaceDropped {
            dropout: *self,
            first,
            values,
            with,
        });
    }
}

/// Overwrites those of consecutive elements that are dropped.
struct ReplaceDropped<'a, T> {
    dropout: DropoutMask,
    first: u64,
    values: &'a mut [T],
    with: T,
}

impl<T: Real> Task for ReplaceDropped<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        // Both numbers are read before one is chosen, so that many can be at once.
        let with = self.with;
        for (index, x) in (self.first..).zip(self.values) {
            let value = *x;
            *x = if self.dropout.keeps(index) {
                value
            } else {
                with
            };
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_do_not_disturb_each_other() {
        let seed = Seed::new(3);
        let mut a = seed.stream("a");
        let want = [a.next_u64(), a.next_u64()];
        let (mut a, mut b) = (seed.stream("a"), seed.stream("b"));
        let first = a.next_u64();
        for _ in 0..1000 {
            b.next_u32();
        }
        assert_eq!(want, [first, a.next_u64()]);
        assert_ne!(seed.stream("a").next_u64(), seed.stream("b").next_u64());
        assert_ne!(seed.child("a"), seed.child("b"));
        assert_ne!(seed.nth(0), seed.nth(1));
        assert_ne!(seed.nth(0), seed);
    }

    #[test]
    fn a_restored_stream_goes_on_where_it_stood() {
        let mut stream = Seed::new(9).stream("noise");
        for _ in 0..37 {
            stream.next_u32();
        }
        let mut restored = Stream::from_state(&stream.state());
        for _ in 0..100 {
            assert_eq!(stream.next_u32(), restored.next_u32());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a sweep over safe code")]
    fn normal_draws_have_mean_0_and_variance_1() {
        let mut stream = Seed::new(5).stream("normal");
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| standard_normal(&mut stream)).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.03);
    }

    #[test]
    fn scaling_a_slice_multiplies_by_the_factors() {
        let dropout = DropoutMask::new(0.3, Seed::new(4)).unwrap();
        let values: Vec<f32> = (0..77).map(|i| i as f32 - 30.0).collect();
        let mut scaled = values.clone();
        dropout.scale(5, &mut scaled);
        for ((i, x), scaled) in (5..).zip(values).zip(scaled) {
            assert_eq!(scaled, x * dropout.factor::<f32>(i));
        }
    }

    #[test]
    fn what_is_replaced_is_what_is_dropped() {
        let dropout = DropoutMask::new(0.3, Seed::new(4)).unwrap();
        let mut values: Vec<f32> = (0..77).map(|i| i as f32 - 30.0).collect();
        dropout.replace_dropped(5, &mut values, 0.5);
        for (i, value) in (0..).zip(values) {
            let factor = dropout.factor::<f64>(5 + i);
            assert_eq!(dropout.keeps(5 + i), factor == dropout.kept_factor());
            assert_eq!(value, if factor == 0.0 { 0.5 } else { i as f32 - 30.0 });
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a sweep over safe code")]
    fn draws_at_once_follow_the_normal_distribution() {
        let n = 200_000;
        let mut draws = vec![0.0; n];
        fill_standard_normal(&mut Seed::new(5).stream("normal"), &mut draws);
        let moment = |k| draws.iter().map(|x: &f64| x.powi(k)).sum::<f64>() / n as f64;
        // Five standard errors each.
        let near = |got: f64, want: f64, variance: f64| {
            (got - want).abs() < 5.0 * (variance / n as f64).sqrt()
        };
        assert!(near(moment(1), 0.0, 1.0) && near(moment(2), 1.0, 2.0));
        assert!(near(moment(3), 0.0, 15.0) && near(moment(4), 3.0, 96.0));
        let lagged: f64 = draws.windows(2).map(|x| x[0] * x[1]).sum();
        assert!(near(lagged / n as f64, 0.0, 1.0));
        // Kolmogorov and Smirnov's distance; one sample in ten million is beyond 2.9.
        draws.sort_by(f64::total_cmp);
        let mut u = draws;
        crate::elementary::normal_cdf_in_place(&mut u);
        let off = u
            .iter()
            .enumerate()
            .map(|(i, u)| (u - (i as f64 + 0.5) / n as f64).abs());
        assert!(off.fold(0.0, f64::max) * (n as f64).sqrt() < 2.9);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a sweep over safe code")]
    fn a_draw_does_not_depend_on_how_many_are_drawn_at_once() {
        let stream = || Seed::new(5).stream("normal");
        let mut whole = [0.0; 1100];
        fill_standard_normal(&mut stream(), &mut whole);
        let (mut parts, mut stream) = ([0.0; 1100], stream());
        for part in parts.chunks_mut(17) {
            fill_standard_normal(&mut stream, part);
        }
        assert_eq!(whole, parts);
    }

    /// A stream of the smallest and of the largest words.
    struct Constant(u8);

    impl RngCore for Constant {
        fn next_u32(&mut self) -> u32 {
            u32::from_le_bytes([self.0; 4])
        }

        fn next_u64(&mut self) -> u64 {
            u64::from_le_bytes([self.0; 8])
        }

        fn fill_bytes(&mut self, dest: &mut [u8]) {
            dest.fill(self.0);
        }

        fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
            self.fill_bytes(dest);
            Ok(())
        }
    }

    #[test]
    fn the_farthest_draws_are_finite_and_opposite() {
        let (mut least, mut most) = ([0.0], [0.0]);
        fill_standard_normal(&mut Constant(0), &mut least);
        fill_standard_normal(&mut Constant(255), &mut most);
        assert!(least[0] < -8.1 && least[0] == -most[0]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a sweep over safe code")]
    fn dropout_drops_at_its_rate_and_keeps_the_mean() {
        for wrong in [-0.1, 1.0, f64::NAN] {
            assert!(DropoutMask::new(wrong, Seed::new(0)).is_err());
        }
        for rate in [0.0, 0.1, 0.5] {
            let dropout = DropoutMask::new(rate, Seed::new(11)).unwrap();
            let n = 200_000u64;
            let factors: Vec<f64> = (0..n).map(|i| dropout.factor(i)).collect();
            let dropped = factors.iter().filter(|&&f| f == 0.0).count() as f64 / n as f64;
            assert!((dropped - rate).abs() < 0.005);
            assert!((factors.iter().sum::<f64>() / n as f64 - 1.0).abs() < 0.01);
            let mut part = [0.0; 77];
            dropout.factors(1001, &mut part);
            assert_eq!(part, factors[1001..1078]);
        }
    }
}
