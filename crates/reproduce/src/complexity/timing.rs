//! Wall-clock time of attention's forward pass.

use super::clock::{LONG_ENOUGH, Lap, lap};
use super::kernel::SquaredKernel;
use super::{mechanisms, with_points};
use crate::Error;
use bochner_attention::{Mask, Pass, Variant, mechanism::Streams};
use bochner_numerics::{Seed, standard_normal};
use bochner_report::Scale;
use bochner_report::statistics::{Line, line, median};
use ndarray::Array4;
use serde::Serialize;

/// Width over all heads.
pub(super) const WIDTH: usize = 64;

/// Heads.
const HEADS: usize = super::counts::HEADS;

/// Slopes are taken over lengths from this one on.
pub(super) const SLOPE_FROM: usize = 1024;

/// What is timed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) tokens: Vec<usize>,
    pub(super) points: Vec<usize>,
    pub(super) repetitions: usize,
    /// Seconds that the calls of one measurement take together at least.
    pub(super) long_enough: f64,
}

impl Plan {
    /// What a scale times; nothing at scale smoke.
    pub(super) fn of(scale: Scale) -> Self {
        let (longest, repetitions) = match scale {
            Scale::Smoke => (0, 0),
            Scale::Desk => (4096, 5),
            Scale::Paper => (32_768, 5),
        };
        let lengths = std::iter::successors(Some(256), |t| Some(2 * t));
        Self {
            tokens: lengths.take_while(|t| *t <= longest).collect(),
            points: vec![16, 64],
            repetitions,
            long_enough: LONG_ENOUGH,
        }
    }
}

/// The name of the squared kernel without parameters or noise around it, of which both forms are
/// timed.
pub(super) const KERNEL: &str = "squared kernel";

/// In which form attention is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// All pairs of queries and keys.
    Quadratic,
    /// Sums over the keys, exact, of a squared kernel.
    Linear,
}

/// The times of one mechanism at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Timed {
    /// The mechanism's name.
    pub(super) mechanism: String,
    /// The form.
    pub(super) form: Form,
    /// R; zero for mechanisms without spectral points.
    pub(super) points: usize,
    /// T.
    pub(super) tokens: usize,
    /// d, over all heads.
    pub(super) width: usize,
    /// M.
    pub(super) heads: usize,
    /// Threads.
    pub(super) threads: usize,
    /// The times of all repetitions by the wall clock.
    pub(super) seconds: Vec<f64>,
    /// The processor's time of all repetitions, for a single thread and where the system tells it.
    pub(super) processor_seconds: Vec<f64>,
}

impl Timed {
    /// The times that count: on the processor where they are known, since on a busy machine the
    /// wall clock measures the others.
    pub(super) fn judged(&self) -> &[f64] {
        match self.processor_seconds.len() == self.seconds.len() {
            true => &self.processor_seconds,
            false => &self.seconds,
        }
    }

    fn add(&mut self, lap: Lap) {
        self.seconds.push(lap.wall);
        let own = lap.processor.filter(|_| self.threads == 1);
        self.processor_seconds.extend(own);
    }
}

/// Times everything, one repetition of all after the other, so that a busy spell of the machine
/// meets all alike; stops early when `go_on` says so.
pub(super) fn measure(plan: &Plan, go_on: impl Fn() -> bool) -> Result<Vec<Timed>, Error> {
    let jobs = jobs(plan)?;
    let mut timed: Vec<Timed> = jobs.iter().map(|job| job.untimed()).collect();
    for repetition in 1..=plan.repetitions {
        eprintln!(
            "complexity: timing, repetition {repetition} of {}",
            plan.repetitions
        );
        for (job, timed) in jobs.iter().zip(&mut timed).take_while(|_| go_on()) {
            timed.add(job.run(plan.long_enough)?);
        }
    }
    timed.retain(|timed| !timed.seconds.is_empty());
    Ok(timed)
}

/// One mechanism at one size.
struct Job {
    name: &'static str,
    /// The mechanism; none for the squared kernel alone.
    variant: Option<Variant>,
    form: Form,
    points: usize,
    tokens: usize,
}

fn jobs(plan: &Plan) -> Result<Vec<Job>, Error> {
    let mut jobs = Vec::new();
    for &tokens in &plan.tokens {
        for (variant, card, _) in mechanisms() {
            let points = match card.points {
                Some(_) => &plan.points[..],
                None => &[0],
            };
            for &points in points {
                jobs.push(Job {
                    name: card.name,
                    variant: Some(with_points(&variant, points)?),
                    form: Form::Quadratic,
                    points,
                    tokens,
                });
            }
        }
        for form in [Form::Quadratic, Form::Linear] {
            jobs.extend(plan.points.iter().map(|&points| Job {
                name: KERNEL,
                variant: None,
                form,
                points,
                tokens,
            }));
        }
    }
    Ok(jobs)
}

impl Job {
    fn untimed(&self) -> Timed {
        Timed {
            mechanism: self.name.to_owned(),
            form: self.form,
            points: self.points,
            tokens: self.tokens,
            width: WIDTH,
            heads: HEADS,
            threads: rayon::current_num_threads(),
            seconds: Vec::new(),
            processor_seconds: Vec::new(),
        }
    }

    /// The time of one forward pass.
    fn run(&self, long_enough: f64) -> Result<Lap, Error> {
        match &self.variant {
            Some(variant) => self.run_mechanism(variant, long_enough),
            None => self.run_kernel(long_enough),
        }
    }

    fn run_kernel(&self, long_enough: f64) -> Result<Lap, Error> {
        let kernel = SquaredKernel::random(self.tokens, self.points, WIDTH, HEADS);
        let form = match self.form {
            Form::Quadratic => bochner_attention::Form::Pairwise,
            Form::Linear => bochner_attention::Form::LinearTime,
        };
        lap(long_enough, || kernel.attend(form).map(drop))
    }

    fn run_mechanism(&self, variant: &Variant, long_enough: f64) -> Result<Lap, Error> {
        let seed = Seed::new(2021);
        let mut stream = seed.stream("inputs");
        let shape = (1, HEADS, self.tokens, WIDTH / HEADS);
        let mut x = || Array4::from_shape_simple_fn(shape, || standard_normal::<f32>(&mut stream));
        let (q, k, v) = (x(), x(), x());
        let mask = Mask::none();
        let inputs = Streams::new([q.view(), k.view(), v.view()], &mask);
        let mechanism = variant.at_step(0, inputs.size());
        let mechanism = mechanism.get::<f32>();
        let parameters = mechanism.initial(inputs.size(), &mut seed.stream("initial values"))?;
        let pass = Pass::Evaluation { seed };
        lap(long_enough, || {
            Ok(mechanism.forward(&inputs, &parameters, &pass).map(drop)?)
        })
    }
}

/// How the time grows with the length: one mechanism in one form with one number of points.
pub(super) struct Growth {
    pub(super) mechanism: String,
    pub(super) form: Form,
    pub(super) points: usize,
    /// Lengths and median times.
    pub(super) medians: Vec<(usize, f64)>,
    /// The slope of the logarithms over all repetitions from [`SLOPE_FROM`] on.
    pub(super) slope: Option<Line>,
    /// The slope by the wall clock instead of processor time.
    pub(super) wall: Option<Line>,
}

impl Growth {
    /// Where the slope must lie.
    pub(super) fn allowed(&self) -> (f64, f64) {
        match self.form {
            Form::Quadratic => (1.8, 2.2),
            Form::Linear => (0.8, 1.2),
        }
    }

    /// Whether it does; `None` without a slope.
    pub(super) fn holds(&self) -> Option<bool> {
        let (low, high) = self.allowed();
        self.slope.map(|line| (low..=high).contains(&line.slope))
    }

    /// The median at a length.
    pub(super) fn at(&self, tokens: usize) -> Option<f64> {
        let found = self.medians.iter().find(|(other, _)| *other == tokens);
        found.map(|(_, seconds)| *seconds)
    }
}

/// The times by mechanism, form and number of points.
pub(super) fn growths(timed: &[Timed]) -> Result<Vec<Growth>, Error> {
    let key = |t: &Timed| (t.mechanism.clone(), t.form, t.points);
    let mut keys: Vec<_> = Vec::new();
    for timed in timed {
        if !keys.contains(&key(timed)) {
            keys.push(key(timed));
        }
    }
    let growth = |(mechanism, form, points)| {
        let wanted = (mechanism, form, points);
        let own: Vec<&Timed> = timed.iter().filter(|t| key(t) == wanted).collect();
        let medians = own.iter().map(|t| Ok((t.tokens, median(t.judged())?)));
        Ok(Growth {
            medians: medians.collect::<Result<_, Error>>()?,
            slope: slope(&own, Timed::judged),
            wall: slope(&own, |t| &t.seconds),
            mechanism: wanted.0,
            form,
            points,
        })
    };
    keys.into_iter().map(growth).collect()
}

fn slope(timed: &[&Timed], seconds: impl Fn(&Timed) -> &[f64]) -> Option<Line> {
    let mut logs = Vec::new();
    for timed in timed.iter().filter(|t| t.tokens >= SLOPE_FROM) {
        let length = (timed.tokens as f64).ln();
        logs.extend(seconds(timed).iter().map(|s| (length, s.ln())));
    }
    line(&logs).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(form: Form, power: i32) -> Vec<Timed> {
        let times = [256, 512, 1024, 2048, 4096].map(|tokens: usize| Timed {
            mechanism: "x".to_owned(),
            form,
            points: 16,
            tokens,
            width: WIDTH,
            heads: HEADS,
            threads: 1,
            processor_seconds: Vec::new(),
            seconds: [0.9, 1.0, 1.2]
                .map(|s| s * (tokens as f64).powi(power))
                .to_vec(),
        });
        times.to_vec()
    }

    #[test]
    fn the_slope_is_the_power_of_the_length() {
        let quadratic = growths(&timed(Form::Quadratic, 2)).unwrap();
        assert_eq!(quadratic.len(), 1);
        assert!((quadratic[0].slope.unwrap().slope - 2.0).abs() < 1e-9);
        assert_eq!(quadratic[0].holds(), Some(true));
        assert_eq!(quadratic[0].at(1024), Some(1024.0 * 1024.0));
        let linear = growths(&timed(Form::Linear, 2)).unwrap();
        assert_eq!(linear[0].holds(), Some(false));
        let short = growths(&timed(Form::Linear, 1)[..2]).unwrap();
        assert_eq!(short[0].holds(), None);
    }

    #[test]
    fn everything_planned_is_timed() {
        let plan = Plan {
            tokens: vec![16, 32],
            points: vec![2, 4],
            repetitions: 2,
            long_enough: 0.0,
        };
        let all = measure(&plan, || true).unwrap();
        assert_eq!(all.len(), jobs(&plan).unwrap().len());
        assert!(
            all.iter()
                .all(|t| t.seconds.len() == 2 && t.seconds[0] > 0.0)
        );
        assert!(measure(&plan, || false).unwrap().is_empty());
        assert!(Plan::of(Scale::Smoke).tokens.is_empty());
    }
}
