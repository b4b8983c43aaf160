//! Attention itself: weights, outputs and their vector-Jacobian product.

use crate::engine::{Arguments, State, write_row_major};
use crate::score::PointsGradients;
use crate::{Bias, Error, Mask, Settings, Workspace};
use bochner_numerics::memory::{Unwritten, overwritten_by, written_by};
use bochner_numerics::{Real, argument};
use ndarray::{Array4, ArrayD, ArrayView4, ArrayViewMut4};

/// The output of [`attend`]. It borrows the arrays, so that [`attend_vjp`] cannot be given others.
#[derive(Debug)]
pub struct Attended<'a, T> {
    /// The attended values, `[B, M, Tq, dv]`.
    pub output: Array4<T>,
    q: ArrayView4<'a, T>,
    k: ArrayView4<'a, T>,
    v: ArrayView4<'a, T>,
    saved: Saved<T>,
}

/// What is kept between the passes besides the output.
#[derive(Debug)]
pub(crate) struct Saved<T> {
    settings: Settings<T>,
    state: State,
    /// The shapes of queries and values.
    shapes: [[usize; 4]; 2],
}

/// Gradients of [`attend`], shaped as its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionGradients<T> {
    /// With respect to the queries.
    pub q: Array4<T>,
    /// With respect to the keys.
    pub k: Array4<T>,
    /// With respect to the values.
    pub v: Array4<T>,
    /// With respect to the spectral points, if the kernel has any.
    pub points: Option<PointsGradients<T>>,
    /// With respect to the numbers of a bias, shaped as they are, if that was asked for
    /// ([`Bias::with_gradient`](crate::Bias::with_gradient)). Sums have a fixed order.
    pub bias: Option<ArrayD<T>>,
}

/// Attention: $o_i = \sum_j \alpha_{ij} v_j$, $\alpha_{ij} = s_{ij} e^{m_j} / \sum_l s_{il} e^{m_l}$.
///
/// *where* s is the similarity of the [`Settings`], m the [`Magnitude`](crate::Magnitude), and j, l run
/// over the keys that the [`Mask`](crate::Mask) keeps.
///
/// Every head's features are kept for [`attend_vjp`]; where no gradient will be asked for,
/// [`attend_into`] keeps none and is faster.
///
/// # Shapes
/// `q: [B, M, Tq, d]`, `k: [B, G, Tk, d]`, `v: [B, G, Tk, dv]` to `[B, M, Tq, dv]`; spectral
/// points `[1 or B, M, R, d]`. Where keys and values have fewer heads than queries, G divides M, and head
/// m reads head floor(m G / M); nothing is copied.
///
/// # Errors
/// [`Error::Argument`] for shapes that do not fit and for a `p` or floor out of range, [`Error::Mask`], or
/// [`Error::Unsupported`] for settings that do not go together.
///
/// # Numerics
/// Blocked: no `[Tq, Tk]` array is stored; O(Tq Tk (R + dv)) time, O(T (R + dv)) memory, or for long
/// sequences under a squared kernel O(T R² dv) time and by random features O(T m dv), see [`Form`](crate::Form).
/// Magnitudes are compared by their logarithms, so weights are right even where a magnitude
/// overflows. A row without a kept key has a zero output; if all kept similarities of a row are
/// exactly zero in the type, its weights are those of the magnitudes alone. Finite arguments have finite outputs.
/// Where sums over the values of a head could overflow, all its values are divided by a power of two, chosen by the
/// largest: values that are smaller than the largest by more than the type's range then lose digits, even in causal
/// rows before it.
/// A query or key that is not a number makes the rows that meet it NaN, a value its column of them, a
/// spectral point its head; an infinite distance is a whole number of periods. Other infinite arguments
/// give infinity or NaN, and which may depend on the form. The result is the same to the bit for any number
/// of threads, and so are the outputs and the gradients of the queries, keys and values of one example whatever else
/// is in the batch and however far it is padded, dropout aside (where there are not as many queries as keys,
/// [`Mask::with_query_lengths`] says which queries are padding). The result differs by rounding between
/// [instruction sets](bochner_numerics::instructions), of which `BOCHNER_INSTRUCTIONS` chooses one.
///
/// # Reference
/// Song et al. 2021, equations 8, 9, 12-16.
///
/// ```
/// use bochner_attention::{Mask, Settings, attend, attend_vjp};
/// use bochner_attention::ndarray::Array4;
///
/// let q = Array4::from_shape_fn((1, 2, 3, 4), |(_, m, t, n)| (m + t * n) as f64 * 0.1);
/// let settings = Settings::softmax(&Mask::none().with_causality());
/// let attended = attend(q.view(), q.view(), q.view(), &settings)?;
/// // The first row sees only itself.
/// assert_eq!(attended.output[[0, 1, 0, 2]], q[[0, 1, 0, 2]]);
/// let gradients = attend_vjp(&attended, Array4::ones((1, 2, 3, 4)).view())?;
/// assert_eq!(gradients.v.shape(), q.shape());
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn attend<'a, T: Real>(
    q: ArrayView4<'a, T>,
    k: ArrayView4<'a, T>,
    v: ArrayView4<'a, T>,
    settings: &Settings<T>,
) -> Result<Attended<'a, T>, Error> {
    let (output, saved) = attend_saving(q, k, v, settings)?;
    Ok(Attended {
        output,
        q,
        k,
        v,
        saved,
    })
}

/// [`attend`] with its [`weights`], `[B, M, Tq, Tk]`, from one product of queries and keys where it goes
/// pair by pair.
///
/// Takes O(Tq Tk) memory. The weights are those of [`weights`]; the output is that of [`attend`] to rounding,
/// since a row's weights are normalised before they meet the values.
///
/// # Errors
/// The errors of [`attend`].
///
/// ```
/// use bochner_attention::{Mask, Settings, attend_with_weights};
/// use bochner_attention::ndarray::{Array4, Axis};
///
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| ((m + 2 * t + n) as f64).sin());
/// let settings = Settings::softmax(&Mask::none());
/// let (attended, weights) = attend_with_weights(x.view(), x.view(), x.view(), &settings)?;
/// assert_eq!((attended.output.dim(), weights.dim()), ((1, 2, 5, 4), (1, 2, 5, 5)));
/// assert!(weights.sum_axis(Axis(3)).iter().all(|sum| (sum - 1.0).abs() < 1e-12));
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn attend_with_weights<'a, T: Real>(
    q: ArrayView4<'a, T>,
    k: ArrayView4<'a, T>,
    v: ArrayView4<'a, T>,
    settings: &Settings<T>,
) -> Result<(Attended<'a, T>, Array4<T>), Error> {
    let mut weights = None;
    let (output, saved) = saving(q, k, v, settings, |call, output| {
        let (state, own) = settings.kernel().attend_with_weights(call, output);
        weights = Some(own);
        state
    })?;
    let attended = Attended {
        output,
        q,
        k,
        v,
        saved,
    };
    Ok((attended, weights.expect("attended")))
}

/// [`attend`] for callers that keep the arrays themselves.
pub(crate) fn attend_saving<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    settings: &Settings<T>,
) -> Result<(Array4<T>, Saved<T>), Error> {
    saving(q, k, v, settings, |call, output| {
        settings.kernel().attend(call, output)
    })
}

/// The output that is written, with what a backward pass needs.
fn saving<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    settings: &Settings<T>,
    write: impl FnOnce(&Arguments<T>, Unwritten<T>) -> State,
) -> Result<(Array4<T>, Saved<T>), Error> {
    let workspace = Workspace::new();
    let call = Arguments::new(q, k, v, settings, &workspace)?;
    call.form()?;
    let (rows, width) = (call.queries, call.value_width);
    let (mut state, length) = (None, call.shape(rows, width).iter().product());
    let [output] = written_by([length], |[output]| {
        state = Some(write(&call, output));
    });
    let output = call.array(rows, width, output);
    let saved = Saved {
        settings: settings.clone(),
        state: state.expect("attended"),
        shapes: [q.dim().into(), v.dim().into()],
    };
    Ok((output, saved))
}

/// [`attend`] into an array that is there already, in memory that is there already: no array is
/// allocated once a call of the same shapes and settings has gone before with the same
/// [`Workspace`], which says for which settings this does not hold, and what threads add to it.
///
/// The output is that of [`attend`] to the bit. Arrays that are not in row-major order are copied into
/// the workspace.
///
/// # Shapes
/// The shapes of [`attend`]; `output: [B, M, Tq, dv]`.
///
/// # Errors
/// The errors of [`attend`], and [`Error::Argument`] if the output does not fit, which is left as it was.
///
/// ```
/// use bochner_attention::{Mask, Settings, Workspace, attend_into};
/// use bochner_attention::ndarray::Array4;
///
/// let settings = Settings::softmax(&Mask::none());
/// let (workspace, mut output) = (Workspace::new(), Array4::zeros((1, 2, 3, 4)));
/// for step in 0..3 {
///     let x = Array4::from_elem((1, 2, 3, 4), step as f32);
///     attend_into(x.view(), x.view(), x.view(), &settings, &workspace, output.view_mut())?;
///     assert_eq!(output, x);
/// }
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn attend_into<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    settings: &Settings<T>,
    workspace: &Workspace<T>,
    output: ArrayViewMut4<T>,
) -> Result<(), Error> {
    let call = Arguments::new(q, k, v, settings, workspace)?;
    let shape = call.shape(call.queries, call.value_width);
    argument::shape("output", &shape, output.shape())?;
    call.form()?;
    write_row_major(output, &workspace.numbers, |output| {
        overwritten_by(output, |output| {
            settings.kernel().attend_once(&call, output);
        });
    });
    Ok(())
}

/// The vector-Jacobian product of [`attend`].
///
/// With $P$ the weights and $G_{ij} = dO_i \cdot v_j - dO_i \cdot O_i$: $dV = P^T dO$,
/// $dm_j = \sum_i P_{ij} G_{ij}$ and, for the squared kernel, $df_{ij} = 2 f_{ij} g_j G_{ij} / Z_i$ and back through
/// the features; other kernels pull the gradient of their own score back in its place.
///
/// # Shapes
/// `cotangent: [B, M, Tq, dv]`; the gradients have the shapes of what they belong to.
///
/// # Errors
/// [`Error::Argument`] if the cotangent does not fit.
///
/// # Numerics
/// The blocks of the forward pass are recomputed: memory stays O(T). Gradients of masked keys and
/// values, and of rows without a kept key, are exactly zero. What would overflow is computed in other
/// units; a gradient beyond the type's range is its largest number, never NaN.
pub fn attend_vjp<T: Real>(
    attended: &Attended<T>,
    cotangent: ArrayView4<T>,
) -> Result<AttentionGradients<T>, Error> {
    let Attended { q, k, v, .. } = *attended;
    (attended.saved).vjp([q, k, v], attended.output.view(), cotangent)
}

impl<T: Real> Saved<T> {
    /// Checks that a backward pass has the mask and the bias of its forward pass.
    ///
    /// # Errors
    /// [`Error::ForeignForward`] if it has not.
    pub(crate) fn check(&self, mask: &Mask, bias: Option<&Bias<T>>) -> Result<(), Error> {
        let mechanism = "attention's backward pass";
        if self.settings.mask != *mask || self.settings.bias.as_ref() != bias {
            return Err(Error::ForeignForward { mechanism });
        }
        Ok(())
    }

    /// [`attend_vjp`], for callers that keep the arrays.
    ///
    /// # Errors
    /// [`Error::ForeignForward`] if the arrays have other shapes than those of the forward pass.
    pub(crate) fn vjp(
        &self,
        [q, k, v]: [ArrayView4<T>; 3],
        output: ArrayView4<T>,
        cotangent: ArrayView4<T>,
    ) -> Result<AttentionGradients<T>, Error> {
        let (workspace, settings) = (Workspace::new(), &self.settings);
        let call = Arguments::new(q, k, v, settings, &workspace)?;
        let mechanism = "attention's backward pass";
        let shapes: [[usize; 4]; 2] = [q.dim().into(), v.dim().into()];
        let shape = call.shape(call.queries, call.value_width);
        if shapes != self.shapes || output.shape() != shape {
            return Err(Error::ForeignForward { mechanism });
        }
        argument::shape("cotangent", &shape, cotangent.shape())?;
        Ok((settings.kernel()).pull_back(&call, &self.state, output, cotangent))
    }
}

/// The normalised weights $\alpha$, `[B, M, Tq, Tk]`, before dropout.
///
/// Takes O(Tq Tk) memory: for looking at, not for computing with. They are those of the quadratic form,
/// whatever form `settings` ask for.
///
/// # Shapes
/// `q: [B, M, Tq, d]`, `k: [B, G, Tk, d]`.
///
/// # Errors
/// The errors of [`attend`].
pub fn weights<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    settings: &Settings<T>,
) -> Result<Array4<T>, Error> {
    let workspace = Workspace::new();
    let call = Arguments::new(q, k, k, settings, &workspace)?;
    Ok(settings.kernel().weights(&call))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decoder, DecoderSize, Form, Magnitude, Points, RandomFeatureMap, Trained};
    use bochner_numerics::{Seed, standard_normal};
    use ndarray::Axis;

    /// Every kernel of [`Settings`], and the two forms of a squared one, small enough for Miri.
    #[test]
    fn forms_and_decoders_agree_at_a_small_size() {
        let (length, causal) = (3, Mask::none().with_causality());
        let mut stream = Seed::new(1).stream("attention");
        let mut random = |shape: [usize; 4]| {
            Array4::<f64>::from_shape_simple_fn(shape, || standard_normal(&mut stream))
        };
        let [q, k, v] = [2, 2, 3].map(|width| random([1, 2, length, width]));
        let [w1, w2] = [(); 2].map(|()| random([1, 2, 2, 2]));
        let (first, second) = (w1.view(), w2.view());
        let points = Points::Nonstationary {
            w1: first,
            w2: second,
        };
        let squared = Settings::squared(Points::Stationary { w: w1.view() }, 1e-2, &causal);
        let features = Settings::random_features(
            w1.index_axis(Axis(0), 0),
            RandomFeatureMap::Positive,
            Trained::Yes,
            &causal,
        );
        let in_linear_time = Settings {
            form: Form::LinearTime,
            ..squared.clone()
        };
        let all = [
            Settings::softmax(&causal),
            Settings::rbf(&causal),
            Settings::expsin(1.3, &causal),
            Settings::linear(&causal),
            Settings::bipolar(0.5, 1.0, &causal),
            Settings::squared(points, 1e-2, &causal),
            features,
            squared,
            in_linear_time,
        ];
        let (q, k, v) = (q.view(), k.view(), v.view());
        let (batch, heads) = (1, 2);
        let size = DecoderSize {
            batch,
            heads,
            width: 2,
            value_width: 3,
        };
        let mut gradients = Vec::new();
        for settings in all {
            let magnitude = match settings.kernel().has_logits() {
                true => Magnitude::Norm { p: 1.5 },
                false => Magnitude::None,
            };
            let settings = Settings {
                magnitude,
                ..settings
            };
            let attended = attend(q, k, v, &settings).unwrap();
            let decoded = Decoder::new(&settings, size).unwrap().step(q, k, v);
            let difference = decoded.unwrap() - &attended.output;
            assert!(difference.iter().all(|x| x.abs() < 1e-12), "{settings:?}");
            gradients.push(attend_vjp(&attended, attended.output.view()).unwrap());
        }
        let [.., pairs, sums] = &gradients[..] else {
            panic!("two forms of the squared kernel");
        };
        for (pairs, sums) in [
            (&pairs.q, &sums.q),
            (&pairs.k, &sums.k),
            (&pairs.v, &sums.v),
        ] {
            assert!((pairs - sums).iter().all(|x| x.abs() < 1e-12));
        }
    }
}
