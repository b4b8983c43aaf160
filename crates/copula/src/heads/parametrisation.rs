//! Factors from the parameters of a layer, or from the features of an example.

use crate::Error;
use bochner_numerics::operations::record;
use bochner_numerics::{ArgumentError, Mat, MatMut, Operations, Real, argument, matmul};
use ndarray::{Array1, Array2, Array3, Array4, ArrayView1, ArrayView2, ArrayView3, ArrayView4};

/// The factor whose strict lower part is free and whose diagonal is one.
///
/// $$L_{mk} = r_{mk} \ (k < m), \qquad L_{mm} = 1$$
///
/// With `raw` (*r*) zero the heads are independent once the factor is normalised.
///
/// # Shapes
/// `raw: [d, M, M]` to `[d, M, M]`; on and above the diagonal `raw` is not read.
///
/// # Errors
/// [`Error::Argument`] if the matrices are not square or have no entries.
///
/// # Example
///
/// ```
/// use bochner_copula::heads::free;
/// use bochner_copula::ndarray::array;
/// use bochner_copula::{correlation, normalise};
///
/// let factor = free(array![[[9.0, 9.0], [0.75, 9.0]]].view())?;
/// assert_eq!(factor, array![[[1.0, 0.0], [0.75, 1.0]]]);
/// let corr = correlation(normalise(factor.view())?.view())?;
/// assert!((corr[[0, 1, 0]] - 0.6_f64).abs() < 1e-12);
/// # Ok::<(), bochner_copula::Error>(())
/// ```
pub fn free<T: Real>(raw: ArrayView3<T>) -> Result<Array3<T>, Error> {
    square("raw", raw)?;
    Ok(unit_lower(raw.dim(), |index| raw[index]))
}

/// The vector-Jacobian product of [`free`]: the strict lower part of the cotangent.
///
/// # Shapes
/// `cotangent: [d, M, M]` to `[d, M, M]`.
///
/// # Errors
/// The errors of [`free`].
pub fn free_vjp<T: Real>(cotangent: ArrayView3<T>) -> Result<Array3<T>, Error> {
    square("cotangent", cotangent)?;
    Ok(Array3::from_shape_fn(cotangent.dim(), |(i, m, k)| {
        if k < m {
            cotangent[[i, m, k]]
        } else {
            T::zero()
        }
    }))
}

fn square<T>(name: &'static str, x: ArrayView3<T>) -> Result<(), ArgumentError> {
    let (n, heads, _) = x.dim();
    argument::not_empty(name, x.shape())?;
    argument::shape(name, &[n, heads, heads], x.shape())
}

fn unit_lower<T: Real>(shape: (usize, usize, usize), below: impl Fn([usize; 3]) -> T) -> Array3<T> {
    Array3::from_shape_fn(shape, |(i, m, k)| match k.cmp(&m) {
        std::cmp::Ordering::Less => below([i, m, k]),
        std::cmp::Ordering::Equal => T::one(),
        std::cmp::Ordering::Greater => T::zero(),
    })
}

/// The factors amortised over the features: one per example and latent dimension.
///
/// $$t_{bm} = \tanh(W_c h_{bm} + b_c), \qquad
///   L_{bl} = \mathrm{lower}(t_{bl} t_{bl}^\top) + I$$
///
/// *where* $t_{bl}$ collects the heads of one latent dimension `l`, *lower* keeps what stands
/// strictly below the diagonal, and the map $W_c$, $b_c$ is shared by the heads.
///
/// # Shapes
/// `hidden: [B, M, d]`, `wc: [d, d]` (output, input), `bc: [d]` to `[B, d, M, M]`.
///
/// # Errors
/// [`Error::Argument`] for shapes that do not fit together or without entries.
///
/// # Numerics
/// $O(B M d (d + M))$. The rows of the factor are not normalised.
///
/// # Reference
/// Song, Jung, Kim, Moon, *Implicit Kernel Attention*, AAAI 2021, MIKAN.
pub fn amortised<T: Real>(
    hidden: ArrayView3<T>,
    wc: ArrayView2<T>,
    bc: ArrayView1<T>,
) -> Result<Array4<T>, Error> {
    let t = squashed(hidden, wc, bc)?;
    let (batch, heads, width) = t.dim();
    record(Operations::multiply_adds(
        batch * width * heads * (heads - 1) / 2,
    ));
    let factor = unit_lower((batch * width, heads, heads), |[i, m, k]| {
        let (b, l) = (i / width, i % width);
        t[[b, m, l]] * t[[b, k, l]]
    });
    Ok(factor
        .into_shape_with_order((batch, width, heads, heads))
        .expect("the same number of elements"))
}

/// The gradients of [`amortised`].
#[derive(Clone, Debug, PartialEq)]
pub struct AmortisedGradients<T> {
    /// The gradient along `hidden`, `[B, M, d]`.
    pub hidden: Array3<T>,
    /// The gradient along `wc`, `[d, d]`.
    pub wc: Array2<T>,
    /// The gradient along `bc`, `[d]`.
    pub bc: Array1<T>,
}

/// The vector-Jacobian product of [`amortised`].
///
/// $$\bar t_m = \sum_{k<m} G_{mk} t_k + \sum_{k>m} G_{km} t_k, \qquad
///   \bar u = (1 - t^2) \bar t, \qquad
///   \bar h = W_c^\top \bar u, \quad \bar W_c = \sum \bar u h^\top, \quad \bar b_c = \sum \bar u$$
///
/// # Shapes
/// `hidden`, `wc`, `bc` as in [`amortised`], `cotangent` (*G*): `[B, d, M, M]`; on and above the
/// diagonal it is not read.
///
/// # Errors
/// The errors of [`amortised`].
pub fn amortised_vjp<T: Real>(
    hidden: ArrayView3<T>,
    wc: ArrayView2<T>,
    bc: ArrayView1<T>,
    cotangent: ArrayView4<T>,
) -> Result<AmortisedGradients<T>, Error> {
    let t = squashed(hidden, wc, bc)?;
    let (batch, heads, width) = t.dim();
    argument::shape(
        "cotangent",
        &[batch, width, heads, heads],
        cotangent.shape(),
    )?;
    let pre = Array3::from_shape_fn(t.dim(), |(b, m, l)| {
        let g = |k: usize| cotangent[[b, l, m.max(k), m.min(k)]];
        let others = (0..heads).filter(|&k| k != m);
        let bar: T = others.map(|k| g(k) * t[[b, k, l]]).sum();
        bar * (T::one() - t[[b, m, l]] * t[[b, m, l]])
    });
    Ok(through_the_layer(&pre, hidden, wc))
}

/// `tanh(Wc hidden + bc)`, `[B, M, d]`.
///
/// The products are written out here, since this crate does not depend on `bochner_ops`.
fn squashed<T: Real>(
    hidden: ArrayView3<T>,
    wc: ArrayView2<T>,
    bc: ArrayView1<T>,
) -> Result<Array3<T>, Error> {
    argument::not_empty("hidden", hidden.shape())?;
    let (batch, heads, width) = hidden.dim();
    argument::shape("wc", &[width, width], wc.shape())?;
    argument::shape("bc", &[width], bc.shape())?;
    let (hidden, wc) = (hidden.as_standard_layout(), wc.as_standard_layout());
    let mut t = Array3::from_shape_fn((batch, heads, width), |(_, _, l)| bc[l]);
    let rows = batch * heads;
    matmul(
        T::one(),
        Mat::new(slice(hidden.as_slice()), rows, width),
        Mat::new(slice(wc.as_slice()), width, width).t(),
        T::one(),
        MatMut::new(t.as_slice_mut().expect("standard layout"), rows, width),
    );
    t.mapv_inplace(T::tanh);
    Ok(t)
}

/// The gradients along the arguments of `u = Wc hidden + bc`, from that along `u`.
fn through_the_layer<T: Real>(
    pre: &Array3<T>,
    hidden: ArrayView3<T>,
    wc: ArrayView2<T>,
) -> AmortisedGradients<T> {
    let (batch, heads, width) = pre.dim();
    let rows = batch * heads;
    let (h, w) = (hidden.as_standard_layout(), wc.as_standard_layout());
    let bar = Mat::new(slice(pre.as_slice()), rows, width);
    let mut gradients = AmortisedGradients {
        hidden: Array3::zeros(pre.dim()),
        wc: Array2::zeros((width, width)),
        bc: Array1::zeros(width),
    };
    let into = gradients.hidden.as_slice_mut().expect("standard layout");
    let w = Mat::new(slice(w.as_slice()), width, width);
    let (one, zero) = (T::one(), T::zero());
    matmul(one, bar, w, zero, MatMut::new(into, rows, width));
    let into = gradients.wc.as_slice_mut().expect("standard layout");
    let h = Mat::new(slice(h.as_slice()), rows, width);
    matmul(one, bar.t(), h, zero, MatMut::new(into, width, width));
    for row in pre.rows() {
        gradients.bc += &row;
    }
    gradients
}

fn slice<T>(slice: Option<&[T]>) -> &[T] {
    slice.expect("brought into standard layout before")
}
