//! The Gram matrix of a set of inputs with itself, of which one half is computed.

use crate::Error;
use bochner_kernels::{Along, AnyKernel, Kernel};
use bochner_numerics::parallel;
use ndarray::{Array2, ArrayView2, s};
use std::ops::Range;

/// The number of rows that are computed at a time. Entries are computed twice only in the square blocks on the
/// diagonal. So few rows of a thousand columns fit into the cache.
const ROWS: usize = 16;

/// The Gram matrix of `x` with itself. Blocks of rows are split among the threads of rayon's current pool.
pub(crate) fn gram(kernel: &AnyKernel<f64>, x: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
    let mut gram = Array2::zeros((x.nrows(), x.nrows()));
    let (count, range) = blocks(x.nrows());
    let each = parallel::map(count, |i| {
        let (own, before) = upto(x, range(i));
        kernel.gram(own, before)
    });
    for (i, block) in each.into_iter().enumerate() {
        let (rows, block) = (range(i), block?);
        gram.slice_mut(s![..rows.end, rows.clone()])
            .assign(&block.t());
        gram.slice_mut(s![rows.clone(), ..rows.end]).assign(&block);
    }
    Ok(gram)
}

/// The gradient of [`gram`] along the parameters, for a cotangent that is symmetric too.
pub(crate) fn gram_vjp(
    kernel: &AnyKernel<f64>,
    x: ArrayView2<f64>,
    cotangent: ArrayView2<f64>,
) -> Result<Vec<f64>, Error> {
    let mut parameters = vec![0.0; kernel.parameters().len()];
    let (count, range) = blocks(x.nrows());
    let each = parallel::map(count, |i| {
        let rows = range(i);
        let (own, before) = upto(x, rows.clone());
        let mut weights = cotangent.slice(s![rows.clone(), ..rows.end]).to_owned();
        // Each entry before the square block stands for its mirror image as well.
        weights
            .slice_mut(s![.., ..rows.start])
            .mapv_inplace(|g| 2.0 * g);
        kernel.gram_vjp_along(Along::Parameters, own, before, weights.view())
    });
    for along in each {
        let pairs = parameters.iter_mut().zip(along?.parameters);
        pairs.for_each(|(sum, g)| *sum += g);
    }
    Ok(parameters)
}

/// The rows of a block, and all rows up to its end.
fn upto<'a>(
    x: ArrayView2<'a, f64>,
    rows: Range<usize>,
) -> (ArrayView2<'a, f64>, ArrayView2<'a, f64>) {
    (
        x.slice_move(s![rows.clone(), ..]),
        x.slice_move(s![..rows.end, ..]),
    )
}

/// The number of blocks, and their ranges of rows. Without rows there is one empty range, so that the kernel sees the
/// width of the inputs.
fn blocks(rows: usize) -> (usize, impl Fn(usize) -> Range<usize> + Sync) {
    let range = move |i| i * ROWS..rows.min((i + 1) * ROWS);
    (rows.max(1).div_ceil(ROWS), range)
}
