//! The common part of the squared-kernel mechanisms: attention over given spectral points, in the paper's form or in
//! that of the released code.

use super::pass::Attended;
use crate::error::{self, Error};
use crate::kernels::{Squared, points_gradients};
use crate::mechanism::{Pass, Streams};
use crate::{Bias, Card, Form, Magnitude, Settings, Support, card::Cost};
use bochner_engine::{Gradients, HeadRows, KeyWeight, Side, Wanted, shared_heads};
use bochner_numerics::scaling::rounded;
use bochner_numerics::{DropoutMask, Mat, Real, argument};
use bochner_spectral::Preset;
use ndarray::{Array3, Array4, ArrayView4, Ix4};
use std::f64::consts::TAU;
use std::sync::Arc;

/// Spectral points of all heads, `[1 or B, M, R, d]`: one set of a stationary kernel, w1 and w2 of a
/// non-stationary one. Settings and the backward pass share them.
pub(super) type Sets<T> = Arc<[Array4<T>]>;

/// The released code multiplies frequencies by this.
const FREQUENCY_SCALE: f64 = TAU;
/// Rate of the dropout that falls on the magnitudes in training of the released code.
const MAGNITUDE_DROPOUT: f64 = 0.1;

/// The card that the squared kernels share. Table 1 states the cost.
pub(super) const CARD: Card = Card {
    paper: "Song et al. 2021",
    linear_form: Support::Yes,
    constant_state: Support::Yes,
    cost: Some(Cost(&[[2, 0, 1, 0], [1, 2, 0, 0], [1, 1, 1, 0]])),
    ..Card::PAIRWISE
};

/// Returns the support of a squared kernel for a bias. Magnitudes that are dropped in training leave no logits to add
/// it to.
pub(super) fn takes_bias(preset: Preset) -> Support {
    match preset {
        Preset::Paper => Support::Yes,
        Preset::Released => Support::No {
            instead: "the paper's preset",
        },
    }
}

/// $(f^2 + e) e^{m_j}$ over spectral points that the caller provides.
pub(super) struct SquaredKernel {
    pub(super) p: f64,
    pub(super) floor: f64,
    pub(super) preset: Preset,
    pub(super) form: Form,
}

impl SquaredKernel {
    pub(super) fn validate(&self) -> Result<(), Error> {
        argument::positive("p", self.p)?;
        error::floor(self.floor)?;
        match self.form {
            Form::Blocked(blocks) => Ok(blocks.checked().map(drop)?),
            Form::LinearTime => Ok(bochner_engine::check_floor(self.floor)?),
            _ => Ok(()),
        }
    }

    /// The frequencies that enter the kernel: the released code multiplies them by 2 pi.
    pub(super) fn frequencies<T: Real>(&self, mut points: Vec<Array4<T>>) -> Vec<Array4<T>> {
        if self.preset == Preset::Released {
            for w in points.iter_mut().flatten() {
                *w = rounded(w.as_f64() * FREQUENCY_SCALE);
            }
        }
        points
    }

    /// The gradients of the points as they were before [`SquaredKernel::frequencies`].
    pub(super) fn along_points<T: Real>(
        &self,
        kernel: Option<Array3<T>>,
        [points, width]: [usize; 2],
    ) -> Vec<Array4<T>> {
        let g = points_gradients(&kernel.expect("a squared kernel has points"), points, width);
        self.frequencies([g.w1].into_iter().chain(g.w2).collect())
    }

    /// The settings of attention by these points in a pass, without its dropout on the weights.
    pub(super) fn settings<T: Real>(
        &self,
        inputs: &Streams<T>,
        points: &Sets<T>,
        pass: &Pass,
    ) -> Result<Settings<T>, Error> {
        let (sets, floor, p) = (Arc::clone(points), self.floor, self.p);
        let bias = self.bias(inputs, pass)?;
        let settings = Settings {
            form: self.form,
            ..Settings::pairs(Squared::new(sets, floor), inputs.mask)
        };
        Ok(match (self.preset, bias) {
            (Preset::Paper, _) => settings.with_key_weight(Magnitude::Norm { p }),
            (Preset::Released, None) => settings.with_key_weight(Magnitude::Released { p }),
            (Preset::Released, bias) => Settings { bias, ..settings },
        })
    }

    /// The vector-Jacobian product of attention by [`SquaredKernel::settings`].
    pub(super) fn attend_vjp<T: Real>(
        &self,
        inputs: &Streams<T>,
        pass: &Pass,
        saved: &Attended<T>,
        cotangent: ArrayView4<T>,
    ) -> Result<Gradients<T>, Error> {
        let dropped = self.dropped_magnitudes(pass)?;
        let bias = inputs.bias_gradient || dropped.is_some();
        let wanted = Wanted {
            kernel: true,
            bias,
            sink: false,
        };
        let mut g = inputs.attend_vjp(saved, cotangent, wanted)?;
        let Some(dropped) = dropped else {
            return Ok(g);
        };
        let [q, k, _] = inputs.get()?;
        let shape = [q.dim(), k.dim()].map(|(batch, heads, time, _)| (batch, heads, time));
        let [mut of_queries, mut of_keys] = shape.map(Array3::<f64>::zeros);
        let along = g.bias.take().expect("a bias with a gradient");
        let along = along.into_dimensionality::<Ix4>().expect("of pairs");
        for (index, ((b, m, i, j), along)) in along.indexed_iter().enumerate() {
            let along = dropped.factor::<f64>(index as u64) * along.as_f64();
            of_queries[[b, m, i]] += along;
            of_keys[[b, m * shape[1].1 / shape[0].1, j]] += along;
        }
        let magnitude = Magnitude::Released { p: self.p };
        for (x, along, sum) in [(q, of_queries, &mut g.q), (k, of_keys, &mut g.k)] {
            let along: Vec<T> = along.iter().map(|&g| T::of(g)).collect();
            let sum = sum.as_slice_mut().expect("row-major");
            with_rows(x, |rows| magnitude.pull(rows, &along, sum));
        }
        Ok(g)
    }

    /// The released code's magnitudes in training, where dropout falls on the sum of a query's and a key's: the exponents
    /// $\delta_{ij} (m_i + m_j)$ belong to pairs.
    fn bias<T: Real>(&self, inputs: &Streams<T>, pass: &Pass) -> Result<Option<Bias<T>>, Error> {
        let Some(dropped) = self.dropped_magnitudes(pass)? else {
            return Ok(None);
        };
        let [q, k, _] = inputs.get()?;
        let ((batch, heads, queries, width), (_, key_heads, keys, _)) = (q.dim(), k.dim());
        shared_heads(key_heads, heads)?;
        argument::shape("k", &[batch, key_heads, keys, width], k.shape())?;
        inputs.mask.check([batch, heads, queries, keys])?;
        let magnitude = Magnitude::Released { p: self.p };
        let [of_queries, of_keys] = [q, k].map(|x| {
            let mut magnitudes = Vec::new();
            with_rows(x, |rows| magnitude.log_weights(rows, &mut magnitudes));
            let (batch, heads, time, _) = x.dim();
            Array3::from_shape_vec((batch, heads, time), magnitudes).expect("one a row")
        });
        let largest = T::max_value().as_f64() / 4.0;
        let mut values = Array4::zeros((batch, heads, queries, keys));
        for (index, ((b, m, i, j), value)) in values.indexed_iter_mut().enumerate() {
            let factor: f64 = dropped.factor(index as u64);
            // What is dropped or masked is zero, whatever it was.
            if factor > 0.0 && inputs.mask.keeps([b, m, i, j], [queries, keys]) {
                let sum = of_queries[[b, m, i]] + of_keys[[b, m * key_heads / heads, j]];
                *value = T::of((factor * sum).min(largest));
            }
        }
        Ok(Some(Bias::fixed(values.view())?))
    }

    /// $\delta$ of the pairs, where magnitudes are dropped.
    fn dropped_magnitudes(&self, pass: &Pass) -> Result<Option<DropoutMask>, Error> {
        match self.preset {
            Preset::Paper => Ok(None),
            Preset::Released => pass.dropout(|_| MAGNITUDE_DROPOUT, "magnitude dropout"),
        }
    }
}

/// Calls `f` with all rows of an array `[B, M, T, d]`, as the rows of one head.
fn with_rows<T: Real, R>(x: ArrayView4<T>, f: impl FnOnce(HeadRows<T>) -> R) -> R {
    let (count, width) = (x.len() / x.dim().3, x.dim().3);
    let x = x.as_standard_layout();
    f(HeadRows {
        example: 0,
        head: 0,
        side: Side::Keys,
        x: Mat::new(x.as_slice().expect("row-major"), count, width),
    })
}

/// Returns the spectral points of an inspection: w1 and w2, which are equal for a stationary kernel.
pub(super) fn shown<T: Real>(points: &[Array4<T>]) -> (Array4<T>, Array4<T>) {
    let [first, last] = [points.first(), points.last()].map(|w| w.expect("spectral points"));
    (first.clone(), last.clone())
}
