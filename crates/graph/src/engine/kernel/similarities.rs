//! $f(q_i, c a)$ and $f(c a, k_j)$ of all nodes: two numbers a node and head.

use crate::engine::Call;
use crate::engine::edge_sums::map_nodes;
use crate::engine::rows::{LANES, added, dot_in_lanes, row};
use crate::score::{Half, PointsOfHeads};
use crate::{Error, Points};
use bochner_kernels::feature_map;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Buffers, Real};
use ndarray::{Array2, ArrayViewMut2};
use std::ops::Range;

/// The features of some nodes in one head, `[nodes, F]`, one after the other.
pub(super) fn inputs<T: Real>(
    call: &Call<T>,
    half: Half,
    head: usize,
    nodes: Range<usize>,
) -> Array2<T> {
    let x = call.features(half);
    let (columns, width) = (call.shape.columns(), call.shape.width);
    let mut own = Vec::with_capacity(nodes.len() * width);
    for x in x[nodes.start * columns..nodes.end * columns].chunks_exact(columns) {
        let (whole, rest) = row(x, head, width).as_chunks::<LANES>();
        // Copies of a known length take no call.
        whole.iter().for_each(|x| own.extend_from_slice(x));
        own.extend_from_slice(rest);
    }
    Array2::from_shape_vec((nodes.len(), width), own).expect("whole rows")
}

/// The similarities of all nodes of one side to $a$ and to the slope times $a$, `[N, 2H]`.
pub(super) fn of_nodes<T: Real>(
    call: &Call<T>,
    points: &Points<T>,
    half: Half,
    features: &[Array2<T>],
) -> Result<Vec<T>, Error> {
    let mut f = vec![T::zero(); call.nodes(half) * 2 * features.len()];
    let buffers = Buffers::default();
    let done = map_nodes(&mut f, 2 * features.len(), |nodes, f| {
        for (head, features) in features.iter().enumerate() {
            let points = points.half(head, half);
            let x = inputs(call, half, head, nodes.clone());
            let shape = (nodes.len(), features.ncols());
            let mut phi = buffers.any(shape.0 * shape.1);
            let target = ArrayViewMut2::from_shape(shape, &mut phi).expect("as many elements");
            feature_map(x.view(), &points, target, &buffers)?;
            run(Against {
                phi: &phi,
                features: features.as_slice().expect("allocated in row-major order"),
                inverse: points.normaliser().recip(),
                heads: [head, call.shape.heads],
                out: f,
            });
        }
        Ok(())
    });
    done.into_iter().collect::<Result<(), Error>>()?;
    Ok(f)
}

/// Writes $\phi \cdot \phi_{ca} / c$ of each row of $\phi$, for both values of c.
struct Against<'a, T> {
    phi: &'a [T],
    features: &'a [T],
    inverse: T,
    /// The head, and the number of all heads.
    heads: [usize; 2],
    out: &'a mut [T],
}

impl<T: Real> Task for Against<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        const ROWS: usize = 32;
        let ([head, heads], count) = (self.heads, self.features.len() / 2);
        let (one, slope) = self.features.split_at(count);
        // The sums of a row stay vectors in an array; added up at once, they would not.
        let mut sums = [[[T::zero(); LANES]; 2]; ROWS];
        let out = self.out.chunks_mut(ROWS * 2 * heads);
        for (phi, out) in self.phi.chunks(ROWS * count).zip(out) {
            for (phi, sums) in phi.chunks_exact(count).zip(&mut sums) {
                *sums = [
                    dot_in_lanes::<T, A>(phi, one),
                    dot_in_lanes::<T, A>(phi, slope),
                ];
            }
            for (out, &[one, slope]) in out.chunks_exact_mut(2 * heads).zip(&sums) {
                out[head] = added(one) * self.inverse;
                out[heads + head] = added(slope) * self.inverse;
            }
        }
    }
}
