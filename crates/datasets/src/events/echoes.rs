//! A stream of events without files, in which the next event depends on times and not on the order alone.

use super::{EventData, EventSequence};
use crate::Error;
use crate::draws::Draws;
use bochner_numerics::{Seed, argument};

/// Event sequences in which what happened a while ago happens again.
///
/// The logarithms of the gaps between events are uniform, and the kind of an event is, with the probability `faithful`, that
/// of the event whose time is nearest to `lag` before its predecessor, the earlier one of two; otherwise, and as long as no
/// `lag` has passed since the first event, it is drawn uniformly. How many events lie within `lag` differs from place to
/// place: whoever sees the order without the times cannot know which event returns.
///
/// ```
/// use bochner_datasets::Echoes;
/// use bochner_numerics::Seed;
///
/// let task = Echoes { kinds: 5, events: 20, sequences: 100, gaps: [0.3, 3.0], lag: 4.0, faithful: 0.9 };
/// let data = task.draw(Seed::new(1))?;
/// assert_eq!((data.names.len(), data.sequences.len(), data.splits[0].test.len()), (5, 100, 10));
/// # Ok::<(), bochner_datasets::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Echoes {
    /// Number of kinds.
    pub kinds: usize,
    /// Events of a sequence, at least 2.
    pub events: usize,
    /// Number of sequences.
    pub sequences: usize,
    /// The smallest and the largest gap, both above 0.
    pub gaps: [f64; 2],
    /// The time after which an event returns, above 0.
    pub lag: f64,
    /// The probability that it does.
    pub faithful: f64,
}

impl Echoes {
    /// Draws the sequences.
    ///
    /// # Errors
    /// [`Error::Argument`] for numbers beyond their bounds; [`Error::TooFewRows`] for fewer sequences than the splits need.
    pub fn draw(self, seed: Seed) -> Result<EventData, Error> {
        argument::at_least_one("kinds", self.kinds)?;
        argument::in_range(self.events > 1, "events", self.events as f64, "at least 2")?;
        argument::positive("gaps", self.gaps[0])?;
        let allowed = format!("finite and at least the smallest, {}", self.gaps[0]);
        let ordered = self.gaps[0] <= self.gaps[1] && self.gaps[1].is_finite();
        argument::in_range(ordered, "gaps", self.gaps[1], allowed)?;
        argument::positive("lag", self.lag)?;
        let is_probability = (0.0..=1.0).contains(&self.faithful);
        argument::in_range(is_probability, "faithful", self.faithful, "from 0 to 1")?;
        let mut draws = Draws::new(seed.child("echoes"));
        let sequences = (0..self.sequences).map(|_| self.sequence(&mut draws));
        let sequences = sequences.collect();
        let names = (0..self.kinds).map(|kind| format!("kind {kind}"));
        EventData::new(names.collect(), sequences)
    }

    fn sequence(&self, draws: &mut Draws) -> EventSequence {
        let [low, high] = self.gaps.map(f64::ln);
        let mut drawn = EventSequence::default();
        let mut now = 0.0;
        for _ in 0..self.events {
            let returns = draws.happens(self.faithful);
            let fresh = draws.below(self.kinds);
            let kind = self.echo(&drawn).filter(|_| returns).unwrap_or(fresh);
            drawn.kinds.push(kind);
            drawn.times.push(now);
            now += (low + draws.share() * (high - low)).exp();
        }
        drawn
    }

    /// The kind that returns after the last event of a sequence; `None` as long as no lag has passed.
    pub fn echo(&self, past: &EventSequence) -> Option<usize> {
        let then = past.times.last()? - self.lag;
        if then < past.times[0] {
            return None;
        }
        let distance = |&at: &usize| (past.times[at] - then).abs();
        let nearest = (0..past.times.len()).min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.map(|at| past.kinds[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Echoes = Echoes {
        kinds: 4,
        events: 30,
        sequences: 60,
        gaps: [0.3, 3.0],
        lag: 4.0,
        faithful: 0.75,
    };

    /// The share of events that the rule foretells, among those after a lag, and of those that the event a fixed number of
    /// places before foretells, with the best such number.
    fn foretold(data: &EventData) -> [f64; 2] {
        let (mut right, mut all, mut by_order) = (0, 0, [0; 10]);
        for EventSequence { kinds, times } in &data.sequences {
            for next in 1..kinds.len() {
                let past = EventSequence {
                    kinds: kinds[..next].to_vec(),
                    times: times[..next].to_vec(),
                };
                let Some(echo) = TASK.echo(&past) else {
                    continue;
                };
                all += 1;
                right += usize::from(echo == kinds[next]);
                for (back, count) in by_order.iter_mut().enumerate() {
                    let before = next.checked_sub(1 + back).map(|at| kinds[at]);
                    *count += usize::from(before == Some(kinds[next]));
                }
            }
        }
        let best = by_order.into_iter().max().unwrap_or(0);
        [right, best].map(|count| count as f64 / f64::from(all))
    }

    #[test]
    fn times_foretell_what_the_order_does_not() {
        let data = TASK.draw(Seed::new(3)).unwrap();
        let [by_time, by_order] = foretold(&data);
        // Three quarters return, and a quarter of the others by chance.
        assert!((by_time - (0.75 + 0.25 / 4.0)).abs() < 0.03, "{by_time}");
        assert!(by_order < by_time - 0.2, "{by_order} {by_time}");
        let gaps = data.sequences.iter().flat_map(|own| own.times.windows(2));
        let mut gaps = gaps.map(|pair| pair[1] - pair[0]);
        assert!(gaps.all(|gap| (0.299..3.001).contains(&gap)));
    }

    #[test]
    fn the_event_nearest_to_the_lag_returns() {
        let past = EventSequence {
            kinds: vec![0, 1, 2, 3],
            times: vec![0.0, 1.0, 2.0, 5.5],
        };
        assert_eq!(TASK.echo(&past), Some(1));
        let soon = EventSequence {
            kinds: vec![0, 1],
            times: vec![0.0, 3.9],
        };
        assert_eq!(TASK.echo(&soon), None);
    }

    #[test]
    fn numbers_beyond_their_bounds_are_refused() {
        for wrong in [
            Echoes { kinds: 0, ..TASK },
            Echoes { events: 1, ..TASK },
            Echoes {
                gaps: [0.0, 1.0],
                ..TASK
            },
            Echoes {
                gaps: [2.0, 1.0],
                ..TASK
            },
            Echoes {
                lag: f64::NAN,
                ..TASK
            },
            Echoes {
                faithful: 1.1,
                ..TASK
            },
        ] {
            let refused = wrong.draw(Seed::new(1));
            assert!(matches!(refused, Err(Error::Argument(_))), "{wrong:?}");
        }
        let few = Echoes {
            sequences: 3,
            ..TASK
        };
        assert!(matches!(
            few.draw(Seed::new(1)),
            Err(Error::TooFewRows { .. })
        ));
    }
}
