//! One draw of spectral points for those who weigh something else than a sequence with them.

use super::{Draw, Mikan};
use crate::mechanism::{Gradients, Inputs, Pass};
use crate::spectral::as_in_the_paper;
use crate::{Described, DrawnCotangents, DrawnPoints, Error, SpectralMechanism};
use bochner_numerics::Real;

/// A draw and the settings it was made with.
struct Saved<T> {
    settings: Mikan,
    draw: Draw<T>,
}

impl<T: Real> SpectralMechanism<T> for Mikan {
    fn p(&self) -> f64 {
        self.p
    }

    fn floor(&self) -> f64 {
        self.floor
    }

    fn draw_points(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        pass: &Pass,
    ) -> Result<DrawnPoints<T>, Error> {
        as_in_the_paper(self.preset)?;
        let draw = self.draw(inputs, flat, self.single_noise(inputs, pass)?)?;
        let penalty = draw.kl.mapv(|kl| kl * T::of(self.beta));
        let settings = self.clone();
        Ok(DrawnPoints::new(
            draw.points.clone(),
            penalty,
            Saved { settings, draw },
        ))
    }

    fn draw_points_vjp(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        drawn: &DrawnPoints<T>,
        cotangent: DrawnCotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let mechanism = Self::NAME;
        let Saved { settings, draw } = drawn.saved(mechanism)?;
        if settings != self {
            return Err(Error::ForeignForward { mechanism });
        }
        let (sets, penalty) = cotangent.checked(drawn)?;
        let named = self.named(inputs.size(), flat)?;
        let pulled = self.pull_back(inputs, &named, draw, sets, penalty.view())?;
        Ok(pulled.gradients)
    }
}
