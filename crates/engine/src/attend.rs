//! Attention for any settings, forward and backward.

use crate::call::Call;
use crate::features::{self, FeaturesState};
use crate::gradients::{Gradients, Wanted};
use crate::heads::{self, PairsState};
use crate::linear::scan::{self, ScanState};
use crate::pairwise;
use crate::settings::Kernel;
use crate::workspace::Workspace;
use crate::{Error, Settings, Shape};
use bochner_numerics::memory::{Unwritten, written_by};
use bochner_numerics::{Real, argument};
use ndarray::{ArcArray, Array3, Array4, ArrayView4, Ix4};
use std::sync::Arc;

/// Attended values, `[B, M, Tq, dv]`, which the saved forward pass shares.
pub type Output<T> = ArcArray<T, Ix4>;

/// The numbers that a backward pass needs. Borrows nothing, so that a tape can keep it; a clone is free.
#[derive(Clone, Debug)]
#[doc(alias = "ctx")]
pub struct Saved<T: Real> {
    shape: Shape,
    output: Output<T>,
    state: Arc<State<T>>,
}

#[derive(Debug)]
enum State<T: Real> {
    Pairs(PairsState<T>),
    Features(FeaturesState<T>),
    Scan(ScanState<T>),
}

impl<T: Real> Saved<T> {
    /// The attended values.
    pub fn output(&self) -> &Output<T> {
        &self.output
    }

    /// Returns the logarithm of the sum of each row's weights and its sink's, `[B, M, Tq]`. For a row that sees no key it
    /// is the score of the sink, or minus infinity without one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for features and scans, and in linear time.
    #[doc(alias = "logsumexp")]
    #[doc(alias = "lse")]
    pub fn log_sums(&self, settings: &Settings<T>) -> Result<Array3<f64>, Error> {
        let State::Pairs(state) = &*self.state else {
            return Err(Error::Unsupported {
                what: "the logarithms of sums over features or a scan",
                instead: "a pairwise kernel",
            });
        };
        let sums = state.rows.iter().map(|row| match row.sum > T::zero() {
            true => row.reference + settings.normaliser.ln_sum(row),
            false => f64::NEG_INFINITY,
        });
        let shape = (self.shape.batch, self.shape.heads, self.shape.queries);
        Ok(Array3::from_shape_vec(shape, sums.collect()).expect("a row a query"))
    }
}

/// Returns attention, $o_i = \sum_j \alpha_{ij} v_j$, and what its backward pass needs.
///
/// *where* $\alpha_{ij}$ are the scores of row i, normalised over the keys that the [`Mask`](crate::Mask) keeps.
///
/// # Shapes
/// `q: [B, M, Tq, d]`, `k: [B, G, Tk, d]`, `v: [B, G, Tk, dv]` to `[B, M, Tq, dv]`. Where keys and values have fewer
/// heads than queries (grouped-query attention), G divides M, and head m reads head floor(m G / M); nothing is copied.
///
/// # Errors
/// [`Error::Argument`] for shapes that do not fit, [`Error::Mask`], [`Error::Kind`] or [`Error::Unsupported`] for settings
/// that do not go together, [`Error::OutOfRange`] for numbers that some pair needs and that are NaN or beyond the fourth
/// root of the type's largest, [`Error::Score`] for a score that is NaN or plus infinity.
///
/// # Numerics
/// Blocked: no `[Tq, Tk]` array is stored; O(Tq Tk (d + dv)) time and O(T (d + dv)) memory, or linear time, see
/// [`Form`](crate::Form). A row without a kept key has a zero output. Numbers that a row cannot see never change its bits,
/// and numbers that no row can see may be anything, NaN too. The result is the same to the bit for any number of
/// threads, and whatever else is in the batch; it differs by rounding between
/// [instruction sets](bochner_numerics::instructions).
///
/// ```
/// use bochner_engine::{Mask, Settings, Wanted, attend, attend_vjp};
/// use bochner_engine::ndarray::Array4;
///
/// let q = Array4::from_shape_fn((1, 2, 3, 4), |(_, m, t, n)| (m + t * n) as f64 * 0.1);
/// let settings = Settings::softmax(&Mask::causal());
/// let (output, saved) = attend(&settings, q.view(), q.view(), q.view())?;
/// // The first row sees only itself.
/// assert_eq!(output[[0, 1, 0, 2]], q[[0, 1, 0, 2]]);
/// let (cotangent, wanted) = (Array4::ones((1, 2, 3, 4)), Wanted::default());
/// let gradients = attend_vjp(&settings, &saved, q.view(), q.view(), q.view(), cotangent.view(), wanted)?;
/// assert_eq!(gradients.v.shape(), q.shape());
/// # Ok::<(), bochner_engine::Error>(())
/// ```
#[doc(alias = "scaled_dot_product_attention")]
#[doc(alias = "flex_attention")]
pub fn attend<T: Real>(
    settings: &Settings<T>,
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
) -> Result<(Output<T>, Saved<T>), Error> {
    let workspace = Workspace::new();
    let call = Call::new([q, k, v], settings, &workspace)?;
    call.check_form()?;
    let (mut state, shape) = (None, call.shape);
    let length = shape.batch * shape.heads * shape.queries * shape.value_width;
    let [output] = written_by([length], |[output]| state = Some(forward(&call, output)));
    let state = Arc::new(state.expect("attended")?);
    let output = call.query_array(shape.value_width, output).into_shared();
    Ok((
        output.clone(),
        Saved {
            shape,
            output,
            state,
        },
    ))
}

/// Attends; returns what a backward pass needs.
fn forward<T: Real>(call: &Call<T>, output: Unwritten<T>) -> Result<State<T>, Error> {
    match &call.settings.kernel {
        Kernel::Pairs(kernel) => heads::attend(kernel.as_ref(), call, output).map(State::Pairs),
        Kernel::Features(map) => features::attend(map.as_ref(), call, output).map(State::Features),
        Kernel::Scan(scan) => scan::attend(scan.as_ref(), call, output).map(State::Scan),
    }
}

/// The vector-Jacobian product of [`attend`], given what it was given and what it saved.
///
/// # Shapes
/// `cotangent: [B, M, Tq, dv]`; the gradients have the shapes of what they belong to.
///
/// # Errors
/// The errors of [`attend`]; [`Error::Argument`] if the cotangent does not fit; [`Error::Saved`] for a forward pass of
/// other sizes or of another [kind of kernel](crate::Kernel), while other settings of the same sizes are not noticed;
/// [`Error::Slope`] if a slope is not finite; [`Error::Unsupported`] for the gradient of a bias that has none, or of a sink
/// where there is none.
///
/// # Numerics
/// The blocks of the forward pass are recomputed: memory stays O(T). Gradients of hidden keys and
/// values, and of rows without a kept key, are exactly zero.
pub fn attend_vjp<T: Real>(
    settings: &Settings<T>,
    saved: &Saved<T>,
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    cotangent: ArrayView4<T>,
    wanted: Wanted,
) -> Result<Gradients<T>, Error> {
    let workspace = Workspace::new();
    let call = Call::new([q, k, v], settings, &workspace)?;
    if call.shape != saved.shape {
        return Err(Error::Saved { what: "sizes" });
    }
    argument::shape("cotangent", saved.output.shape(), cotangent.shape())?;
    let no_numbers = |bias: &crate::Bias<T>| bias.zero_gradients().is_none();
    if wanted.bias && settings.bias.as_ref().is_none_or(no_numbers) {
        return Err(Error::Unsupported {
            what: "the gradient of a bias without numbers of its own",
            instead: "a fixed or relative bias, or a score with learnt slopes",
        });
    }
    if wanted.sink && settings.sink.is_none() {
        return Err(Error::Unsupported {
            what: "the gradient of a sink that the settings do not have",
            instead: "`Settings::sink`, or `Wanted` without `sink`",
        });
    }
    let given = [saved.output.view(), cotangent];
    match (&settings.kernel, &*saved.state) {
        (Kernel::Pairs(kernel), State::Pairs(state)) => {
            heads::pull_back(kernel.as_ref(), &call, state, given, wanted)
        }
        (Kernel::Features(map), State::Features(state)) => {
            features::pull_back(map.as_ref(), &call, state, given, wanted)
        }
        (Kernel::Scan(scan), State::Scan(state)) => {
            scan::pull_back(scan.as_ref(), &call, state, given, wanted)
        }
        _ => Err(Error::Saved { what: "settings" }),
    }
}

/// Returns the normalised weights $\alpha$, `[B, M, Tq, Tk]`, before dropout.
///
/// Takes O(Tq Tk) memory: for looking at, not for computing with. They are those of the pairwise form,
/// whatever form the settings ask for.
///
/// # Shapes
/// `q: [B, M, Tq, d]`, `k: [B, G, Tk, d]`.
///
/// # Errors
/// The errors of [`attend`]; [`Error::Unsupported`] for a scan.
#[doc(alias = "need_weights")]
pub fn weights<T: Real>(
    settings: &Settings<T>,
    q: ArrayView4<T>,
    k: ArrayView4<T>,
) -> Result<Array4<T>, Error> {
    let workspace = Workspace::new();
    let call = Call::new([q, k, k], settings, &workspace)?;
    match &settings.kernel {
        Kernel::Pairs(kernel) => pairwise::weights(kernel.as_ref(), &call),
        Kernel::Features(map) => features::weights(map.as_ref(), &call),
        Kernel::Scan(_) => Err(Error::Unsupported {
            what: "the weights of a scan, which has no pairs",
            instead: "a pairwise kernel or features",
        }),
    }
}
