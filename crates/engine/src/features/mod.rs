//! Attention whose weights are inner products of features.
//!
//! Nothing is added to a normaliser or a feature: the output of a row is the exact quotient of two sums over
//! features. Whatever is subtracted from exponents cancels: for queries the row's largest, for keys the
//! largest of each feature among those that the row sees.

mod block;
mod decode;
mod head;
mod pairs;
mod sums;

pub(crate) use decode::{FeaturePositions, decode, decode_sums};
pub(crate) use sums::Sums;

use crate::call::{Call, HeadAt, Inputs, PairDropout, blocks, copy_or};
use crate::feature_map::FeatureMap;
use crate::gradients::{Along, Gradients, Wanted, over_heads};
use crate::linear::{self, BLOCK, Course};
use crate::mask::HeadMask;
use crate::normaliser::Row;
use crate::pairwise::{Cotangent, HeadGradients, OutputRows};
use crate::{Blocks, Error, Form, Shape};
use bochner_numerics::elementary::max_norm;
use bochner_numerics::memory::{Unwritten, overwritten_by};
use bochner_numerics::{Buffers, Mat, Real, parallel};
use head::LinearTime;
use ndarray::{Array4, ArrayView4};
use pairs::{Factors, normalise};
use std::ops::Range;

/// The numbers that a backward pass of all heads needs besides the output.
pub(crate) type FeaturesState<T> = Vec<HeadState<T>>;

/// The numbers that a backward pass of one head needs.
#[derive(Clone, Debug)]
pub(crate) struct HeadState<T> {
    rows: Vec<Row<T>>,
    /// The sums that the parts start from, in linear time.
    starts: Option<Vec<Sums<T>>>,
}

/// One head.
#[derive(Clone, Copy)]
struct Head<'a, T: Real> {
    map: &'a dyn FeatureMap<T>,
    at: HeadAt<'a, T>,
    inputs: Inputs<'a, T>,
    rows: HeadMask<'a>,
    dropout: Option<PairDropout>,
}

impl<'a, T: Real> Head<'a, T> {
    fn new(map: &'a dyn FeatureMap<T>, at: HeadAt<'a, T>, inputs: Inputs<'a, T>) -> Self {
        let (rows, dropout) = (at.rows(), at.dropout());
        Self {
            map,
            at,
            inputs,
            rows,
            dropout,
        }
    }

    fn numbers(&self) -> &'a Buffers<T> {
        self.at.numbers()
    }

    fn in_linear_time(self) -> LinearTime<'a, T> {
        // A sum must not depend on how many examples there are.
        let (heads, keys) = (self.at.call.shape.heads, self.inputs.k.shape().0);
        let course = Course::new(&self.rows, keys, heads, &self.at.workspace().pool());
        LinearTime { head: self, course }
    }

    /// All keys as factors of pairs, a block each.
    fn keys(&self) -> Vec<Factors<T>> {
        let all = blocks(0..self.inputs.k.shape().0, block_sizes(self.at.call).keys);
        all.map(|keys| Factors::new(self.of_keys(keys), self.numbers()))
            .collect()
    }

    fn queries(&self, queries: Range<usize>) -> Factors<T> {
        Factors::new(self.of_queries(queries), self.numbers())
    }

    fn attend(self, output: &mut [T]) -> HeadState<T> {
        let mut rows = vec![Row::new(0.0); self.at.call.shape.queries];
        let in_linear_time = self.at.form() == Form::LinearTime;
        let starts = overwritten_by(output, |output| {
            let out = OutputRows {
                output,
                rows: &mut rows,
            };
            if !in_linear_time {
                self.attend_pairs(out);
                return None;
            }
            let head = self.in_linear_time();
            let starts = linear::starts(&head);
            linear::read_all(&head, &starts, out);
            Some(starts)
        });
        HeadState { rows, starts }
    }

    fn attend_pairs(&self, out: OutputRows<T>) {
        let (keys, size) = (self.keys(), block_sizes(self.at.call).queries);
        let count = self.at.call.shape.queries;
        parallel::for_each_piece(
            out,
            count.div_ceil(size),
            |out, i, next| out.split_at((next - i) * size),
            |i, out| {
                let queries = i * size..i * size + out.rows.len();
                let output = out.output.zeros();
                self.meet_all(queries, keys.iter(), self.inputs.v, out.rows, output);
            },
        );
    }

    /// Attends from a block of queries to blocks of keys with their values.
    fn meet_all<'k>(
        &self,
        queries: Range<usize>,
        keys: impl Iterator<Item = &'k Factors<T>>,
        values: Mat<T>,
        rows: &mut [Row<T>],
        output: &mut [T],
    ) where
        T: 'k,
    {
        let (q, mut next) = (self.queries(queries.clone()), 0);
        for k in keys {
            let own = next..next + k.block.rows;
            let first = (queries.start, own.start);
            next = own.end;
            self.meet(first, (&q, k), values.row_range(own), rows, output);
        }
        normalise(output, rows);
    }

    /// Writes the gradients of queries, keys and values, given the sums that the parts start from; returns that of the
    /// parameters.
    fn pull_sums(&self, starts: &[Sums<T>], given: &Cotangent<T>, out: [&mut [T]; 3]) -> Vec<T> {
        let shape = self.at.call.shape;
        let (sizes, widths) = (
            [shape.queries, self.at.kept()],
            (shape.width, shape.value_width),
        );
        let mut all = HeadGradients::without_terms(self.numbers(), sizes, widths);
        let mut parameters = vec![T::zero(); self.map.parameters()];
        for task in linear::backward(&self.in_linear_time(), starts, given, &mut all) {
            crate::lanes::add(&mut parameters, &task.parameters);
        }
        for (out, own) in out.into_iter().zip([&all.left, &all.right, &all.values]) {
            out[..own.len()].copy_from_slice(own);
        }
        parameters
    }

    /// [`pull_sums`](Self::pull_sums), pair by pair.
    fn pull_all_pairs(&self, given: &Cotangent<T>, [dq, dk, dv]: [&mut [T]; 3]) -> Vec<T> {
        let (keys, chunks) = (self.keys(), self.at.chunks());
        let part = |i: usize| self.pull_chunk(&keys, chunks[i].clone(), given);
        let parts = parallel::map(chunks.len(), part).into_iter();
        let mut all = parts
            .reduce(HeadGradients::join)
            .expect("there are queries");
        dq.copy_from_slice(&all.left);
        dv[..all.values.len()].copy_from_slice(&all.values);
        let (mut of_keys, mut dk) = (&all.right[..], dk);
        for k in &keys {
            let (gradient, others) = of_keys.split_at(k.block.len());
            let (own, more) = dk.split_at_mut(k.block.rows * self.at.call.shape.width);
            self.pull_block(&k.block, gradient, own, &mut all.parameters);
            (of_keys, dk) = (others, more);
        }
        all.parameters
    }

    /// The gradients of a chunk of queries, of the features of the keys, and of values.
    fn pull_chunk(
        &self,
        keys: &[Factors<T>],
        chunk: Range<usize>,
        given: &Cotangent<T>,
    ) -> HeadGradients<T> {
        let (shape, size) = (self.at.call.shape, block_sizes(self.at.call));
        let (sizes, widths) = (
            [0, self.at.kept()],
            (self.map.features(), shape.value_width),
        );
        let mut all = HeadGradients::without_terms(self.numbers(), sizes, widths);
        all.left = self.numbers().filled(chunk.len() * shape.width, T::zero());
        all.parameters.resize(self.map.parameters(), T::zero());
        let of_queries = all
            .left
            .chunks_mut(size.queries.saturating_mul(shape.width));
        for (rows, out) in blocks(chunk, size.queries).zip(of_queries) {
            let own = self.queries(rows.clone());
            let mut of_rows = vec![T::zero(); own.block.len()];
            let (mut of_keys, mut dv, mut next) = (&mut all.right[..], &mut all.values[..], 0);
            for k in keys {
                let (gradient, others) = of_keys.split_at_mut(k.block.len());
                let (of_values, more) = dv.split_at_mut(k.block.rows * shape.value_width);
                let (first, values) = (next, self.inputs.v.row_range(next..next + k.block.rows));
                let (pair, along) = ((&own, k), (&mut of_rows[..], gradient));
                self.pull_pairs((rows.start, first), pair, values, given, along, of_values);
                (of_keys, dv, next) = (others, more, next + k.block.rows);
            }
            self.pull_block(&own.block, &of_rows, out, &mut all.parameters);
        }
        all
    }
}

/// The sizes of blocks of pairs: as many positions as linear time sums up at once, unless the settings say otherwise.
fn block_sizes<T: Real>(call: &Call<T>) -> Blocks {
    match call.settings.form {
        Form::Blocked(_) => call.blocks,
        _ => Blocks {
            queries: BLOCK,
            keys: BLOCK,
        },
    }
}

pub(crate) fn attend<T: Real>(
    map: &dyn FeatureMap<T>,
    call: &Call<T>,
    output: Unwritten<T>,
) -> Result<FeaturesState<T>, Error> {
    let size = call.shape.queries * call.shape.value_width;
    let heads = parallel::map_chunks(output.zeros(), size, |h, output| {
        let at = call.at(h);
        let admitted = at.admit()?;
        let state = Head::new(map, at, admitted.inputs(&at)).attend(output);
        check_finite(&at, output).map(|()| state)
    });
    heads.into_iter().collect()
}

/// Checks what a head's features give.
fn check_finite<T: Real>(at: &HeadAt<T>, numbers: &[T]) -> Result<(), Error> {
    match max_norm(numbers).is_finite() {
        true => Ok(()),
        false => Err(Error::Features {
            example: at.example(),
            head: at.head(),
        }),
    }
}

pub(crate) fn weights<T: Real>(
    map: &dyn FeatureMap<T>,
    call: &Call<T>,
) -> Result<Array4<T>, Error> {
    let Shape {
        batch,
        heads,
        queries,
        keys,
        ..
    } = call.shape;
    let mut weights = vec![T::zero(); call.all_heads() * queries * keys];
    let results = parallel::map_chunks(&mut weights, queries * keys, |h, weights| {
        let (at, kept) = (call.at(h), call.at(h).kept());
        let admitted = at.admit()?;
        let head = Head::new(map, at, admitted.inputs(&at));
        if kept > 0 {
            let k = Factors::new(head.of_keys(0..kept), head.numbers());
            let own = head.normalised(&head.queries(0..queries), &k);
            let rows = weights.chunks_exact_mut(keys).zip(own.chunks_exact(kept));
            rows.for_each(|(row, own)| row[..kept].copy_from_slice(own));
        }
        check_finite(&at, weights)
    });
    results.into_iter().collect::<Result<(), Error>>()?;
    Ok(Array4::from_shape_vec([batch, heads, queries, keys], weights).expect("one slab a head"))
}

pub(crate) fn pull_back<T: Real>(
    map: &dyn FeatureMap<T>,
    call: &Call<T>,
    state: &[HeadState<T>],
    given: [ArrayView4<T>; 2],
    wanted: Wanted,
) -> Result<Gradients<T>, Error> {
    let parameters = [1, map.parameters()];
    over_heads(
        call,
        given,
        parameters,
        wanted,
        |at, [output, cotangent], out| {
            let (admitted, of_cotangent) = (at.admit()?, at.admit_cotangent(cotangent)?);
            let (head, own) = (Head::new(map, at, admitted.inputs(&at)), &state[at.h]);
            let given = Cotangent {
                rows: &own.rows,
                output,
                cotangent: copy_or(&of_cotangent, cotangent),
            };
            let parameters = match &own.starts {
                None => head.pull_all_pairs(&given, out),
                Some(starts) => head.pull_sums(starts, &given, out),
            };
            Ok(Along {
                parameters,
                ..Along::default()
            })
        },
    )
}
