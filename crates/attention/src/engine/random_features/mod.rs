//! Attention whose weights are inner products of random features.
//!
//! Nothing is added to a normaliser or a feature: the output of a row is the exact quotient of two sums over
//! features. Whatever is subtracted from the exponents cancels: for queries the row's largest, for keys the
//! largest of each feature among those that the row sees ([`Sums`]).
//!
//! Random features have an engine of their own and do not implement [`FiniteRank`](super::FiniteRank). The sums of that
//! trait have one reference for all features of a key, the key's exponent, and the engine adds a floor to them. Random
//! features are exponentials of different sizes: each has a reference of its own, and perhaps a sign. The two engines
//! share the order in which blocks are summed up and read, the [scan], but neither sums nor weights of pairs ([`Pairs`]).

mod block;
mod decode;
mod head;
mod pairs;
mod referenced_sums;

use super::backward::HeadGradients;
use super::pull_back::{Along, over_heads};
use super::rescaling::{Units, copy_or, divided, fill_multiplied, multiply_finite};
use super::scan::{self, Course, Scanned};
use super::{Arguments, Attend, HeadAt, Memory, State, blocks, dot};
use crate::attend::AttentionGradients;
use crate::score::{LinearForm, PointsGradients};
use crate::{Blocks, Error, Form};
use block::Features;
use bochner_kernels::RandomFeatureMap;
use bochner_numerics::memory::Unwritten;
use bochner_numerics::{Buffer, Mat, Panels, Real, argument, parallel, scaling};
use head::{Head, Out};
use ndarray::{Array4, ArrayView2, ArrayView3, ArrayView4, Axis, s};
use pairs::{Factors, Given, Pairs, Row, Values};
use referenced_sums::Sums;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// $a_{ij} = \phi(q_i / d^{1/4}) \cdot \phi(k_j / d^{1/4})$.
#[derive(Clone, Debug)]
pub(crate) struct RandomFeatures<T: Real> {
    heads: Arc<[Frequencies<T>]>,
    /// `[M, m, d]`.
    shape: [usize; 3],
    map: RandomFeatureMap,
    trained: Trained,
}

/// Whether a backward pass goes on to the frequencies of random features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trained {
    /// The frequencies have a gradient.
    Yes,
    /// The frequencies are drawn, and have no gradient.
    No,
}

/// The frequencies of one head, packed.
#[derive(Clone, Debug)]
struct Frequencies<T> {
    /// W, `[m, d]`.
    rows: Panels<T>,
    /// $W^T$.
    transposed: Panels<T>,
}

impl<T: Real> Frequencies<T> {
    fn new(w: ArrayView2<T>) -> Self {
        let w = w.as_standard_layout();
        let data = w.as_slice().expect("brought to row-major order");
        let w = Mat::new(data, w.nrows(), w.ncols());
        Self {
            rows: Panels::new(w),
            transposed: Panels::new(w.t()),
        }
    }

    fn count(&self) -> usize {
        self.rows.shape().0
    }

    fn width(&self) -> usize {
        self.rows.shape().1
    }
}

/// The gradients of one head: of queries, keys, values and, if they are wanted, frequencies.
struct Gradients<T> {
    q: Buffer<T>,
    k: Buffer<T>,
    v: Buffer<T>,
    w: Vec<T>,
}

/// What is kept between the passes besides the output.
struct Kept<T> {
    heads: Vec<KeptHead<T>>,
}

struct KeptHead<T> {
    rows: Vec<Row<T>>,
    /// What the parts start from, in linear time.
    starts: Option<Buffer<Sums<T>>>,
    /// The power of two by which values were divided.
    unit: i32,
}

impl<T: Real> RandomFeatures<T> {
    /// Features by frequencies `[M, m, d]`.
    pub(crate) fn new(w: ArrayView3<T>, map: RandomFeatureMap, trained: Trained) -> Self {
        let (heads, count, width) = w.dim();
        let empty = w.is_empty();
        let packed = w
            .axis_iter(Axis(0))
            .filter(|_| !empty)
            .map(Frequencies::new);
        Self {
            heads: packed.collect(),
            shape: [heads, count, width],
            map,
            trained,
        }
    }

    fn features<'a>(&'a self, at: &HeadAt<'a, T>) -> Features<'a, T> {
        Features {
            map: self.map,
            frequencies: &self.heads[at.head()],
            numbers: at.numbers(),
        }
    }

    /// A head in linear time, with values that may be divided.
    fn head<'a>(&'a self, at: &HeadAt<'a, T>, values: Mat<'a, T>) -> Head<'a, T> {
        // A sum must not depend on how many examples there are.
        let (workspace, heads) = (at.arguments.workspace, at.arguments.heads);
        Head {
            features: self.features(at),
            queries: at.queries(),
            keys: at.keys(),
            values,
            rows: at.rows(),
            course: Course::new(workspace, &at.rows(), at.kept(), heads),
            trained: false,
        }
    }

    fn pairs<'a>(&'a self, at: &HeadAt<'a, T>) -> Pairs<'a, T> {
        Pairs {
            features: self.features(at),
            rows: at.rows(),
            dropout: at.dropout(),
            first: (0, 0),
        }
    }

    /// How many queries meet how many keys at a time where pairs are weighed: as many as linear time sums up at
    /// once, unless it is said.
    fn blocks(call: &Arguments<T>) -> Blocks {
        match call.settings.form {
            Form::Blocked(_) => call.blocks,
            _ => Blocks {
                queries: BLOCK,
                keys: BLOCK,
            },
        }
    }

    /// All keys of a head as factors of pairs, a block each.
    fn keys(&self, at: &HeadAt<T>) -> Vec<Factors<T>> {
        let (features, keys) = (self.features(at), at.keys());
        let of = |block| Factors::new(features.of(keys.row_range(block)), &features);
        let size = Self::blocks(at.arguments).keys;
        blocks(0..keys.shape().0, size).map(of).collect()
    }

    /// Attention of one head; output rows hold zeros.
    fn attend_head(&self, at: &HeadAt<T>, output: &mut [T]) -> KeptHead<T> {
        let unit = at.own_unit(self.features(at).count());
        let divided = divided(at.values(), unit, at.numbers());
        let values = copy_or(&divided, at.values());
        let mut rows = vec![Row::blind(); at.arguments.queries];
        let starts = match at.form() {
            Form::LinearTime => {
                let head = self.head(at, values);
                let starts = scan::starts(&head, at.arguments.workspace);
                let rows = &mut rows[..];
                scan::read_all(&head, &starts, Out { output, rows });
                Some(starts)
            }
            _ => {
                self.attend_pairs(at, values, output, &mut rows);
                None
            }
        };
        multiply_finite(output, unit);
        KeptHead { rows, starts, unit }
    }

    fn attend_pairs(&self, at: &HeadAt<T>, values: Mat<T>, output: &mut [T], rows: &mut [Row<T>]) {
        let (pairs, keys, width) = (self.pairs(at), self.keys(at), at.arguments.value_width);
        let size = Self::blocks(at.arguments);
        let count = rows.len().div_ceil(size.queries);
        parallel::for_each_piece(
            (output, rows),
            count,
            |(output, rows), i, next| {
                let middle = ((next - i) * size.queries).min(rows.len());
                let (output, more_output) = output.split_at_mut(middle * width);
                let (rows, more_rows) = rows.split_at_mut(middle);
                ((output, rows), (more_output, more_rows))
            },
            |i, (output, rows)| {
                let features = &pairs.features;
                let start = i * size.queries;
                let own = start..start + rows.len();
                let q = Factors::new(features.of(at.queries().row_range(own)), features);
                for (n, k) in keys.iter().enumerate() {
                    let first = (start, n * size.keys);
                    let values = values.row_range(first.1..first.1 + k.block.rows);
                    let pairs = Pairs { first, ..pairs };
                    pairs.meet((&q, k), Values::new(values), rows, output);
                }
                for (output, row) in output.chunks_exact_mut(width).zip(rows) {
                    row.normalise(output);
                }
            },
        );
    }

    fn pull_sums(
        &self,
        at: &HeadAt<T>,
        values: Mat<T>,
        starts: &[Sums<T>],
        given: &Given<T>,
    ) -> Gradients<T> {
        let head = Head {
            trained: self.trained == Trained::Yes,
            ..self.head(at, values)
        };
        let sizes = [at.arguments.queries, at.kept()];
        let widths = (at.width(), at.arguments.value_width);
        let mut own = HeadGradients::without_exponents(at.numbers(), sizes, widths);
        let tasks = scan::backward(&head, starts, given, &mut own);
        let mut w = head.task().along;
        for task in tasks {
            w.iter_mut().zip(task.along).for_each(|(sum, x)| *sum += x);
        }
        Gradients {
            q: own.left,
            k: own.right,
            v: own.values,
            w,
        }
    }

    fn pull_pairs(&self, at: &HeadAt<T>, values: Mat<T>, given: Given<T>) -> Gradients<T> {
        let (pairs, mut keys) = (self.pairs(at), self.keys(at));
        let (features, numbers) = (&pairs.features, at.numbers());
        let zeros = |x: Mat<T>| numbers.filled(x.data().len(), T::zero());
        let (mut q, mut k, mut v) = (zeros(at.queries()), zeros(at.keys()), zeros(values));
        let wanted = if self.trained == Trained::Yes {
            self.shape[1] * self.shape[2]
        } else {
            0
        };
        let mut w = vec![T::zero(); wanted];
        let mut along_keys: Vec<_> = keys.iter().map(|k| features.pulled(k.block.rows)).collect();
        let (width, value_width) = (at.width(), at.arguments.value_width);
        let size = Self::blocks(at.arguments);
        for rows in blocks(0..given.rows.len(), size.queries) {
            let of_rows = Given {
                rows: &given.rows[rows.clone()],
                cotangent: given.cotangent.row_range(rows.clone()),
                deltas: &given.deltas[rows.clone()],
            };
            let block = features.of(at.queries().row_range(rows.clone()));
            let (mut own, mut along) = (Factors::new(block, features), features.pulled(rows.len()));
            for (n, (k, along_k)) in keys.iter().zip(&mut along_keys).enumerate() {
                let seen = n * size.keys..n * size.keys + k.block.rows;
                let first = (rows.start, seen.start);
                let dv = &mut v[seen.start * value_width..seen.end * value_width];
                let values = Values::new(values.row_range(seen));
                let pairs = Pairs { first, ..pairs };
                pairs.pull_back((&own, k), values, of_rows, (&mut along, along_k), dv);
            }
            let dq = &mut q[rows.start * width..rows.end * width];
            features.finish(&mut own.block, &mut along, dq, &mut w);
        }
        for ((k_own, along), dk) in keys
            .iter_mut()
            .zip(&mut along_keys)
            .zip(k.chunks_mut(size.keys.saturating_mul(width)))
        {
            features.finish(&mut k_own.block, along, dk, &mut w);
        }
        Gradients { q, k, v, w }
    }

    /// Writes the gradients of one head; returns those along its frequencies, if they are trained.
    fn pull_head(
        &self,
        at: &HeadAt<T>,
        kept: &KeptHead<T>,
        [output, cotangent]: [Mat<T>; 2],
        [q, k, v]: [&mut [T]; 3],
    ) -> Vec<T> {
        let numbers = at.numbers();
        let of = |x: Mat<T>| scaling::log2_largest(x.data());
        // Cotangents are multiplied with the inverse of a faint product, with frequencies, queries and keys.
        let others = 60.0 + of(at.queries()).max(of(at.keys())).max(0.0) + 8.0;
        let mut units = Units::of(at.values(), cotangent, others);
        units.values = units.values.max(kept.unit);
        let copies = (
            divided(at.values(), units.values, numbers),
            divided(output, units.values, numbers),
            divided(cotangent, units.cotangents, numbers),
        );
        let values = copy_or(&copies.0, at.values());
        let (output, cotangent) = (copy_or(&copies.1, output), copy_or(&copies.2, cotangent));
        let rows = 0..output.shape().0;
        let deltas: Vec<T> = rows.map(|i| dot(output.row(i), cotangent.row(i))).collect();
        let given = Given {
            rows: &kept.rows,
            cotangent,
            deltas: &deltas,
        };
        let g = match &kept.starts {
            None => self.pull_pairs(at, values, given),
            Some(starts) => {
                let more = units.values - kept.unit;
                let divided: Vec<_>;
                let starts = match more {
                    0 => &starts[..],
                    more => {
                        divided = starts.iter().map(|x| x.with_divided_values(more)).collect();
                        &divided
                    }
                };
                self.pull_sums(at, values, starts, &given)
            }
        };
        let write = |out: &mut [T], g: &[T], unit| {
            fill_multiplied(&mut out[..g.len()], unit, |i| g[i].as_f64());
        };
        write(q, &g.q, units.product());
        write(k, &g.k, units.product());
        write(v, &g.v, units.cotangents);
        let mut w = vec![T::zero(); g.w.len()];
        write(&mut w, &g.w, units.product());
        w
    }
}

/// Positions of a block.
const BLOCK: usize = scan::BLOCK;

impl<T: Real> Attend<T> for RandomFeatures<T> {
    fn any(&self) -> &dyn Any {
        self
    }

    fn validate(&self, _: usize, heads: usize, width: usize) -> Result<(), Error> {
        self.map.validate()?;
        argument::not_empty("frequencies w", &self.shape)?;
        let fitting = [heads, self.shape[1], width];
        Ok(argument::shape("frequencies w", &fitting, &self.shape)?)
    }

    fn has_logits(&self) -> bool {
        false
    }

    fn linear_form(&self) -> Option<LinearForm> {
        let features = self.map.features(self.shape[1]);
        Some(LinearForm::Features { features })
    }

    fn attend_once(&self, call: &Arguments<T>, output: Unwritten<T>) {
        drop(self.attend(call, output));
    }

    fn attend(&self, call: &Arguments<T>, output: Unwritten<T>) -> State {
        let output = output.zeros();
        let size = call.queries * call.value_width;
        let heads = parallel::map_chunks(output, size, |h, output| {
            self.attend_head(&call.at(h), output)
        });
        Box::new(Kept { heads })
    }

    fn weights(&self, call: &Arguments<T>) -> Array4<T> {
        let of_head = |h| {
            let at = call.at(h);
            let (pairs, kept) = (self.pairs(&at), at.kept());
            let mut weights = ndarray::Array2::zeros((call.queries, call.keys));
            if kept > 0 {
                let features = pairs.features;
                let q = Factors::new(features.of(at.queries()), &features);
                let k = Factors::new(features.of(at.keys()), &features);
                let own = pairs.normalised(&q, &k);
                let own = ArrayView2::from_shape((call.queries, kept), &own);
                weights
                    .slice_mut(s![.., ..kept])
                    .assign(&own.expect("a row a query"));
            }
            weights
        };
        let heads = parallel::map(call.all_heads(), of_head);
        let views: Vec<_> = heads.iter().map(|x| x.view()).collect();
        let all = ndarray::stack(Axis(0), &views).expect("one shape");
        let shape = call.shape(call.queries, call.keys);
        all.into_shape_with_order(shape).expect("a slab a head")
    }

    fn pull_back(
        &self,
        call: &Arguments<T>,
        state: &State,
        output: ArrayView4<T>,
        cotangent: ArrayView4<T>,
    ) -> AttentionGradients<T> {
        let kept: &Kept<T> = state.downcast_ref().expect("kept by this kernel");
        let trained = self.trained == Trained::Yes;
        let [heads, count, width] = self.shape;
        let zeros = trained.then(|| PointsGradients {
            w1: Array4::zeros((1, heads, count, width)),
            w2: None,
        });
        over_heads(call, [output, cotangent], zeros, |h, given, out| {
            let w = self.pull_head(&call.at(h), &kept.heads[h], given, out);
            Along {
                points: if trained { vec![w] } else { Vec::new() },
                bias: Vec::new(),
            }
        })
    }

    fn memory(&self, _: usize, form: Form) -> Box<dyn Memory<T>> {
        Box::new(decode::HeadMemory::<T>::new(form))
    }

    fn decode(
        &self,
        call: &Arguments<T>,
        heads: Range<usize>,
        memory: &mut dyn Memory<T>,
        out: Option<&mut [T]>,
    ) {
        let memory: &mut dyn Any = memory;
        let memory = memory.downcast_mut().expect("made by this kernel");
        decode::decode(self, &call.at(heads.start), memory, out);
    }

    fn reordered(&self, _: &[usize]) -> Option<Arc<dyn Attend<T>>> {
        None
    }
}
