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

pub(crate) use decode::{FeaturesCache, decode};

use crate::attend::{Gradients, Wanted};
use crate::call::{Call, HeadAt, Inputs, blocks, copy_or};
use crate::kernel::HeadRows;
use crate::lanes::dot;
use crate::linear::{self, BLOCK, Course};
use crate::pairwise::{Along, over_heads};
use crate::{Blocks, Error, Form, Shape};
use block::Features;
use bochner_numerics::elementary::max_norm;
use bochner_numerics::memory::Unwritten;
use bochner_numerics::{Mat, Real, parallel};
use head::{Head, Out};
use ndarray::{Array4, ArrayView4};
use pairs::{Factors, Given, Pairs, Row};
use std::fmt::Debug;
use sums::Sums;

/// The form of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureForm {
    /// Numbers that are not negative, such as elu + 1.
    Values,
    /// Exponentials of logarithms that may be large; each feature has a reference of its own.
    Exponentials,
    /// Exponentials times numbers of either sign.
    SignedExponentials,
}

/// Features $\phi(q)$, $\phi(k)$ whose inner products are the weights of pairs: attention in linear time, causal or not,
/// with a cache of constant size.
///
/// ```
/// use bochner_engine::{FeatureForm, FeatureMap, HeadRows};
///
/// /// $\operatorname{elu}(x) + 1$ (Katharopoulos et al. 2020).
/// #[derive(Debug)]
/// struct Elu {
///     width: usize,
/// }
///
/// impl FeatureMap<f64> for Elu {
///     fn features(&self) -> usize {
///         self.width
///     }
///
///     fn map(&self, rows: HeadRows<f64>, values: &mut [f64], _logs: &mut [f64]) {
///         let numbers = values.iter_mut().zip(rows.x.data());
///         numbers.for_each(|(f, &x)| *f = if x > 0.0 { x + 1.0 } else { x.exp() });
///     }
///
///     fn pull(&self, _: HeadRows<f64>, values: &[f64], gradient: &[f64], out: &mut [f64], _: &mut [f64]) {
///         let all = out.iter_mut().zip(values).zip(gradient);
///         all.for_each(|((d, &f), &g)| *d += g * f.min(1.0));
///     }
/// }
/// ```
pub trait FeatureMap<T: Real>: Debug + Send + Sync + 'static {
    /// The number of features.
    fn features(&self) -> usize;

    /// The form of the features. Defaults to [`FeatureForm::Values`].
    fn form(&self) -> FeatureForm {
        FeatureForm::Values
    }

    /// Checks the settings against the sizes of a call.
    ///
    /// # Errors
    /// Whatever does not fit.
    fn check(&self, _shape: &Shape) -> Result<(), Error> {
        Ok(())
    }

    /// The numbers of each head's parameters.
    fn parameters(&self) -> usize {
        0
    }

    /// Writes the features $f_r e^{l_r}$ of some rows: the factors f as `values` and the logarithms l as `logs`, both
    /// `[n, features]`. There are no values to write for [`FeatureForm::Exponentials`], and no logarithms for
    /// [`FeatureForm::Values`].
    fn map(&self, rows: HeadRows<T>, values: &mut [T], logs: &mut [T]);

    /// Adds to `out`, `[n, d]`, the gradients along some rows, and to `parameters` that along the parameters of the head,
    /// given the gradient g along $f_r e^{l_r}$ over $e^{l_r}$: $\sum_r g_r (f_r' + f_r l_r')$.
    fn pull(
        &self,
        rows: HeadRows<T>,
        values: &[T],
        gradient: &[T],
        out: &mut [T],
        parameters: &mut [T],
    );
}

/// The numbers that a backward pass needs besides the output.
#[derive(Clone, Debug)]
pub(crate) struct FeaturesState<T: Real> {
    heads: Vec<HeadState<T>>,
}

#[derive(Clone, Debug)]
struct HeadState<T: Real> {
    rows: Vec<Row<T>>,
    /// The sums that the parts start from, in linear time.
    starts: Option<Vec<Sums<T>>>,
}

/// The gradients of one head: of queries, keys, values and parameters.
struct HeadGradients<T> {
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
    parameters: Vec<T>,
}

/// One head with its map.
#[derive(Clone, Copy)]
struct Mapped<'a, T: Real> {
    at: HeadAt<'a, T>,
    inputs: Inputs<'a, T>,
    features: Features<'a, T>,
}

impl<'a, T: Real> Mapped<'a, T> {
    fn new(map: &'a dyn FeatureMap<T>, at: HeadAt<'a, T>, inputs: Inputs<'a, T>) -> Self {
        Self {
            at,
            inputs,
            features: Features::new(map, &at),
        }
    }

    /// The head in linear time.
    fn in_linear_time(&self) -> Head<'a, T> {
        // A sum must not depend on how many examples there are.
        let (rows, heads) = (self.at.rows(), self.at.call.shape.heads);
        Head {
            features: self.features,
            inputs: self.inputs,
            rows,
            course: Course::new(&rows, self.at.kept(), heads, &self.at.workspace().pool()),
        }
    }

    fn pairs(&self) -> Pairs<'a, T> {
        Pairs {
            features: self.features,
            rows: self.at.rows(),
            dropout: self.at.dropout(),
            first: (0, 0),
        }
    }

    /// All keys as factors of pairs, a block each.
    fn keys(&self) -> Vec<Factors<T>> {
        let of_block = |rows| {
            Factors::new(
                self.features.of_keys(self.inputs.k.row_range(rows)),
                &self.features,
            )
        };
        let all = blocks(0..self.inputs.k.shape().0, block_sizes(self.at.call).keys);
        all.map(of_block).collect()
    }

    fn queries(&self, rows: std::ops::Range<usize>) -> Factors<T> {
        Factors::new(
            self.features.of_queries(self.inputs.q.row_range(rows)),
            &self.features,
        )
    }

    /// Attends; output rows hold zeros.
    fn attend(&self, output: &mut [T]) -> HeadState<T> {
        let mut rows = vec![Row::blind(); self.at.call.shape.queries];
        let starts = match self.at.form() {
            Form::LinearTime => {
                let head = self.in_linear_time();
                let starts = linear::starts(&head);
                linear::read_all(
                    &head,
                    &starts,
                    Out {
                        output,
                        rows: &mut rows,
                    },
                );
                Some(starts)
            }
            _ => {
                self.attend_pairs(output, &mut rows);
                None
            }
        };
        HeadState { rows, starts }
    }

    fn attend_pairs(&self, output: &mut [T], rows: &mut [Row<T>]) {
        let (pairs, keys, width) = (self.pairs(), self.keys(), self.at.call.shape.value_width);
        let size = block_sizes(self.at.call);
        parallel::for_each_piece(
            (output, &mut *rows),
            self.at.call.shape.queries.div_ceil(size.queries),
            |(output, rows), i, next| {
                let middle = ((next - i) * size.queries).min(rows.len());
                let (output, more_output) = output.split_at_mut(middle * width);
                let (rows, more_rows) = rows.split_at_mut(middle);
                ((output, rows), (more_output, more_rows))
            },
            |i, (output, rows)| {
                let start = i * size.queries;
                let q = self.queries(start..start + rows.len());
                for (n, k) in keys.iter().enumerate() {
                    let first = (start, n * size.keys);
                    let values = self.inputs.v.row_range(first.1..first.1 + k.block.rows);
                    Pairs { first, ..pairs }.meet((&q, k), values, rows, output);
                }
                output
                    .chunks_exact_mut(width)
                    .zip(rows)
                    .for_each(|(output, row)| row.normalise(output));
            },
        );
    }

    fn pull_sums(&self, starts: &[Sums<T>], given: &Given<T>) -> HeadGradients<T> {
        let Shape {
            queries,
            width,
            value_width,
            ..
        } = self.at.call.shape;
        let sizes = [queries, self.at.kept()];
        let numbers = self.at.numbers();
        let mut own =
            crate::pairwise::HeadGradients::without_terms(numbers, sizes, (width, value_width));
        let head = self.in_linear_time();
        let tasks = linear::backward(&head, starts, given, &mut own);
        let mut parameters = vec![T::zero(); self.features.map.parameters()];
        tasks
            .iter()
            .for_each(|task| crate::lanes::add(&mut parameters, &task.parameters));
        HeadGradients {
            q: own.left.to_vec(),
            k: own.right.to_vec(),
            v: own.values.to_vec(),
            parameters,
        }
    }

    fn pull_pairs(&self, given: &Given<T>) -> HeadGradients<T> {
        let (keys, chunks) = (self.keys(), self.at.chunks());
        let parts = parallel::map(chunks.len(), |i| {
            self.pull_chunk(&keys, chunks[i].clone(), given)
        });
        let mut parts = parts.into_iter();
        let (mut all, mut of_keys) = parts.next().expect("there are queries");
        for (part, more) in parts {
            all.q.extend_from_slice(&part.q);
            crate::lanes::add(&mut all.v, &part.v);
            crate::lanes::add(&mut all.parameters, &part.parameters);
            of_keys
                .iter_mut()
                .zip(&more)
                .for_each(|(sum, x)| crate::lanes::add(sum, x));
        }
        let size = block_sizes(self.at.call)
            .keys
            .saturating_mul(self.at.call.shape.width);
        for ((k, gradient), out) in keys.iter().zip(&of_keys).zip(all.k.chunks_mut(size)) {
            self.features
                .pull(&k.block, gradient, out, &mut all.parameters);
        }
        all
    }

    /// The gradients of a chunk of queries, those of the keys' features among them.
    fn pull_chunk(
        &self,
        keys: &[Factors<T>],
        chunk: std::ops::Range<usize>,
        given: &Given<T>,
    ) -> (HeadGradients<T>, Vec<Vec<T>>) {
        let Shape {
            width, value_width, ..
        } = self.at.call.shape;
        let size = block_sizes(self.at.call);
        let zeros = |n: usize| vec![T::zero(); n];
        let mut all = HeadGradients {
            q: zeros(chunk.len() * width),
            k: zeros(self.inputs.k.data().len()),
            v: zeros(self.inputs.v.data().len()),
            parameters: zeros(self.features.map.parameters()),
        };
        let mut of_keys: Vec<_> = keys.iter().map(|k| zeros(k.block.len())).collect();
        for rows in blocks(chunk.clone(), size.queries) {
            let own = self.queries(rows.clone());
            let mut of_rows = zeros(own.block.len());
            for (n, (k, of_key)) in keys.iter().zip(&mut of_keys).enumerate() {
                let seen = n * size.keys..n * size.keys + k.block.rows;
                let pairs = Pairs {
                    first: (rows.start, seen.start),
                    ..self.pairs()
                };
                let dv = &mut all.v[seen.start * value_width..seen.end * value_width];
                let values = self.inputs.v.row_range(seen);
                pairs.pull(
                    (&own, k),
                    values,
                    given.rows(&rows),
                    (&mut of_rows, of_key),
                    dv,
                );
            }
            let out =
                &mut all.q[(rows.start - chunk.start) * width..(rows.end - chunk.start) * width];
            self.features
                .pull(&own.block, &of_rows, out, &mut all.parameters);
        }
        (all, of_keys)
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
        let state = Mapped::new(map, at, admitted.inputs(&at)).attend(output);
        check_finite(&at, output).map(|()| state)
    });
    Ok(FeaturesState {
        heads: heads.into_iter().collect::<Result<_, _>>()?,
    })
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
        let mapped = Mapped::new(map, at, admitted.inputs(&at));
        if kept > 0 {
            let k = Factors::new(mapped.features.of_keys(mapped.inputs.k), &mapped.features);
            let own = mapped.pairs().normalised(&mapped.queries(0..queries), &k);
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
    state: &FeaturesState<T>,
    given: [ArrayView4<T>; 2],
    wanted: Wanted,
) -> Result<Gradients<T>, Error> {
    over_heads(
        call,
        given,
        [1, map.parameters()],
        wanted,
        |at, [output, cotangent], [q, k, v]| {
            let (admitted, of_cotangent) = (at.admit()?, at.admit_cotangent(cotangent)?);
            let cotangent = copy_or(&of_cotangent, cotangent);
            let mapped = Mapped::new(map, at, admitted.inputs(&at));
            let rows = 0..output.shape().0;
            let deltas: Vec<T> = rows.map(|i| dot(output.row(i), cotangent.row(i))).collect();
            let own = &state.heads[at.h];
            let given = Given {
                rows: &own.rows,
                cotangent,
                deltas: &deltas,
            };
            let gradients = match &own.starts {
                None => mapped.pull_pairs(&given),
                Some(starts) => mapped.pull_sums(starts, &given),
            };
            for (out, own) in [(q, &gradients.q), (k, &gradients.k), (v, &gradients.v)] {
                out[..own.len()].copy_from_slice(own);
            }
            Ok(Along {
                parameters: gradients.parameters,
                ..Along::default()
            })
        },
    )
}

/// Some rows of one head, as a map is given them.
fn rows_of<'a, T>(at: (usize, usize), side: crate::Side, x: Mat<'a, T>) -> HeadRows<'a, T> {
    HeadRows {
        example: at.0,
        head: at.1,
        side,
        x,
    }
}
