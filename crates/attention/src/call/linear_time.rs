//! The linear-time form of a call.

use super::units::Units;
use super::{Call, Prepared};
use crate::engine::linear_time::{LinearTime, Plan, Starts, Sums, backward, forward};
use crate::engine::{Cotangent, HeadGradients, Level, OutputRows, Packed, RowStatistics};
use crate::linear_time_state::LinearTimeState;
use bochner_numerics::{Buffer, Real, parallel};
use ndarray::{Array1, Array3, Array4, Array5, ArrayViewMut2, s};

/// What the heads of a call share in the linear-time form.
struct Shared<T> {
    /// If causal.
    packed: Buffer<Packed<T>>,
    plans: Buffer<Plan>,
}

impl<T: Real> Call<'_, '_, T> {
    /// Attention of every head; what its parts start from.
    pub(crate) fn in_linear_time(&self, prepared: &[Prepared<T>], out: OutputRows<T>) -> Starts<T> {
        let shared = self.linear_time_shared(prepared);
        let head = |h| self.linear_time_head(h, &prepared[h], &shared);
        forward(prepared.len(), head, self.workspace, out)
    }

    /// Gradients of every head, with respect to features, values and exponents.
    pub(crate) fn back_in_linear_time(
        &self,
        prepared: &[Prepared<T>],
        starts: &[Buffer<Sums<T>>],
        given: &[Cotangent<T>],
        units: Units,
    ) -> Vec<HeadGradients<T>> {
        let shared = self.linear_time_shared(prepared);
        let heads = (0..prepared.len()).map(|h| self.linear_time_head(h, &prepared[h], &shared));
        let heads: Vec<_> = heads.collect();
        if units.values == 0 {
            return backward(&heads, starts, given);
        }
        let in_units = |sums: &Sums<T>| sums.with_divided_values(units.values);
        let starts: Vec<Buffer<Sums<T>>> = starts
            .iter()
            .map(|head| head.iter().map(in_units).collect::<Vec<_>>().into())
            .collect();
        backward(&heads, &starts, given)
    }

    /// The sums of every head; not for causal masks.
    pub(crate) fn linear_time_state(&self, prepared: &[Prepared<T>]) -> LinearTimeState<T> {
        let shared = self.linear_time_shared(prepared);
        let head = |h| self.linear_time_head(h, &prepared[h], &shared);
        let width = head(0).width();
        let rows = prepared.len() * self.queries;
        let mut output = vec![T::zero(); rows * self.value_width()];
        let mut statistics = vec![RowStatistics::new(Level::NONE); rows];
        let out = OutputRows {
            output: &mut output,
            statistics: &mut statistics,
        };
        let starts = forward(prepared.len(), head, self.workspace, out);
        let lead = (self.batch, self.heads);
        let mut state = LinearTimeState {
            g: Array3::zeros((lead.0, lead.1, self.keys)),
            a: Array4::zeros((lead.0, lead.1, width, width)),
            b: Array5::zeros((lead.0, lead.1, self.value_width(), width, width)),
            z: Array3::zeros((lead.0, lead.1, self.queries)),
        };
        for (h, (starts, rows)) in starts
            .iter()
            .zip(statistics.chunks(self.queries))
            .enumerate()
        {
            let (b, m, sums, head) = (h / self.heads, h % self.heads, &starts[0], head(h));
            let g = head.key_weights(sums);
            let kept = state.g.slice_mut(s![b, m, ..g.len()]);
            kept.into_iter()
                .zip(g.iter())
                .for_each(|(kept, &g)| *kept = g);
            let second_moment = |column, mut out: ArrayViewMut2<T>| {
                head.second_moment(sums, column, |i, j, x| out[[i, j]] = x);
            };
            second_moment(self.value_width(), state.a.slice_mut(s![b, m, .., ..]));
            for n in 0..self.value_width() {
                second_moment(n, state.b.slice_mut(s![b, m, n, .., ..]));
            }
            let z = rows.iter().map(|row| row.normaliser);
            state
                .z
                .slice_mut(s![b, m, ..])
                .assign(&z.collect::<Array1<T>>());
        }
        state
    }

    /// What the pairs of causal heads read again and again, and what each head has to do.
    fn linear_time_shared(&self, prepared: &[Prepared<T>]) -> Shared<T> {
        let heads = prepared.len();
        let mut packed = self.workspace.packed.empty(heads);
        if self.settings.mask.is_causal() {
            let pack = |h: usize| self.head(h, &prepared[h]).pack_for_backward();
            parallel::map_into(heads, pack, &mut packed);
        }
        let plan = |h: usize| self.head(h, &prepared[h]).plan(heads);
        let mut plans = self.workspace.plans.empty(heads);
        parallel::map_into(
            heads,
            |h| plan(h).expect("checked with the settings"),
            &mut plans,
        );
        Shared { packed, plans }
    }

    fn linear_time_head<'b>(
        &'b self,
        h: usize,
        prepared: &'b Prepared<T>,
        shared: &'b Shared<T>,
    ) -> LinearTime<'b, T> {
        let packed = shared.packed.get(h).unwrap_or(Packed::NONE);
        let head = self.head(h, prepared).with(packed);
        LinearTime::new(head, &shared.plans[h]).expect("checked with the settings")
    }
}
