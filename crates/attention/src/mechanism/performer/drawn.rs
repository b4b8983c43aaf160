//! The frequencies, drawn once for as long as they stay.

use super::{Performer, Redraw};
use crate::Error;
use bochner_kernels::{Coupling, Lengthscale, Norms, RbfConfig, coupled_frequencies};
use bochner_numerics::{Seed, parallel};
use bochner_spectral::Size;
use ndarray::{Array3, Axis};
use std::sync::{Arc, Mutex, PoisonError};

/// The frequencies of the last pass, for the next one: a function of the settings and the size of the heads
/// alone, so that all are alike.
#[derive(Clone, Default)]
pub struct Drawn(Arc<Mutex<Memo>>);

/// What was drawn, and the frequencies.
type Memo = Option<(Draw, Arc<Array3<f64>>)>;

/// Settings that are printed do not show all frequencies.
impl std::fmt::Debug for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Drawn")
    }
}

impl PartialEq for Drawn {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What decides the frequencies.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Draw {
    points: usize,
    how: (Coupling, Norms),
    seed: Seed,
    size: Size,
}

impl Performer {
    /// The number of the draw that holds at the step.
    pub(super) fn draw(&self) -> u64 {
        match self.redraw {
            Redraw::Never => 0,
            Redraw::Every { steps } => self.step / steps.max(1),
        }
    }

    /// The frequencies of all heads at the [`step`](Self::step), for sequences of such a size.
    ///
    /// # Shapes
    /// `[M, m, d]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for settings that are out of range.
    pub fn frequencies(&self, size: Size) -> Result<Arc<Array3<f64>>, Error> {
        let draw = Draw {
            points: self.points,
            how: (self.coupling, self.norms),
            seed: self.seed.child("frequencies").nth(self.draw()),
            size,
        };
        // A draw is replaced as a whole. It is made without the lock, since a thread that waits for its heads may begin
        // another pass of the same layer; two that draw at once draw the same.
        let last = || self.drawn.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, w)) = last().as_ref().filter(|(own, _)| *own == draw) {
            return Ok(Arc::clone(w));
        }
        let w = Arc::new(draw.frequencies()?);
        *last() = Some((draw, Arc::clone(&w)));
        Ok(w)
    }
}

impl Draw {
    fn frequencies(&self) -> Result<Array3<f64>, Error> {
        let Size { heads, width } = self.size;
        let lengthscale = Lengthscale::Shared(1.0);
        let kernel = RbfConfig { lengthscale }.build()?;
        let of_head = |head| {
            let mut stream = self.seed.nth(head as u64).stream("frequencies");
            coupled_frequencies::<f64>(&kernel, width, self.points, self.how, &mut stream)
        };
        let mut all = Array3::zeros((heads, self.points, width));
        for (mut of_head, drawn) in all
            .axis_iter_mut(Axis(0))
            .zip(parallel::map(heads, of_head))
        {
            of_head.assign(&drawn?.w);
        }
        Ok(all)
    }
}
