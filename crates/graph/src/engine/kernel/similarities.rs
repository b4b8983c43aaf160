//! $f(q_i, c a)$ and $f(c a, k_j)$ of all nodes: two numbers a node and head.

use crate::engine::Call;
use crate::engine::rows::{dot, row};
use crate::engine::sums::nodes_of_a_piece;
use crate::score::Half;
use crate::{Error, Points};
use bochner_kernels::feature_map_into;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Buffers, Real, parallel};
use ndarray::Array2;
use std::ops::Range;

/// The features of some nodes in one head, `[nodes, F]`, one after the other.
pub(super) fn inputs<T: Real>(
    call: &Call<T>,
    half: Half,
    head: usize,
    nodes: Range<usize>,
) -> Array2<T> {
    let x = match half {
        Half::Target => call.target_features(),
        Half::Source => call.source_features(),
    };
    let (columns, width) = (call.shape.columns(), call.shape.width);
    let mut own = Vec::with_capacity(nodes.len() * width);
    for x in x[nodes.start * columns..nodes.end * columns].chunks_exact(columns) {
        own.extend_from_slice(row(x, head, width));
    }
    Array2::from_shape_vec((nodes.len(), width), own).expect("whole rows")
}

/// Calls `f` with consecutive nodes and their rows of `x`, `width` numbers a node, by all threads; the
/// results come in order.
pub(super) fn map_nodes<T: Real, R: Send>(
    x: &mut [T],
    width: usize,
    f: impl Fn(Range<usize>, &mut [T]) -> Result<R, Error> + Send + Sync,
) -> Result<Vec<R>, Error> {
    let each = nodes_of_a_piece(x.len() / width);
    let results = parallel::map_chunks(x, each * width, |i, x| {
        f(i * each..i * each + x.len() / width, x)
    });
    results.into_iter().collect()
}

/// The similarities of all nodes of one side to $a$ and to the slope times $a$, `[N, 2H]`.
pub(super) fn of_nodes<T: Real>(
    call: &Call<T>,
    points: &Points<T>,
    half: Half,
    features: &[Array2<T>],
) -> Result<Vec<T>, Error> {
    let mut f = vec![T::zero(); count(call, half) * 2 * features.len()];
    let buffers = Buffers::default();
    map_nodes(&mut f, 2 * features.len(), |nodes, f| {
        for (head, features) in features.iter().enumerate() {
            let points = points.half(head, half);
            let x = inputs(call, half, head, nodes.clone());
            let mut phi = buffers.any(nodes.len() * features.ncols());
            feature_map_into(x.view(), &points, &buffers, &mut phi)?;
            run(Against {
                phi: &phi,
                features: features.as_slice().expect("allocated in row-major order"),
                inverse: points.normaliser().recip(),
                heads: [head, call.shape.heads],
                out: f,
            });
        }
        Ok(())
    })?;
    Ok(f)
}

pub(super) fn count<T: Real>(call: &Call<T>, half: Half) -> usize {
    match half {
        Half::Target => call.graph.targets(),
        Half::Source => call.graph.sources(),
    }
}

/// Writes $\phi \cdot \phi_{ca} / c$ of each row of $\phi$, for both values of c.
struct Against<'a, T> {
    phi: &'a [T],
    features: &'a [T],
    inverse: T,
    /// Which head of how many.
    heads: [usize; 2],
    out: &'a mut [T],
}

impl<T: Real> Task for Against<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let [head, heads] = self.heads;
        let (one, slope) = self.features.split_at(self.features.len() / 2);
        let rows = self.phi.chunks_exact(one.len());
        for (phi, out) in rows.zip(self.out.chunks_exact_mut(2 * heads)) {
            out[head] = dot::<T, A>(phi, one) * self.inverse;
            out[heads + head] = dot::<T, A>(phi, slope) * self.inverse;
        }
    }
}
