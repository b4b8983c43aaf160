//! The linear-time form of a call.

use super::{Call, Prepared, slab};
use crate::Similarity;
use crate::engine::linear_time::{LinearTime, Plan, Starts, Sums};
use crate::engine::{Cotangent, Head, HeadGradients, Level, OutputRows, Packed, RowStatistics};
use crate::linear_time_state::LinearTimeState;
use bochner_numerics::memory::overwritten_by;
use bochner_numerics::{Buffer, Mat, Real, parallel};
use ndarray::{Array1, Array3, Array4, Array5, ArrayViewMut2, s};

/// Whose features a step reads.
#[derive(Clone, Copy)]
struct Reads {
    queries: bool,
    keys: bool,
}

impl Reads {
    const KEYS: Self = Self {
        queries: false,
        keys: true,
    };
    const BOTH: Self = Self {
        queries: true,
        keys: true,
    };
}

impl<T: Real> Call<'_, '_, T> {
    /// Attention of every head; what its parts start from.
    pub(crate) fn in_linear_time(&self, prepared: &[Prepared<T>], out: OutputRows<T>) -> Starts<T> {
        let heads = prepared.len();
        let mut plans = self.workspace.plans.empty(heads);
        parallel::map_into(heads, |h| self.plan(h, &prepared[h]), &mut plans);
        let mut starts = self.workspace.starts.empty(heads);
        let start = |h: usize| {
            let start = |head: LinearTime<T>| head.starts();
            self.with_features(h, prepared, &plans[h], Reads::KEYS, start)
        };
        parallel::map_into(heads, start, &mut starts);
        let reads = Reads {
            queries: true,
            // Causal queries meet those of their own block pair by pair.
            keys: self.settings.mask.is_causal(),
        };
        parallel::for_each_piece(
            out,
            heads,
            |rows, h, next| rows.split_at((next - h) * self.queries),
            |h, rows| {
                let read = |head: LinearTime<T>| head.read_all(&starts[h], rows);
                self.with_features(h, prepared, &plans[h], reads, read);
            },
        );
        starts
    }

    /// Gradients of one head, with respect to features, values and exponents, from sums whose values
    /// are still to be divided by a power of two.
    pub(crate) fn back_in_linear_time(
        &self,
        h: usize,
        prepared: &[Prepared<T>],
        starts: &[Sums<T>],
        given: &Cotangent<T>,
        power: i32,
    ) -> HeadGradients<T> {
        let divided: Vec<Sums<T>>;
        let starts = match power {
            0 => starts,
            power => {
                let of_divided = |sums: &Sums<T>| sums.with_divided_values(power);
                divided = starts.iter().map(of_divided).collect();
                &divided
            }
        };
        let plan = self.plan(h, &prepared[h]);
        let backward = |head: LinearTime<T>| head.backward(starts, given);
        self.with_features(h, prepared, &plan, Reads::BOTH, backward)
    }

    /// The sums of every head; not for causal masks.
    pub(crate) fn linear_time_state(&self, prepared: &[Prepared<T>]) -> LinearTimeState<T> {
        let rows = prepared.len() * self.queries;
        let mut statistics = vec![RowStatistics::new(Level::NONE); rows];
        let starts = overwritten_by(&mut vec![T::zero(); rows * self.value_width()], |output| {
            let statistics = &mut statistics;
            self.in_linear_time(prepared, OutputRows { output, statistics })
        });
        let (width, lead) = (self.operand_width(), (self.batch, self.heads));
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
            let (b, m, sums) = (h / self.heads, h % self.heads, &starts[0]);
            let plan = self.plan(h, &prepared[h]);
            let head = LinearTime::new(self.head(h, &prepared[h]), &plan);
            let head = head.expect("checked with the settings");
            let g = head.key_weights(sums);
            let kept = state.g.slice_mut(s![b, m, ..g.len()]);
            kept.into_iter()
                .zip(g.iter())
                .for_each(|(kept, &g)| *kept = g);
            let second_moment = |column, mut out: ArrayViewMut2<T>| {
                head.second_moment(sums, width, column, |i, j, x| out[[i, j]] = x);
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

    /// What there is to do for a head.
    fn plan(&self, h: usize, prepared: &Prepared<T>) -> Plan {
        let plan = self.head(h, prepared).plan(self.all_heads());
        plan.expect("checked with the settings")
    }

    /// Calls `f` with a head whose features are made now and gone afterwards: those of all heads at
    /// once would take 2R / d times the memory of queries and keys. There are those of as many heads as
    /// threads, or of a few more where one that waits for a head's parts begins another head.
    fn with_features<R>(
        &self,
        h: usize,
        prepared: &[Prepared<T>],
        plan: &Plan,
        reads: Reads,
        f: impl FnOnce(LinearTime<T>) -> R,
    ) -> R {
        let Similarity::Squared { points, .. } = &self.settings.similarity else {
            unreachable!("checked with the settings");
        };
        let features = |x: Mat<T>, read: bool| match read {
            true => self.features(h, x, points),
            false => Buffer::default(),
        };
        let left = features(slab(self.q.view(), h), reads.queries);
        let right = features(self.kept_keys(h), reads.keys);
        let width = points.features();
        let mut head = Head {
            left: Mat::new(&left, left.len() / width, width),
            right: Mat::new(&right, right.len() / width, width),
            ..self.head(h, &prepared[h])
        };
        let mut packed = Packed::default();
        if reads.queries && self.settings.mask.is_causal() {
            head.finite = self.finite(head.left, head.right, head.values);
            packed = head.pack_for_backward();
        }
        let head = LinearTime::new(head.with(&packed), plan);
        f(head.expect("checked with the settings"))
    }
}
