//! The linear maps around the heads, on arrays: what the tape, inference and decoding share.

use super::config::Layout;
use super::row_positions::{Alignment, RowPositions, for_each_place};
use crate::mechanism::MOST;
use crate::{Bias, Error, Mask, card::Stream, mechanism::Streams};
use bochner_engine::PositionCode;
use bochner_numerics::row_major::{RowMajor, write_row_major};
use bochner_numerics::{Buffer, Buffers, Real, argument, parallel};
use bochner_ops::PackedAffine;
use ndarray::{ArrayView3, ArrayView4, ArrayViewMut3, ArrayViewMut4, Axis};
use std::sync::Arc;

/// The maps to the streams, in their order, and from all heads to the output.
#[derive(Clone, Debug)]
pub(super) struct Maps<T> {
    pub(super) layout: Layout,
    maps: Vec<PackedAffine<T>>,
    /// The position bias.
    pub(super) bias: Option<Bias<T>>,
    /// The code of positions in queries and keys.
    code: Option<Code<T>>,
}

/// A code of positions that parts of a layer share.
pub(super) type Code<T> = Arc<dyn PositionCode<T>>;

/// The heads of a stream, or of the attended values: `[B, M, T, w]`, in row-major order.
#[derive(Debug)]
pub(super) struct Heads<T> {
    data: Buffer<T>,
    shape: [usize; 4],
}

/// The heads of each stream; `None` after the last one.
pub(super) type Mapped<T> = [Option<Heads<T>>; MOST];

impl<T: Real> Maps<T> {
    /// The maps with these weights and biases, the table of the position bias and the position code, if there are any.
    pub(super) fn new(
        layout: Layout,
        parameters: &[(&[T], Option<&[T]>)],
        table: Option<&[T]>,
        code: Option<Code<T>>,
    ) -> Result<Self, Error> {
        let maps = layout.maps().zip(parameters);
        let maps = maps
            .map(|((_, [outputs, _]), &(weight, bias))| PackedAffine::new(weight, outputs, bias));
        Ok(Self {
            maps: maps.collect(),
            bias: layout.position_bias.bias(layout.heads, table)?,
            code,
            layout,
        })
    }

    /// Sets the positions of whole sequences of so many queries and keys under the mask of a pass.
    pub(super) fn place(&self, positions: &mut RowPositions, mask: &Mask, sizes: [usize; 2]) {
        let compared = mask.is_causal() || mask.has_starts() || self.bias.is_some();
        let alignment = if compared {
            Alignment::Ends
        } else {
            Alignment::Starts
        };
        positions.set_whole(mask, alignment, sizes);
    }

    /// The heads of the streams of each sequence that is given, `[B, T, Embed]`, with their positions encoded.
    pub(super) fn heads<'a>(
        &self,
        query: impl Into<Option<ArrayView3<'a, T>>>,
        memory: impl Into<Option<ArrayView3<'a, T>>>,
        positions: &RowPositions,
        buffers: &Buffers<T>,
    ) -> Mapped<T> {
        let [query, memory] = [query.into(), memory.into()]
            .map(|x| Some(RowMajor::new(x?.insert_axis(Axis(0)), buffers)));
        let (mut streams, mut maps) = (self.layout.streams.iter(), self.maps.iter());
        [(); MOST].map(|()| {
            let &stream = streams.next()?;
            let width = self.layout.width(stream);
            let x = if stream.is_of_queries() {
                &query
            } else {
                &memory
            };
            // A sequence that is not given has no heads, but its map comes before the next one's.
            let map = (stream != Stream::Input).then(|| maps.next()).flatten();
            let x = x.as_ref()?.view();
            let (_, batch, time, _) = x.dim();
            let heads = self.layout.heads_of(stream);
            let mut mapped = buffers.any(batch * time * heads * width);
            match map {
                Some(map) => map.apply(x.to_slice()?, buffers, &mut mapped, |_| ()),
                None => mapped.copy_from_slice(x.to_slice()?),
            }
            let mut split = Heads::split(mapped, [batch, time, heads, width], buffers);
            if let (Some(code), Some(positions)) = (&self.code, positions.of(stream)) {
                for_each_place(
                    &mut split.data,
                    split.shape,
                    positions,
                    |positions, rows| {
                        code.encode(positions, width, rows);
                    },
                );
            }
            Some(split)
        })
    }

    /// Writes what the last map makes of the attended values, `[B, M, T, dv]`, to `output`, `[B, T, Embed]`;
    /// returns what it has read, `[B, T, M, dv]`.
    pub(super) fn output(
        &self,
        attended: ArrayView4<T>,
        buffers: &Buffers<T>,
        output: &mut [T],
    ) -> Result<Buffer<T>, Error> {
        let (batch, _, time, _) = attended.dim();
        let Layout {
            heads, value_width, ..
        } = self.layout;
        let shape = [batch, heads, time, value_width];
        argument::shape("the mechanism's output", &shape, attended.shape())?;
        let joined = join(attended, buffers);
        let map = self.maps.last().expect("a map to the output");
        map.apply(&joined, buffers, output, |_| ());
        Ok(joined)
    }

    /// [`Maps::output`] to an array in any order.
    pub(super) fn write(
        &self,
        attended: ArrayView4<T>,
        buffers: &Buffers<T>,
        output: ArrayViewMut3<T>,
    ) -> Result<(), Error> {
        let mut done = Ok(());
        write_row_major(output, buffers, |output| {
            done = self.output(attended, buffers, output).map(|_| ());
        });
        done
    }
}

impl<T: Real> Heads<T> {
    /// Room for heads of this shape.
    pub(super) fn any(shape: [usize; 4], buffers: &Buffers<T>) -> Self {
        Self {
            data: buffers.any(shape.iter().product()),
            shape,
        }
    }

    /// The heads of rows `[B, T, M, w]`.
    pub(super) fn split(rows: Buffer<T>, shape: [usize; 4], buffers: &Buffers<T>) -> Self {
        let [batch, time, heads, width] = shape;
        let mut split = Self {
            data: rows,
            shape: [batch, heads, time, width],
        };
        if time > 1 && heads > 1 {
            let mut data = buffers.any(split.data.len());
            swap(&split.data, shape, &mut data);
            split.data = data;
        }
        split
    }

    pub(super) fn view(&self) -> ArrayView4<'_, T> {
        ArrayView4::from_shape(self.shape, &self.data).expect("made in this shape")
    }

    pub(super) fn view_mut(&mut self) -> ArrayViewMut4<'_, T> {
        ArrayViewMut4::from_shape(self.shape, &mut self.data).expect("made in this shape")
    }
}

/// The rows `[B, T, M, w]` of heads `[B, M, T, w]`.
pub(super) fn join<T: Real>(heads: ArrayView4<T>, buffers: &Buffers<T>) -> Buffer<T> {
    let shape = heads.dim().into();
    let heads = RowMajor::new(heads, buffers);
    let heads = heads.view().to_slice().expect("row-major");
    let mut rows = buffers.any(heads.len());
    swap(heads, shape, &mut rows);
    rows
}

/// Writes `x`, `[B, n, m, w]`, to `y` as `[B, m, n, w]`.
fn swap<T: Real>(x: &[T], [_, n, m, width]: [usize; 4], y: &mut [T]) {
    /// Numbers that one task copies, about.
    const PIECE: usize = 1 << 14;
    let block = n * width;
    let blocks = (PIECE / block).max(1);
    parallel::for_each_chunk(y, blocks * block, |piece, y| {
        for (number, y) in (piece * blocks..).zip(y.chunks_exact_mut(block)) {
            let (example, j) = (number / m, number % m);
            for (i, y) in y.chunks_exact_mut(width).enumerate() {
                y.copy_from_slice(&x[((example * n + i) * m + j) * width..][..width]);
            }
        }
    });
}

impl Layout {
    /// Returns the streams of the mechanism, from the heads. `input` replaces the heads of a stream that is not
    /// projected.
    pub(super) fn gather<'a, T: Real>(
        &self,
        heads: &'a Mapped<T>,
        input: ArrayView3<'a, T>,
        mask: &'a Mask,
        bias: Option<&'a Bias<T>>,
    ) -> Streams<'a, T> {
        let view = |heads: &'a Option<Heads<T>>| match heads {
            Some(heads) => heads.view(),
            None => input.insert_axis(Axis(1)),
        };
        Streams::new(heads.iter().take(self.streams.len()).map(view), mask).with_bias(bias)
    }
}
