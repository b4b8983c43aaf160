//! The empirical spectrum of a series, at regular or irregular times.

use ndarray::ArrayView1;
use std::f64::consts::TAU;

/// An oscillation found in a series.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// The frequency in cycles per unit.
    pub(super) frequency: f64,
    /// The variance that the oscillation explains.
    pub(super) variance: f64,
}

/// The strongest oscillations, and the variance that they do not explain.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lines {
    pub(super) lines: Vec<Line>,
    pub(super) rest: f64,
    /// The spacing of the frequencies searched, a quarter of the resolution of the series.
    pub(super) step: f64,
}

/// The `count` strongest oscillations, found one after the other: each is the peak of the
/// Lomb-Scargle periodogram of what the ones before it leave, so that neither the side lobes nor the
/// frequency of an oscillation are found again.
///
/// `None` if the series is too short to hold so many, or has no extent.
pub(super) fn strongest(t: ArrayView1<f64>, y: ArrayView1<f64>, count: usize) -> Option<Lines> {
    let extent = t.fold(f64::MIN, |m, &t| m.max(t)) - t.fold(f64::MAX, |m, &t| m.min(t));
    let n = y.len();
    let step = 1.0 / (4.0 * extent);
    if n < 4 || !step.is_finite() || count > 2 * (n - 1) {
        return None;
    }
    // Up to half of the mean sampling rate.
    let mut frequencies: Vec<f64> = (1..=2 * (n - 1)).map(|k| k as f64 * step).collect();
    let mean = y.sum() / n as f64;
    let mut rest: Vec<f64> = y.iter().map(|y| y - mean).collect();
    let lines = (0..count).map(|_| {
        let waves = frequencies.iter().map(|&f| Wave::fit(t, &rest, f));
        let strongest = waves
            .enumerate()
            .max_by(|a, b| a.1.power.total_cmp(&b.1.power));
        let (k, wave) = strongest.expect("no more lines than frequencies");
        wave.subtract(t, &mut rest);
        Line {
            frequency: frequencies.remove(k),
            variance: wave.power / n as f64,
        }
    });
    let lines = lines.collect();
    let rest = rest.iter().map(|r| r * r).sum::<f64>() / n as f64;
    Some(Lines { lines, rest, step })
}

/// The sinusoid of one frequency that fits best, shifted so that its cosine and sine are orthogonal.
struct Wave {
    rate: f64,
    shift: f64,
    cosine: f64,
    sine: f64,
    /// The sum of squares that the sinusoid explains, which is the periodogram up to a factor.
    power: f64,
}

impl Wave {
    fn fit(t: ArrayView1<f64>, y: &[f64], frequency: f64) -> Self {
        let rate = TAU * frequency;
        let doubled = t.iter().map(|t| (2.0 * rate * t).sin_cos());
        let (s, c) = doubled.fold((0.0, 0.0), |(a, b), (s, c)| (a + s, b + c));
        let shift = s.atan2(c) / 2.0;
        let mut sums = [0.0; 4];
        for (t, y) in t.iter().zip(y) {
            let (s, c) = (rate * t - shift).sin_cos();
            let terms = [c * y, c * c, s * y, s * s];
            sums.iter_mut().zip(terms).for_each(|(sum, t)| *sum += t);
        }
        let [cy, cc, sy, ss] = sums;
        // At half of a regular sampling rate the cosine or the sine is zero at all times.
        let floor = 1e-9 * y.len() as f64;
        let amplitude = |products: f64, squares: f64| match squares > floor {
            true => products / squares,
            false => 0.0,
        };
        let (cosine, sine) = (amplitude(cy, cc), amplitude(sy, ss));
        Self {
            rate,
            shift,
            cosine,
            sine,
            power: cosine * cy + sine * sy,
        }
    }

    fn subtract(&self, t: ArrayView1<f64>, y: &mut [f64]) {
        for (t, y) in t.iter().zip(y) {
            let (s, c) = (self.rate * t - self.shift).sin_cos();
            *y -= self.cosine * c + self.sine * s;
        }
    }
}
