//! The way back through the networks in units in which nothing overflows.

use super::draw::Draw;
use super::{Mikan, MikanGradients};
use crate::call::units::{divided, log2_largest, multiplied, multiply, unit};
use crate::error::Error;
use crate::mechanism::{Inputs, Named};
use crate::variants::squared::Sets;
use bochner_numerics::Real;
use ndarray::ArrayView1;

impl Mikan {
    /// From gradients of the points and the penalty's cotangents back to the parameters, and to q
    /// and k through the inference network.
    pub(super) fn pull_back<T: Real>(
        &self,
        inputs: &Inputs<T>,
        named: &Named<T>,
        draw: &Draw<T>,
        points: Sets<T>,
        penalty: ArrayView1<T>,
    ) -> Result<MikanGradients<T>, Error> {
        let points_too = points.iter().map(|w| log2_largest(w.view()));
        let given = points_too.fold(log2_largest(penalty), f64::max);
        let power = unit::<T>(given, log2_largest(inputs.q).max(log2_largest(inputs.k)));
        if power == 0 {
            return self.pull_back_draw(inputs, named, draw, points, penalty);
        }
        let own = |w| divided(w, power).into_owned();
        let points = points.iter().map(|w| own(w.view())).collect();
        let penalty = divided(penalty, power);
        let mut g = self.pull_back_draw(inputs, named, draw, points, penalty.view())?;
        multiply(&mut g.gradients.q, power);
        multiply(&mut g.gradients.k, power);
        multiply(&mut g.eps, power);
        for x in &mut g.gradients.parameters {
            *x = multiplied(x.as_f64(), power);
        }
        Ok(g)
    }
}
