//! Questions of a search: are two tokens independent, given others?

use super::{Correlations, FisherTest};
use crate::Error;
use bochner_numerics::argument;

/// Answers questions of conditional independence.
///
/// [`FisherZ`] answers from samples, [`ZeroCorrelation`] from exact correlations, [`Separation`](crate::Separation)
/// from a known graph.
pub trait Independence {
    /// The number of nodes that can be asked about.
    fn nodes(&self) -> usize;

    /// Whether nodes $i$ and $j$ are independent given others.
    ///
    /// # Errors
    /// [`Error::Argument`] for a node that is not there, [`Error::RepeatedNode`] for one that is named twice, and
    /// the errors of the test.
    fn independent(&self, i: usize, j: usize, given: &[usize]) -> Result<bool, Error>;
}

/// Refuses nodes that are not there or that are named twice; `name` is the argument that holds them.
pub(super) fn distinct(
    name: &'static str,
    nodes: impl Iterator<Item = usize>,
    count: usize,
) -> Result<(), Error> {
    let mut seen = vec![false; count];
    for node in nodes {
        argument::index(name, node, count)?;
        if std::mem::replace(&mut seen[node], true) {
            return Err(Error::RepeatedNode { node });
        }
    }
    Ok(())
}

/// Independence by exact correlations: a partial correlation below a threshold is zero.
#[derive(Clone, Copy, Debug)]
pub struct ZeroCorrelation<'a> {
    correlations: &'a Correlations,
    zero: f64,
}

impl<'a> ZeroCorrelation<'a> {
    /// Takes partial correlations below `zero` in absolute value for zero.
    ///
    /// # Errors
    /// [`Error::Argument`] unless `zero` lies between 0 and 1.
    pub fn new(correlations: &'a Correlations, zero: f64) -> Result<Self, Error> {
        argument::in_range(zero > 0.0 && zero < 1.0, "zero", zero, "between 0 and 1")?;
        Ok(Self { correlations, zero })
    }
}

impl Independence for ZeroCorrelation<'_> {
    fn nodes(&self) -> usize {
        self.correlations.tokens()
    }

    fn independent(&self, i: usize, j: usize, given: &[usize]) -> Result<bool, Error> {
        Ok(self.correlations.partial(i, j, given)?.abs() < self.zero)
    }
}

/// Independence by [Fisher's test](FisherTest): two nodes count as independent where $p$ is above a level. Each test
/// stands alone; that there are many is not corrected for.
#[derive(Clone, Copy, Debug)]
pub struct FisherZ<'a> {
    correlations: &'a Correlations,
    samples: usize,
    level: f64,
}

impl<'a> FisherZ<'a> {
    /// Tests correlations by the samples that they come from.
    ///
    /// # Errors
    /// [`Error::NoSamples`] for correlations of attention whose values are not given, and the errors of
    /// [`new`](Self::new).
    pub fn of_samples(correlations: &'a Correlations, level: f64) -> Result<Self, Error> {
        let samples = correlations.samples().ok_or(Error::NoSamples)?;
        Self::new(correlations, samples, level)
    }

    /// Tests correlations as if they came from so many samples. Attention alone has none: there it is the number of
    /// columns of its values, the width of the head.
    ///
    /// # Errors
    /// [`Error::TooFewSamples`] for fewer than four samples, [`Error::Argument`] unless `level` lies between 0 and 1, or
    /// for more samples than the correlations come from.
    pub fn new(correlations: &'a Correlations, samples: usize, level: f64) -> Result<Self, Error> {
        let holds = level > 0.0 && level < 1.0;
        argument::in_range(holds, "level", level, "between 0 and 1")?;
        let there_are = correlations.samples().unwrap_or(usize::MAX);
        let allowed = format!("at most {there_are}, the samples there are");
        argument::in_range(samples <= there_are, "samples", samples as f64, allowed)?;
        FisherTest::new(0.0, samples, 0)?;
        Ok(Self {
            correlations,
            samples,
            level,
        })
    }
}

impl Independence for FisherZ<'_> {
    fn nodes(&self) -> usize {
        self.correlations.tokens()
    }

    fn independent(&self, i: usize, j: usize, given: &[usize]) -> Result<bool, Error> {
        let r = self.correlations.partial(i, j, given)?;
        Ok(FisherTest::new(r, self.samples, given.len())?.p_value > self.level)
    }
}
