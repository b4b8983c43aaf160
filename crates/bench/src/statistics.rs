//! Medians, and ratios of times that were measured in turns.

use serde::Serialize;

/// The median; of an even number, the mean of the two in the middle; not a number, of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n => (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
    }
}

/// Times of one piece of work done in two ways, measured in turns: what slows the machine down for a while slows
/// both down.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// The geometric mean of their time over ours.
    pub ratio: f64,
    /// The ends of its 95 % interval, of two rounds or more.
    pub interval: Option<[f64; 2]>,
}

impl Paired {
    /// Compares our times with as many of theirs, each with the one measured next to it; `None` of other numbers.
    pub(crate) fn new(theirs: &[f64], ours: &[f64]) -> Option<Self> {
        let n = ours.len();
        if n == 0 || theirs.len() != n {
            return None;
        }
        let logs: Vec<f64> = theirs.iter().zip(ours).map(|(a, b)| (a / b).ln()).collect();
        let mean = logs.iter().sum::<f64>() / n as f64;
        let squares: f64 = logs.iter().map(|x| (x - mean).powi(2)).sum();
        let interval = (n > 1).then(|| {
            let half = quantile(n - 1) * (squares / (n * (n - 1)) as f64).sqrt();
            [(mean - half).exp(), (mean + half).exp()]
        });
        Some(Self {
            ratio: mean.exp(),
            interval,
        })
    }

    /// The verdict on a slowdown of ours by 3 %, the most that may go unexplained.
    pub(crate) fn verdict(&self) -> &'static str {
        match self.interval {
            Some([_, high]) if high < 1.0 / SLOWER => "SLOWER",
            Some([low, _]) if low > 1.0 / SLOWER => "",
            _ => "undecided",
        }
    }
}

const SLOWER: f64 = 1.03;

/// The 97.5 % quantile of Student's t distribution.
fn quantile(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    // Beyond ten the normal distribution's with the first term of its expansion.
    let beyond = 1.960 + 2.372 / freedom as f64;
    TABLE.get(freedom - 1).copied().unwrap_or(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_slowdown_is_seen_through_noise_that_both_share() {
        // The machine becomes twice as slow on the way.
        let theirs = [10.0, 11.0, 14.0, 18.0, 20.0];
        let ours = theirs.map(|ms| 1.05 * ms);
        let paired = Paired::new(&theirs, &ours).unwrap();
        assert!((paired.ratio - 1.0 / 1.05).abs() < 1e-12 && paired.verdict() == "SLOWER");
        assert_eq!(Paired::new(&theirs, &theirs).unwrap().verdict(), "");
        let noisy = Paired::new(&[10.0, 15.0, 9.0], &[11.0, 10.0, 12.0]).unwrap();
        assert_eq!(noisy.verdict(), "undecided");
        let once = Paired::new(&[2.0], &[1.0]).unwrap();
        assert_eq!((once.ratio, once.interval), (2.0, None));
        assert_eq!(Paired::new(&[1.0, 2.0], &[1.0]), None);
    }

    #[test]
    fn the_interval_is_that_of_students_distribution() {
        // Logarithms 0 and 2: mean 1, standard error 1.
        let paired = Paired::new(&[1.0, 2.0_f64.exp()], &[1.0, 1.0]).unwrap();
        assert!((paired.interval.unwrap()[1].ln() - (1.0 + 12.706)).abs() < 1e-9);
        for (freedom, want) in [(11, 2.201), (20, 2.086), (60, 2.000)] {
            assert!((quantile(freedom) - want).abs() < 0.03, "{freedom}");
        }
    }
}
