//! Scans: attention by a state that positions update one after the other.

use crate::attend::{Gradients, Wanted};
use crate::call::{Call, HeadAt, Inputs};
use crate::pairwise::{Along, over_heads};
use crate::{Error, Shape};
use bochner_numerics::memory::Unwritten;
use bochner_numerics::{Mat, Real, parallel};
use ndarray::ArrayView4;
use std::fmt::Debug;
use std::ops::Range;

/// A position of one head.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a, T> {
    /// The head.
    pub head: usize,
    /// The query, `[d]`.
    pub q: &'a [T],
    /// The key, `[d]`.
    pub k: &'a [T],
    /// The value, `[dv]`.
    pub v: &'a [T],
}

/// Gradients along a position and along the scan's parameters, to be added to.
#[derive(Debug)]
pub struct PositionGradients<'a, T> {
    /// Along the query.
    pub q: &'a mut [T],
    /// Along the key.
    pub k: &'a mut [T],
    /// Along the value.
    pub v: &'a mut [T],
    /// Along the parameters of the head.
    pub parameters: &'a mut [T],
}

/// Attention without pairs: a state of constant size that each position reads and updates, such as a moving average or
/// retention.
///
/// Training, decoding in constant memory, lengths and packed sequences follow from a step and its gradient. Sequences
/// are causal, with as many queries as keys.
///
/// ```
/// use bochner_engine::{Position, PositionGradients, Scan};
///
/// /// The mean of the values so far with exponential forgetting, $s_t = \lambda s_{t - 1} + v_t$.
/// #[derive(Debug)]
/// struct Forgetting(f64);
///
/// impl Scan<f64> for Forgetting {
///     fn state(&self, _width: usize, value_width: usize) -> usize {
///         value_width
///     }
///
///     fn step(&self, at: Position<f64>, state: &mut [f64], out: &mut [f64]) {
///         for ((s, &v), out) in state.iter_mut().zip(at.v).zip(out) {
///             *s = self.0 * *s + v;
///             *out = *s;
///         }
///     }
///
///     fn pull(
///         &self,
///         _: Position<f64>,
///         _before: &[f64],
///         cotangent: &[f64],
///         state: &mut [f64],
///         gradients: PositionGradients<f64>,
///     ) {
///         for ((s, &c), v) in state.iter_mut().zip(cotangent).zip(gradients.v) {
///             let along = *s + c;
///             *v += along;
///             *s = self.0 * along;
///         }
///     }
/// }
/// ```
pub trait Scan<T: Real>: Debug + Send + Sync + 'static {
    /// Checks the settings against the sizes of a call.
    ///
    /// # Errors
    /// Whatever does not fit.
    fn check(&self, _shape: &Shape) -> Result<(), Error> {
        Ok(())
    }

    /// The numbers in the state of one head.
    fn state(&self, width: usize, value_width: usize) -> usize;

    /// The numbers of each head's parameters.
    fn parameters(&self) -> usize {
        0
    }

    /// Writes the state of a head before its first position, which holds zeros so far.
    fn start(&self, _head: usize, _state: &mut [T]) {}

    /// Updates the state by a position, and writes all numbers of the position's output, `[dv]`.
    fn step(&self, at: Position<T>, state: &mut [T], out: &mut [T]);

    /// Pulls gradients back through a step: `state` holds the gradient along the state after it, which is replaced by
    /// that along the state `before` it; `cotangent` is the gradient along the output.
    fn pull(
        &self,
        at: Position<T>,
        before: &[T],
        cotangent: &[T],
        state: &mut [T],
        gradients: PositionGradients<T>,
    );

    /// Adds the gradient along the parameters that the state before the first position has, given that along this state.
    fn pull_start(&self, _head: usize, _state: &[T], _parameters: &mut [T]) {}
}

/// Positions between two states that are saved.
const CHUNK: usize = 64;

/// The states at the chunks of each head.
#[derive(Clone, Debug)]
pub(crate) struct ScanState<T> {
    heads: Vec<Vec<T>>,
}

/// One head on its way.
struct Head<'a, T: Real> {
    scan: &'a dyn Scan<T>,
    at: HeadAt<'a, T>,
    q: Mat<'a, T>,
    k: Mat<'a, T>,
    v: Mat<'a, T>,
    /// The numbers in the state.
    size: usize,
}

impl<'a, T: Real> Head<'a, T> {
    fn new(scan: &'a dyn Scan<T>, at: HeadAt<'a, T>) -> Result<Self, Error> {
        let Shape {
            width, value_width, ..
        } = at.call.shape;
        let Shape { queries, keys, .. } = at.call.shape;
        if queries != keys {
            return Err(Error::Unsupported {
                what: "a scan with another number of queries than of keys",
                instead: "as many queries as keys, or a decoder",
            });
        }
        let [q, k, v] = at.sequence()?;
        Ok(Self {
            scan,
            at,
            q,
            k,
            v,
            size: scan.state(width, value_width),
        })
    }

    fn position(&self, t: usize) -> Position<'a, T> {
        Position {
            head: self.at.head(),
            q: self.q.row(t),
            k: self.k.row(t),
            v: self.v.row(t),
        }
    }

    /// The chunks of each packed sequence, in order.
    fn chunks(&self) -> Vec<Range<usize>> {
        let (mask, kept) = (&self.at.call.settings.mask, self.at.kept());
        let ends: Vec<_> = mask
            .packed_ends()
            .unwrap_or(&[kept])
            .iter()
            .map(|&end| end.min(kept))
            .collect();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let sequences = starts.zip(ends.iter().copied());
        sequences
            .flat_map(|(start, end)| crate::call::blocks(start..end, CHUNK))
            .collect()
    }

    fn starts_at(&self, t: usize) -> bool {
        let ends = self.at.call.settings.mask.packed_ends();
        t == 0 || ends.is_some_and(|ends| ends.contains(&t))
    }

    /// Writes the output of all positions; returns the states at the chunks.
    fn attend(&self, output: &mut [T]) -> Result<Vec<T>, Error> {
        let width = self.at.call.shape.value_width;
        let (mut state, mut saved) = (vec![T::zero(); self.size], Vec::new());
        for chunk in self.chunks() {
            if self.starts_at(chunk.start) {
                state.fill(T::zero());
                self.scan.start(self.at.head(), &mut state);
            }
            saved.extend_from_slice(&state);
            for t in chunk {
                step(
                    self.scan,
                    self.position(t),
                    &mut state,
                    &mut output[t * width..][..width],
                )
                .map_err(|column| self.at.scan_error(t, column))?;
            }
        }
        Ok(saved)
    }

    /// Writes the gradients along all positions; returns those along the parameters.
    fn pull(&self, saved: &[T], cotangent: Mat<T>, [dq, dk, dv]: [&mut [T]; 3]) -> Vec<T> {
        let Shape {
            width, value_width, ..
        } = self.at.call.shape;
        let mut parameters = vec![T::zero(); self.scan.parameters()];
        let (mut along, mut out) = (vec![T::zero(); self.size], vec![T::zero(); value_width]);
        for (n, chunk) in self.chunks().into_iter().enumerate().rev() {
            let mut states = saved[n * self.size..][..self.size].to_vec();
            for t in chunk.clone() {
                let mut state = states[states.len() - self.size..].to_vec();
                self.scan.step(self.position(t), &mut state, &mut out);
                states.extend_from_slice(&state);
            }
            for t in chunk.clone().rev() {
                let before = &states[(t - chunk.start) * self.size..][..self.size];
                let gradients = PositionGradients {
                    q: &mut dq[t * width..][..width],
                    k: &mut dk[t * width..][..width],
                    v: &mut dv[t * value_width..][..value_width],
                    parameters: &mut parameters,
                };
                self.scan.pull(
                    self.position(t),
                    before,
                    cotangent.row(t),
                    &mut along,
                    gradients,
                );
            }
            if self.starts_at(chunk.start) {
                self.scan
                    .pull_start(self.at.head(), &along, &mut parameters);
                along.fill(T::zero());
            }
        }
        parameters
    }
}

/// Takes a step, and checks that all numbers were written. The error is the column that was not.
pub(crate) fn step<T: Real>(
    scan: &dyn Scan<T>,
    at: Position<T>,
    state: &mut [T],
    out: &mut [T],
) -> Result<(), usize> {
    out.fill(T::nan());
    scan.step(at, state, out);
    match out.iter().position(|x| !x.is_finite()) {
        Some(column) => Err(column),
        None => Ok(()),
    }
}

pub(crate) fn attend<T: Real>(
    scan: &dyn Scan<T>,
    call: &Call<T>,
    output: Unwritten<T>,
) -> Result<ScanState<T>, Error> {
    let size = call.shape.queries * call.shape.value_width;
    let heads = parallel::map_chunks(output.zeros(), size, |h, output| {
        Head::new(scan, call.at(h))?.attend(output)
    });
    Ok(ScanState {
        heads: heads.into_iter().collect::<Result<_, _>>()?,
    })
}

pub(crate) fn pull_back<T: Real>(
    scan: &dyn Scan<T>,
    call: &Call<T>,
    state: &ScanState<T>,
    given: [ArrayView4<T>; 2],
    wanted: Wanted,
) -> Result<Gradients<T>, Error> {
    over_heads(
        call,
        given,
        [1, scan.parameters()],
        wanted,
        |at, [_, cotangent], out| {
            // Positions that are padding have no output.
            let cotangent = cotangent.row_range(0..at.kept());
            let of_cotangent = at.admit_cotangent(cotangent)?;
            let cotangent = crate::call::copy_or(&of_cotangent, cotangent);
            let parameters = Head::new(scan, at)?.pull(&state.heads[at.h], cotangent, out);
            Ok(Along {
                parameters,
                ..Along::default()
            })
        },
    )
}

/// Takes the next positions of a head; with an output, writes theirs.
pub(crate) fn decode<T: Real>(
    scan: &dyn Scan<T>,
    at: HeadAt<T>,
    inputs: &Inputs<T>,
    (state, length): (&mut Vec<T>, &mut usize),
    mut output: Option<&mut [T]>,
) -> Result<(), Error> {
    let Shape {
        width, value_width, ..
    } = at.call.shape;
    if state.is_empty() {
        state.resize(scan.state(width, value_width), T::zero());
        scan.start(at.head(), state);
    }
    let mut room = vec![T::zero(); value_width];
    for t in 0..inputs.k.shape().0 {
        let out = output
            .as_deref_mut()
            .map(|output| &mut output[t * value_width..][..value_width]);
        let q = if inputs.q.shape().0 > t {
            inputs.q.row(t)
        } else {
            inputs.k.row(t)
        };
        let position = Position {
            head: at.head(),
            q,
            k: inputs.k.row(t),
            v: inputs.v.row(t),
        };
        step(scan, position, state, out.unwrap_or(&mut room))
            .map_err(|column| at.scan_error(t, column))?;
        *length += 1;
    }
    Ok(())
}
