//! Scans: a state that positions update one after the other.

use crate::call::{Call, HeadAt, Inputs, blocks, copy_or};
use crate::gradients::{Along, Gradients, Wanted, over_heads};
use crate::scan::{Position, PositionGradients, Scan};
use crate::{Error, Shape};
use bochner_numerics::memory::Unwritten;
use bochner_numerics::{Mat, Real, parallel};
use ndarray::ArrayView4;
use std::ops::Range;

/// Positions between two states that are saved.
const CHUNK: usize = 64;

/// The states at the chunks of each head.
pub(crate) type ScanState<T> = Vec<Vec<T>>;

/// One head on its way.
struct Head<'a, T: Real> {
    scan: &'a dyn Scan<T>,
    at: HeadAt<'a, T>,
    inputs: Inputs<'a, T>,
    /// The numbers in the state.
    size: usize,
}

impl<'a, T: Real> Head<'a, T> {
    fn new(scan: &'a dyn Scan<T>, at: HeadAt<'a, T>) -> Result<Self, Error> {
        let shape = at.call.shape;
        if shape.queries != shape.keys {
            return Err(Error::Unsupported {
                what: "a scan with another number of queries than of keys",
                instead: "as many queries as keys, or a decoder",
            });
        }
        Ok(Self {
            scan,
            at,
            inputs: at.sequence(true)?,
            size: scan.state(shape.width, shape.value_width),
        })
    }

    fn position(&self, t: usize) -> Position<'a, T> {
        let Inputs { q, k, v } = self.inputs;
        let (q, k, v) = (q.row(t), k.row(t), v.row(t));
        let head = self.at.head();
        Position { head, q, k, v }
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
            .flat_map(|(start, end)| blocks(start..end, CHUNK))
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
fn step<T: Real>(
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
    heads.into_iter().collect()
}

pub(crate) fn pull_back<T: Real>(
    scan: &dyn Scan<T>,
    call: &Call<T>,
    state: &[Vec<T>],
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
            let cotangent = copy_or(&of_cotangent, cotangent);
            let parameters = Head::new(scan, at)?.pull(&state[at.h], cotangent, out);
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
    state: &mut Vec<T>,
    mut output: Option<&mut [T]>,
) -> Result<(), Error> {
    let (shape, head) = (at.call.shape, at.head());
    if state.is_empty() {
        state.resize(scan.state(shape.width, shape.value_width), T::zero());
        scan.start(head, state);
    }
    let mut room = vec![T::zero(); shape.value_width];
    for t in 0..inputs.k.shape().0 {
        let out = match &mut output {
            Some(output) => &mut output[t * shape.value_width..][..shape.value_width],
            None => &mut room,
        };
        let (k, v) = (inputs.k.row(t), inputs.v.row(t));
        // Positions that are pushed have no queries.
        let q = if inputs.q.shape().0 > t {
            inputs.q.row(t)
        } else {
            k
        };
        step(scan, Position { head, q, k, v }, state, out)
            .map_err(|column| at.scan_error(t, column))?;
    }
    Ok(())
}
