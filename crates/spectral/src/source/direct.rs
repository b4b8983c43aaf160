//! Spectral points that are parameters.

use super::parameters::Named;
use super::{
    Drawn, DrawnCotangents, MOST_POINTS, ParameterSpec, Size, Source, SourceGradients, Stationarity,
};
use crate::{DirectInit, Error, Features, direct_points};
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array4, ArrayView3, Axis, Ix3};
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// A source whose points `[M, R, d]` are its parameters `w1` and `w2`, the same for every example.
///
/// It reads no features and draws nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    default,
    deny_unknown_fields,
    remote = "Self"
)]
pub struct Direct {
    /// The number of distinct frequencies R of each head.
    pub points: usize,
    /// The initial points.
    pub start: DirectInit,
    /// The kernel that the points belong to.
    pub stationarity: Stationarity,
}

impl Default for Direct {
    fn default() -> Self {
        Self {
            points: 64,
            start: DirectInit::NearSoftmax,
            stationarity: Stationarity::Nonstationary,
        }
    }
}

bochner_numerics::checked_when_read!(Direct);

impl Direct {
    fn validate(&self) -> Result<(), Error> {
        Ok(argument::at_most("points", self.points, MOST_POINTS)?)
    }

    fn names(&self) -> &'static [&'static str] {
        &["w1", "w2"][..self.stationarity.sets()]
    }
}

impl<T: Real> Source<T> for Direct {
    fn validate(&self) -> Result<(), Error> {
        self.validate()
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        let shape = [size.heads, self.points, size.width];
        let spec = |name: &&str| ParameterSpec::new(*name, &shape);
        self.names().iter().map(spec).collect()
    }

    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        size.validate()?;
        let points = direct_points(size.heads, self.points, size.width, self.start, rng)?;
        let sets = [points.w1, points.w2].into_iter();
        Ok(sets.take(self.stationarity.sets()).flatten().collect())
    }

    fn noise(&self, batch: usize, Size { heads, width }: Size, _: &mut dyn RngCore) -> Array4<T> {
        Array4::zeros((batch, heads, 0, width))
    }

    fn draw(
        &self,
        features: &Features<T>,
        flat: &[T],
        noise: Array4<T>,
    ) -> Result<Drawn<T>, Error> {
        self.validate()?;
        let (batch, heads, width) = features.checked()?;
        argument::shape("noise", &[batch, heads, 0, width], noise.shape())?;
        let specs = Source::<T>::parameters(self, Size { heads, width });
        let named = Named::new(specs, flat)?;
        let set = |name: &&str| {
            let points: ArrayView3<T> = named.get::<Ix3>(name);
            points.insert_axis(Axis(0)).to_owned()
        };
        Ok(Drawn {
            points: self.names().iter().map(set).collect(),
            kl: Array1::zeros(batch),
            latent: None,
        })
    }

    fn draw_vjp(
        &self,
        features: &Features<T>,
        _: &[T],
        drawn: &Drawn<T>,
        cotangent: DrawnCotangents<T>,
    ) -> Result<SourceGradients<T>, Error> {
        let (batch, heads, width) = features.checked()?;
        // The gradients do not depend on the values of the parameters, only on how many there are.
        let shape = [1, heads, self.points, width];
        let fits = drawn.latent.is_none()
            && drawn.points.len() == self.names().len()
            && drawn.points.iter().all(|w| w.shape() == shape)
            && drawn.kl.len() == batch;
        if !fits {
            return Err(Error::ForeignDraw);
        }
        cotangent.check(drawn)?;
        Ok(SourceGradients {
            q: Array4::zeros(features.q.raw_dim()),
            k: Array4::zeros(features.k.raw_dim()),
            parameters: cotangent.points.into_iter().flatten().collect(),
            noise: Array4::zeros((batch, heads, 0, width)),
        })
    }
}
