//! The coordinates in which a fit moves, and the objective there.

use super::{FitConfig, Prior, Step};
use crate::{Error, Evidence, GaussianProcess};
use bochner_kernels::{Domain, Parameter};
use bochner_numerics::{Seed, standard_normal};
use bochner_ops::Objective;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use std::ops::ControlFlow;

/// Value and gradient of what a fit maximises: along the coordinates of the process, and along the inducing
/// points, if there are any.
pub(crate) struct Slope {
    pub(crate) evidence: Evidence,
    pub(crate) coordinates: Vec<f64>,
    pub(crate) inducing: Vec<f64>,
}

/// The likelihood of a process with these inducing points, or its bound.
pub(crate) type Likelihood<'a> =
    dyn FnMut(&GaussianProcess, ArrayView2<f64>) -> Result<Slope, Error> + 'a;

/// The spreads of the data. A scale is 1 where the data do not vary.
pub(crate) struct Spreads {
    pub(crate) inputs: Vec<f64>,
    target: f64,
}

impl Spreads {
    pub(crate) fn new(x: ArrayView2<f64>, y: ArrayView1<f64>) -> Self {
        Self {
            inputs: x.axis_iter(Axis(1)).map(spread).collect(),
            target: spread(y),
        }
    }
}

fn spread(values: ArrayView1<f64>) -> f64 {
    let varies = values.iter().any(|v| *v != values[0]);
    let std = values.std(0.0);
    if varies && std.is_normal() { std } else { 1.0 }
}

/// The free coordinates of a process, each divided by its scale, so that the units of the data do not matter:
/// logarithms as they are, the mean in spreads of the targets, frequencies in cycles per spread of their input.
pub(super) struct Space {
    names: Vec<Parameter<f64>>,
    free: Vec<usize>,
    scales: Vec<f64>,
    priors: Vec<(usize, Prior)>,
    /// The inverse of the spread of each inducing coordinate, which follow those of the process.
    inducing: Vec<f64>,
    pub(super) bounds: Vec<(f64, f64)>,
}

impl Space {
    pub(super) fn new(
        process: &GaussianProcess,
        inducing: Option<(usize, &Spreads)>,
        spreads: &Spreads,
        config: &FitConfig,
    ) -> Result<Self, Error> {
        let names = process.parameters();
        let known = || {
            names
                .iter()
                .map(|p| p.name.clone())
                .chain(inducing.map(|_| INDUCING.to_owned()))
        };
        let find = |got: &String| {
            let at = names.iter().position(|p| p.name == *got);
            at.ok_or_else(|| Error::UnknownParameter {
                got: got.clone(),
                known: known().collect(),
            })
        };
        let mut priors = Vec::new();
        for (name, prior) in &config.priors {
            let at = find(name)?;
            prior.check_domain(name, names[at].domain, names[at].value)?;
            priors.push((at, *prior));
        }
        let moves_inducing =
            inducing.is_some() && !config.fixed.iter().any(|name| name == INDUCING);
        let fixed = config
            .fixed
            .iter()
            .filter(|name| inducing.is_none() || *name != INDUCING);
        let fixed = fixed.map(find).collect::<Result<Vec<_>, _>>()?;
        let free: Vec<usize> = (0..names.len()).filter(|i| !fixed.contains(i)).collect();
        let scales: Vec<f64> = names.iter().map(|p| scale(p, spreads)).collect();
        let floor = (config.noise_floor * spreads.target * spreads.target).min(process.noise);
        let bounds = free.iter().map(|&i| match i {
            NOISE if floor > 0.0 => (floor.ln(), f64::INFINITY),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        });
        let mut bounds: Vec<_> = bounds.collect();
        let count = inducing
            .filter(|_| moves_inducing)
            .map_or(0, |(count, _)| count);
        let inverse = spreads.inputs.iter().map(|s| s.recip());
        let inducing: Vec<f64> = inverse.cycle().take(count).collect();
        bounds.extend(inducing.iter().map(|_| (f64::NEG_INFINITY, f64::INFINITY)));
        Ok(Self {
            names,
            free,
            scales,
            priors,
            inducing,
            bounds,
        })
    }

    /// Whether the mean is free and has no prior.
    pub(super) fn frees_mean(&self) -> bool {
        self.free.contains(&MEAN) && self.priors.iter().all(|(i, _)| *i != MEAN)
    }

    /// The present place.
    pub(super) fn place(&self, process: &GaussianProcess, inducing: &[f64]) -> Vec<f64> {
        let coordinates = process.coordinates();
        let mut place: Vec<f64> = self
            .free
            .iter()
            .map(|&i| coordinates[i] / self.scales[i])
            .collect();
        place.extend(
            self.inducing
                .iter()
                .zip(inducing)
                .map(|(inverse, z)| z * inverse),
        );
        // A logarithm and its exponential are inverse up to rounding only.
        place
            .iter_mut()
            .zip(&self.bounds)
            .for_each(|(p, (l, u))| *p = p.clamp(*l, *u));
        place
    }

    /// A place at random around another one: logarithms and multiples of scales are normal with a standard
    /// deviation of 1.5. Inducing points stay.
    pub(super) fn around(&self, place: &[f64], seed: Seed) -> Vec<f64> {
        let mut stream = seed.stream("restart of a fit");
        let mut place = place.to_vec();
        for (p, (lower, upper)) in place.iter_mut().zip(&self.bounds).take(self.free.len()) {
            *p = (*p + 1.5 * standard_normal::<f64>(&mut stream)).clamp(*lower, *upper);
        }
        place
    }

    /// Moves the process and the inducing points to a place.
    pub(super) fn go(
        &self,
        place: &[f64],
        process: &mut GaussianProcess,
        inducing: &mut [f64],
    ) -> Result<(), Error> {
        let mut coordinates = process.coordinates();
        for (&i, p) in self.free.iter().zip(place) {
            coordinates[i] = p * self.scales[i];
        }
        process.set_coordinates(&coordinates)?;
        let moved = &place[self.free.len()..];
        for ((z, inverse), p) in inducing.iter_mut().zip(&self.inducing).zip(moved) {
            *z = p / inverse;
        }
        Ok(())
    }

    /// The objective at the place where the process is, and its gradient along the place.
    fn objective(&self, process: &GaussianProcess, slope: &Slope) -> (f64, Vec<f64>) {
        let (mut value, mut along) = (slope.evidence.log_likelihood, slope.coordinates.clone());
        let parameters = process.parameters();
        for (i, prior) in &self.priors {
            let theta = parameters[*i].value;
            let (log, derivative) = prior.log_density(theta);
            value += log;
            along[*i] += match self.names[*i].domain {
                Domain::Positive => theta * derivative,
                Domain::Finite | Domain::Frequency { .. } => derivative,
            };
        }
        let mut gradient: Vec<f64> = self
            .free
            .iter()
            .map(|&i| along[i] * self.scales[i])
            .collect();
        gradient.extend(
            slope
                .inducing
                .iter()
                .zip(&self.inducing)
                .map(|(g, inverse)| g / inverse),
        );
        (value, gradient)
    }
}

/// The name of the inducing points among the parameters that can be fixed.
const INDUCING: &str = "inducing";

/// The places of mean and noise among the parameters of a process.
const MEAN: usize = 0;
const NOISE: usize = 1;

fn scale(parameter: &Parameter<f64>, spreads: &Spreads) -> f64 {
    match parameter.domain {
        Domain::Positive => 1.0,
        // The mean is the one such parameter of a process.
        Domain::Finite => spreads.target,
        Domain::Frequency { column } => spreads.inputs.get(column).map_or(1.0, |s| s.recip()),
    }
}

/// A climb from one start.
pub(super) struct Climb<'a> {
    pub(super) space: &'a Space,
    pub(super) process: &'a mut GaussianProcess,
    pub(super) inducing: ArrayViewMut2<'a, f64>,
    pub(super) slope: &'a mut Likelihood<'a>,
    pub(super) observe: &'a mut dyn FnMut(&GaussianProcess, &Step) -> ControlFlow<()>,
    pub(super) trace: Vec<Step>,
    /// The error of the last place that has no value.
    pub(super) refused: Option<Error>,
    /// The places evaluated since the last one that was accepted.
    pub(super) seen: Vec<(Vec<f64>, Step)>,
}

impl Climb<'_> {
    /// Moves to a place.
    pub(super) fn go(&mut self, place: &[f64]) -> Result<(), Error> {
        let inducing = self
            .inducing
            .as_slice_mut()
            .expect("allocated in row-major order");
        self.space.go(place, self.process, inducing)
    }

    fn at(&mut self, place: &[f64]) -> Result<(f64, Vec<f64>), Error> {
        self.go(place)?;
        let slope = (self.slope)(self.process, self.inducing.view())?;
        let (objective, gradient) = self.space.objective(self.process, &slope);
        let step = Step {
            evidence: slope.evidence,
            objective,
            gradient_norm: gradient.iter().map(|g| g * g).sum::<f64>().sqrt(),
        };
        self.seen.push((place.to_vec(), step));
        Ok((objective, gradient))
    }
}

impl Objective for Climb<'_> {
    fn evaluate(&mut self, place: &[f64], gradient: &mut [f64]) -> f64 {
        match self.at(place) {
            Ok((value, along)) => {
                gradient
                    .iter_mut()
                    .zip(along)
                    .for_each(|(g, along)| *g = -along);
                -value
            }
            Err(error) => {
                self.refused = Some(error);
                f64::INFINITY
            }
        }
    }

    fn accept(&mut self, place: &[f64], _value: f64) -> ControlFlow<()> {
        let (_, step) = (self.seen.drain(..).rev())
            .find(|(seen, _)| seen == place)
            .expect("an accepted place was evaluated");
        self.trace.push(step);
        self.go(place).expect("a place with a value");
        (self.observe)(self.process, &step)
    }
}
