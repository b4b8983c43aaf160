//! The frequencies, and Performer with those of a step.

use super::{Performer, Redraw};
use crate::mechanism::{Mechanism, Pass, SharedMechanism, Streams};
use crate::{
    Card, Error, Mask, Settings,
    kernels::{self, Trained},
};
use bochner_kernels::{Lengthscale, RbfConfig, coupled_frequencies};
use bochner_numerics::{Real, argument, parallel};
use bochner_spectral::Size;
use ndarray::{Array3, Axis};

impl Performer {
    /// The number of the draw that holds at a step of training.
    fn draw_at(&self, step: u64) -> u64 {
        match self.redraw {
            Redraw::Never => 0,
            Redraw::Every { steps } => step / steps.max(1),
        }
    }

    /// The frequencies of all heads at a step of training: a function of the settings, the step and the size alone.
    ///
    /// # Shapes
    /// `[M, m, d]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for settings that are out of range.
    pub fn frequencies(&self, step: u64, size: Size) -> Result<Array3<f64>, Error> {
        Mechanism::<f64>::validate(self)?;
        let Size { heads, width } = size;
        let seed = self.seed.child("frequencies").nth(self.draw_at(step));
        let lengthscale = Lengthscale::Shared(1.0);
        let (kernel, how) = (
            RbfConfig { lengthscale }.build()?,
            (self.coupling, self.norms),
        );
        let of_head = |head| {
            let mut stream = seed.nth(head as u64).stream("frequencies");
            coupled_frequencies::<f64>(&kernel, width, self.points, how, &mut stream)
        };
        let mut all = Array3::zeros((heads, self.points, width));
        let heads = parallel::map(heads, of_head);
        for (mut of_head, drawn) in all.axis_iter_mut(Axis(0)).zip(heads) {
            of_head.assign(&drawn?.w);
        }
        Ok(all)
    }

    /// Attention by such frequencies.
    pub(super) fn settings<T: Real>(&self, w: &Array3<f64>, mask: &Mask) -> Settings<T> {
        let w = w.mapv(T::of);
        Settings {
            form: self.form,
            ..kernels::random_features(w.view(), self.features, Trained::No, mask)
        }
    }
}

/// [`Performer`] with the frequencies of a step, for heads of one size.
#[derive(Debug)]
pub(super) struct Drawn {
    performer: Performer,
    draw: u64,
    w: Array3<f64>,
}

impl Drawn {
    /// `None` for settings that are out of range.
    pub(super) fn new(performer: &Performer, step: u64, size: Size) -> Option<Self> {
        Some(Self {
            performer: performer.clone(),
            draw: performer.draw_at(step),
            w: performer.frequencies(step, size).ok()?,
        })
    }
}

/// Prints the settings and the draw, which determine the frequencies.
impl<T: Real> Mechanism<T> for Drawn {
    fn card(&self) -> Card {
        Mechanism::<T>::card(&self.performer)
    }

    fn kernel(&self, inputs: &Streams<T>, _: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        let Size { heads, width } = inputs.size();
        let shape = [heads, self.performer.points, width];
        argument::shape("the frequencies", &shape, self.w.shape())?;
        Ok(self.performer.settings(&self.w, inputs.mask))
    }

    fn at_step(&self, step: u64, size: Size) -> Option<SharedMechanism> {
        match self.performer.draw_at(step) == self.draw {
            true => None,
            false => Mechanism::<T>::at_step(&self.performer, step, size),
        }
    }
}
