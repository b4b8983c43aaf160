//! $f(q_i, c a)$ and $f(c a, k_j)$ of all nodes: two numbers a node and head.

use crate::engine::Call;
use crate::engine::rows::dot;
use crate::engine::sums::by_nodes;
use crate::score::Half;
use crate::{Error, Points};
use bochner_kernels::feature_map;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Real, parallel};
use ndarray::{Array2, ArrayView2, s};
use std::ops::Range;

/// Some nodes and one head: a piece of work.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) head: usize,
    pub(super) nodes: Range<usize>,
}

/// All pieces of work, head by head.
pub(super) fn units(heads: usize, nodes: usize) -> Vec<Unit> {
    let pieces = by_nodes(nodes);
    let of_head = |head| {
        let pieces = pieces.iter().cloned();
        pieces.map(move |nodes| Unit { head, nodes })
    };
    (0..heads).flat_map(of_head).collect()
}

/// The features of a unit's nodes as they are given, `[nodes, F]`.
pub(super) fn inputs<'a, T: Real>(call: &'a Call<T>, half: Half, unit: &Unit) -> ArrayView2<'a, T> {
    let x = match half {
        Half::Target => call.target_features(),
        Half::Source => call.source_features(),
    };
    let (columns, width) = (call.shape.columns(), call.shape.width);
    let x = ArrayView2::from_shape((x.len() / columns, columns), x).expect("whole rows");
    let columns = unit.head * width..(unit.head + 1) * width;
    x.slice_move(s![unit.nodes.clone(), columns])
}

/// The similarities of all nodes of one side to $a$ and to the slope times $a$, `[N, 2H]`.
pub(super) fn of_nodes<T: Real>(
    call: &Call<T>,
    points: &Points<T>,
    half: Half,
    features: &[Array2<T>],
) -> Result<Vec<T>, Error> {
    let (heads, nodes) = (call.shape.heads, count(call, half));
    let units = units(heads, nodes);
    let parts: Vec<Result<_, Error>> = parallel::map(units.len(), |i| {
        let unit = &units[i];
        let points = points.half(unit.head, half);
        let phi = feature_map(inputs(call, half, unit), &points)?;
        Ok(against(&phi, &features[unit.head], points.normaliser()))
    });
    let mut f = vec![T::zero(); nodes * 2 * heads];
    for (unit, part) in units.iter().zip(parts) {
        let rows = f[unit.nodes.start * 2 * heads..].chunks_exact_mut(2 * heads);
        for (row, own) in rows.zip(part?) {
            row[unit.head] = own[0];
            row[heads + unit.head] = own[1];
        }
    }
    Ok(f)
}

pub(super) fn count<T: Real>(call: &Call<T>, half: Half) -> usize {
    match half {
        Half::Target => call.graph.targets(),
        Half::Source => call.graph.sources(),
    }
}

/// $\phi \cdot \phi_{ca} / c$ of each row, for both values of c.
fn against<T: Real>(phi: &Array2<T>, features: &Array2<T>, normaliser: T) -> Vec<[T; 2]> {
    let mut out = vec![[T::zero(); 2]; phi.nrows()];
    run(Against {
        phi: phi.as_slice().expect("allocated in row-major order"),
        features: features.as_slice().expect("allocated in row-major order"),
        inverse: normaliser.recip(),
        out: &mut out,
    });
    out
}

struct Against<'a, T> {
    phi: &'a [T],
    features: &'a [T],
    inverse: T,
    out: &'a mut [[T; 2]],
}

impl<T: Real> Task for Against<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let (one, slope) = self.features.split_at(self.features.len() / 2);
        for (phi, out) in self.phi.chunks_exact(one.len()).zip(self.out) {
            // Not by `map` of the array, which is not compiled for the instruction set.
            let [one, slope] = [dot::<T, A>(phi, one), dot::<T, A>(phi, slope)];
            *out = [one * self.inverse, slope * self.inverse];
        }
    }
}
