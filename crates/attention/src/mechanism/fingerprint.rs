//! A hash that binds a forward pass to its inputs.

use super::pass::{Pass, Streams};
use bochner_numerics::Real;
use std::fmt::Debug;

/// A hash of the streams, the parameters and the pass that a forward pass was of.
///
/// It catches mistakes, not every change: of an array of more than 2^14 numbers only 256 runs of 64, at even distances,
/// are hashed, which costs next to nothing, and a change between the runs goes unnoticed. Masks and biases are not
/// hashed: the backward pass compares them whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

/// An odd number without a pattern, the golden ratio's.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes that do not wait for each other.
const LANES: usize = 8;

/// The most numbers of an array that are all hashed.
///
/// A number costs .3 ns where the processor has no vectors of 64-bit products. All numbers of the streams of a pass at
/// (4, 8, 512, 64, 64, 64) would take .9 ms of one core, where the pass takes 10 ms of two; more of a shorter
/// sequence's pass, and of a form in linear time.
const MOST: usize = 1 << 14;

/// The runs of a longer array that are hashed, and the numbers of each.
const RUNS: [usize; 2] = [256, 64];

impl Fingerprint {
    fn with(self, bits: u64) -> Self {
        Self((self.0 ^ bits).wrapping_mul(FACTOR).rotate_left(29))
    }

    /// The fingerprint of the same under some settings.
    pub(super) fn with_settings(self, settings: &(impl Debug + ?Sized)) -> Self {
        let text = format!("{settings:?}");
        let own = self.with(text.len() as u64);
        text.bytes().fold(own, |own, byte| own.with(byte.into()))
    }

    fn with_numbers<T: Real>(self, numbers: &[T]) -> Self {
        let own = self.with(numbers.len() as u64);
        if numbers.len() <= MOST {
            return own.with(Self::of(numbers).0);
        }
        let [runs, length] = RUNS;
        let room = numbers.len() - length;
        let start = |i: usize| (i as u128 * room as u128 / (runs - 1) as u128) as usize;
        let runs = (0..runs).map(|i| Self::of(&numbers[start(i)..][..length]));
        runs.fold(own, |own, run| own.with(run.0))
    }

    fn of<T: Real>(numbers: &[T]) -> Self {
        let mut lanes = [Self(numbers.len() as u64); LANES];
        let mut chunks = numbers.chunks_exact(LANES);
        for chunk in &mut chunks {
            // A count that the compiler knows, so that no lane waits for a bound.
            for n in 0..LANES {
                lanes[n] = lanes[n].with(chunk[n].as_f64().to_bits());
            }
        }
        for (lane, x) in lanes.iter_mut().zip(chunks.remainder()) {
            *lane = lane.with(x.as_f64().to_bits());
        }
        lanes.iter().fold(Self(0), |own, lane| own.with(lane.0))
    }
}

impl<T: Real> Streams<'_, T> {
    /// The fingerprint of a pass over these streams.
    pub fn fingerprint(&self, parameters: &[T], pass: &Pass) -> Fingerprint {
        let (seed, rate) = match *pass {
            Pass::Training { seed, dropout } => (seed, dropout),
            Pass::Evaluation { seed } => (seed, -1.0),
        };
        let own = Fingerprint(seed.value()).with(rate.to_bits());
        let own = self.arrays().fold(own, |own, x| {
            let shape = x.shape().iter();
            let own = shape.fold(own, |own, &size| own.with(size as u64));
            let x = x.as_standard_layout();
            own.with_numbers(x.as_slice().expect("brought to row-major order"))
        });
        own.with_numbers(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mask;
    use bochner_numerics::Seed;
    use ndarray::{Array4, s};

    #[test]
    fn of_a_long_array_both_ends_count() {
        let mut x = vec![0.5_f32; 3 * MOST + 5];
        let of = |x: &[f32]| Fingerprint(0).with_numbers(x);
        let own = of(&x);
        for at in [0, x.len() - 1] {
            x[at] = 1.0;
            assert_ne!(of(&x), own);
            x[at] = 0.5;
        }
        assert_ne!(of(&x[1..]), own);
    }

    #[test]
    fn every_number_counts_and_no_order_of_the_memory() {
        let x = Array4::from_shape_fn((1, 2, 5, 3), |(_, m, t, n)| (m + 3 * t + n) as f32);
        let (mask, seed) = (Mask::none(), Seed::new(1));
        let of = |x: &Array4<f32>, parameters: &[f32], pass| {
            Streams::new([x.view(), x.view()], &mask).fingerprint(parameters, &pass)
        };
        let pass = Pass::Evaluation { seed };
        let own = of(&x, &[1.0, 2.0], pass);
        let mut turned = Array4::zeros((1, 3, 5, 2)).permuted_axes([0, 3, 2, 1]);
        turned.assign(&x);
        assert_eq!(of(&turned, &[1.0, 2.0], pass), own);
        let mut all = vec![own];
        for at in 0..x.len() {
            let mut other = x.clone();
            other.as_slice_mut().unwrap()[at] += 0.5;
            all.push(of(&other, &[1.0, 2.0], pass));
        }
        all.push(of(
            &x.slice(s![.., .., ..4, ..]).to_owned(),
            &[1.0, 2.0],
            pass,
        ));
        all.extend([&[1.0, 2.5][..], &[2.0, 1.0], &[1.0]].map(|own| of(&x, own, pass)));
        let dropped = |dropout| Pass::Training { seed, dropout };
        all.extend([0.0, 0.1].map(|rate| of(&x, &[1.0, 2.0], dropped(rate))));
        let seed = Seed::new(2);
        all.push(of(&x, &[1.0, 2.0], Pass::Evaluation { seed }));
        for (n, one) in all.iter().enumerate() {
            assert!(!all[..n].contains(one), "number {n}");
        }
    }
}
