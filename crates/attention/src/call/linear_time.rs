//! The linear-time form of a call.

use super::units::Units;
use super::{Call, Prepared};
use crate::engine::linear_time::{LinearTime, Sums, backward, forward};
use crate::engine::{Cotangent, HeadGradients, Packed, RowStatistics};
use crate::linear_time_state::LinearTimeState;
use bochner_numerics::{Real, parallel};
use ndarray::{Array1, Array3, Array4, Array5, ArrayViewMut2, s};

/// Outputs, statistics of the rows of each head, and what its parts start from.
type Passed<T> = (
    Vec<T>,
    Vec<Vec<RowStatistics<T>>>,
    Option<Vec<Vec<Sums<T>>>>,
);

impl<T: Real> Call<'_, '_, T> {
    /// Attention of every head.
    pub(crate) fn in_linear_time(&self, prepared: &[Prepared<T>]) -> Passed<T> {
        let packed = self.linear_time_packed(prepared);
        let heads = self.linear_time_heads(prepared, &packed);
        let mut output = Vec::with_capacity(heads.len() * self.queries * self.value_width());
        let (mut statistics, mut starts) = (Vec::new(), Vec::new());
        for passed in forward(&heads) {
            output.extend(passed.output);
            statistics.push(passed.statistics);
            starts.push(passed.starts);
        }
        (output, statistics, Some(starts))
    }

    /// Gradients of every head, with respect to features, values and exponents.
    pub(crate) fn back_in_linear_time(
        &self,
        prepared: &[Prepared<T>],
        starts: &[Vec<Sums<T>>],
        given: &[Cotangent<T>],
        units: Units,
    ) -> Vec<HeadGradients<T>> {
        let packed = self.linear_time_packed(prepared);
        let heads = self.linear_time_heads(prepared, &packed);
        if units.values == 0 {
            return backward(&heads, starts, given);
        }
        let in_units = |sums: &Sums<T>| sums.with_divided_values(units.values);
        let starts: Vec<Vec<Sums<T>>> = starts
            .iter()
            .map(|head| head.iter().map(in_units).collect())
            .collect();
        backward(&heads, &starts, given)
    }

    /// The sums of every head; not for causal masks.
    pub(crate) fn linear_time_state(&self, prepared: &[Prepared<T>]) -> LinearTimeState<T> {
        let heads = self.linear_time_heads(prepared, &[]);
        let width = heads[0].width();
        let lead = (self.batch, self.heads);
        let mut state = LinearTimeState {
            g: Array3::zeros((lead.0, lead.1, self.keys)),
            a: Array4::zeros((lead.0, lead.1, width, width)),
            b: Array5::zeros((lead.0, lead.1, self.value_width(), width, width)),
            z: Array3::zeros((lead.0, lead.1, self.queries)),
        };
        for (h, (head, passed)) in heads.iter().zip(forward(&heads)).enumerate() {
            let (b, m, sums) = (h / self.heads, h % self.heads, &passed.starts[0]);
            let g = Array1::from_vec(head.key_weights(sums));
            state.g.slice_mut(s![b, m, ..g.len()]).assign(&g);
            let second_moment = |column, mut out: ArrayViewMut2<T>| {
                head.second_moment(sums, column, |i, j, x| out[[i, j]] = x);
            };
            second_moment(self.value_width(), state.a.slice_mut(s![b, m, .., ..]));
            for n in 0..self.value_width() {
                second_moment(n, state.b.slice_mut(s![b, m, n, .., ..]));
            }
            let z = passed.statistics.iter().map(|row| row.normaliser);
            state
                .z
                .slice_mut(s![b, m, ..])
                .assign(&z.collect::<Array1<T>>());
        }
        state
    }

    /// What the pairs of causal heads read again and again.
    fn linear_time_packed(&self, prepared: &[Prepared<T>]) -> Vec<Packed<T>> {
        let causal = self.settings.mask.is_causal();
        let heads = if causal { prepared.len() } else { 0 };
        parallel::map(heads, |h| self.head(h, &prepared[h]).pack_for_backward())
    }

    fn linear_time_heads<'b>(
        &'b self,
        prepared: &'b [Prepared<T>],
        packed: &'b [Packed<T>],
    ) -> Vec<LinearTime<'b, T>> {
        parallel::map(prepared.len(), |h| {
            let packed = packed.get(h).unwrap_or(Packed::NONE);
            let head = self.head(h, &prepared[h]).with(packed);
            LinearTime::new(head, prepared.len()).expect("checked with the settings")
        })
    }
}
