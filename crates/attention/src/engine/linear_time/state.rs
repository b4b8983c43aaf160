//! What the linear-time form knows of a sequence.

use super::heads::{Reads, attend, plan, with_operands};
use super::squares::Squares;
use super::{LinearTime, Sums};
use crate::engine::attend::without_operands;
use crate::engine::{Arguments, Level, OutputRows, RowStatistics};
use crate::linear_time_state::LinearTimeState;
use crate::score::{PairKernel, Score, Squared};
use bochner_numerics::memory::overwritten_by;
use bochner_numerics::scaling::multiplied;
use bochner_numerics::{Buffer, Real};
use ndarray::{Array1, Array3, Array4, Array5, ArrayViewMut2, s};

/// The sums of every head; not for causal masks.
pub(crate) fn linear_time_state<T: Real>(
    kernel: &Squared<T>,
    call: &Arguments<T>,
) -> LinearTimeState<T> {
    let prepared = without_operands(kernel, call);
    let rows = prepared.len() * call.queries;
    let mut statistics = vec![RowStatistics::new(Level::NONE); rows];
    let starts = overwritten_by(&mut vec![T::zero(); rows * call.value_width], |output| {
        let statistics = &mut statistics;
        let out = OutputRows { output, statistics };
        attend(kernel, call, &prepared, |_| true, out)
    });
    let width = PairKernel::<T>::operand_width(kernel, call.width);
    let (batch, heads, values) = (call.batch, call.heads, call.value_width);
    let mut state = LinearTimeState {
        g: Array3::zeros((batch, heads, call.keys)),
        a: Array4::zeros((batch, heads, width, width)),
        b: Array5::zeros((batch, heads, values, width, width)),
        z: Array3::zeros((batch, heads, call.queries)),
    };
    let of_heads = starts.iter().zip(statistics.chunks(call.queries));
    for (h, (starts, rows)) in of_heads.enumerate() {
        let (b, m, sums, at) = (h / heads, h % heads, &starts[0], call.at(h));
        let plan = plan(kernel, &at, &prepared[h]);
        let nothing = Reads {
            queries: false,
            keys: false,
        };
        let head = prepared[h].head(kernel, &at, at.values());
        with_operands(kernel, &at, head, &plan, nothing, |head| {
            let g = head.key_weights(sums);
            let kept = state.g.slice_mut(s![b, m, ..g.len()]);
            kept.into_iter()
                .zip(g.iter())
                .for_each(|(kept, &g)| *kept = g);
            let second_moment = |column, unit, mut out: ArrayViewMut2<T>| {
                head.second_moment(sums, width, column, |i, j, x| {
                    out[[i, j]] = multiplied(x.as_f64(), unit);
                });
            };
            second_moment(values, 0, state.a.slice_mut(s![b, m, .., ..]));
            // The sums are over values that were divided by a power of two.
            for n in 0..values {
                let unit = prepared[h].unit;
                second_moment(n, unit, state.b.slice_mut(s![b, m, n, .., ..]));
            }
        });
        let z: Array1<T> = rows.iter().map(|row| row.normaliser).collect();
        state.z.slice_mut(s![b, m, ..]).assign(&z);
    }
    state
}

impl<T: Real, S: Score<T, Rank = Squares<T>>> LinearTime<'_, T, S> {
    /// $g_j$ of the keys in sums over all of them.
    fn key_weights(&self, sums: &Sums<T>) -> Buffer<T> {
        self.relative(0..self.head.values.shape().0, sums.reference)
    }

    /// Calls `f(a, b, x)` with every entry of $\sum_j g_j y_{jn} \phi_j \phi_j^T$ of `width`
    /// features, `n` being a column of $[v | 1]$.
    fn second_moment(
        &self,
        sums: &Sums<T>,
        width: usize,
        n: usize,
        mut f: impl FnMut(usize, usize, T),
    ) {
        let unscaled = (self.scale * self.scale).recip();
        let f = |a, b, x| f(a, b, unscaled * x);
        (self.plan.order).each_entry(&sums.moments, width, n, f);
    }
}
