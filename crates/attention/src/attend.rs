//! Attention itself: weights, outputs and their vector-Jacobian product.

use crate::call::units::{divided, multiply_finite};
use crate::call::{Call, Origin, Prepared, slab, write_row_major};
use crate::engine::linear_time::Starts;
use crate::engine::{Cotangent, HeadGradients, OutputRows, RowStatistics, blocks};
use crate::error::same_shape;
use crate::similarity::PointsGradients;
use crate::{Error, Form, Settings, Workspace};
use bochner_numerics::memory::{Unwritten, overwritten_by, written_by};
use bochner_numerics::{Buffer, Real, parallel};
use ndarray::{Array4, ArrayView2, ArrayView4, ArrayViewMut4, s};

/// The output of [`attend`], and what [`attend_vjp`] needs again.
#[derive(Debug)]
pub struct Attended<T> {
    /// The attended values, `[B, M, Tq, dv]`.
    pub output: Array4<T>,
    pub(crate) state: State<T>,
}

/// What is kept between the passes besides the output.
#[derive(Debug)]
pub(crate) struct State<T> {
    heads: Buffer<Prepared<T>>,
    /// Of each row of each head.
    statistics: Buffer<RowStatistics<T>>,
    /// Of the parts of each head, if the linear-time form was taken.
    starts: Option<Starts<T>>,
    /// The power of two by which values were divided for these.
    unit: i32,
    origin: Origin,
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
    /// With respect to the spectral points, if the similarity has any.
    pub points: Option<PointsGradients<T>>,
}

/// Attention: $o_i = \sum_j \alpha_{ij} v_j$, $\alpha_{ij} = s_{ij} e^{m_j} / \sum_l s_{il} e^{m_l}$.
///
/// *where* s is the [`Similarity`](crate::Similarity), m the [`Magnitude`](crate::Magnitude), and
/// j, l run over the keys that the [`Mask`](crate::Mask) keeps.
///
/// Every head's features are kept for [`attend_vjp`]; where no gradient will be asked for,
/// [`attend_into`] keeps none and is faster.
///
/// # Shapes
/// `q: [B, M, Tq, d]`, `k: [B, M, Tk, d]`, `v: [B, M, Tk, dv]` to `[B, M, Tq, dv]`; spectral
/// points `[1 or B, M, R, d]`.
///
/// # Errors
/// [`Error::ShapeMismatch`], [`Error::Empty`], [`Error::Mask`], [`Error::OutOfRange`] for a
/// `p` or floor out of range, or [`Error::Unsupported`] for settings that do not go together.
///
/// # Numerics
/// Blocked: no `[Tq, Tk]` array is stored; O(Tq Tk (R + dv)) time, O(T (R + dv)) memory, or for long
/// sequences under a squared kernel O(T R² dv) time, see [`Form`].
/// Magnitudes are compared by their logarithms, so weights are right even where a magnitude
/// overflows. A row without a kept key has a zero output; if all kept similarities of a row are
/// exactly zero, its weights are those of the magnitudes alone. Finite arguments have finite outputs.
/// A query or key that is not a number makes the rows that meet it NaN, a value its column of them, a
/// spectral point its head; an infinite distance is a whole number of periods. Other infinite arguments
/// give infinity or NaN, and which may depend on the form. The result is the same to the bit for any number
/// of threads; it differs by rounding between [instruction sets](bochner_numerics::instructions), of which
/// `BOCHNER_INSTRUCTIONS` chooses one.
///
/// # Reference
/// Song et al. 2021, equations 8, 9, 12-16.
///
/// ```
/// use bochner_attention::{Form, Magnitude, Mask, Settings, Similarity, attend};
/// use ndarray::Array4;
///
/// let q = Array4::from_shape_fn((1, 2, 3, 4), |(_, m, t, n)| (m + t * n) as f64 * 0.1);
/// let settings = Settings {
///     similarity: Similarity::Rbf,
///     magnitude: Magnitude::Norm { p: 2.0 },
///     mask: &Mask::none().with_causality(),
///     dropout: None,
///     form: Form::Automatic,
/// };
/// let attended = attend(q.view(), q.view(), q.view(), &settings)?;
/// // The first row sees only itself.
/// assert_eq!(attended.output[[0, 1, 0, 2]], q[[0, 1, 0, 2]]);
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn attend<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    settings: &Settings<T>,
) -> Result<Attended<T>, Error> {
    let workspace = Workspace::new();
    let mut call = Call::new(q, k, v, settings, &workspace)?;
    let form = call.form()?;
    let (rows, width) = (call.queries, call.value_width());
    let (mut state, length) = (None, call.shape(rows, width).iter().product());
    let [mut output] = written_by([length], |[output]| {
        state = Some(call.attend(form, true, output));
    });
    let state = state.expect("attended");
    multiply_finite(&mut output, state.unit);
    let output = call.array(rows, width, output);
    Ok(Attended { output, state })
}

/// [`attend`] into an array that is there already, in memory that is there already: no array is
/// allocated once a call of the same shapes and settings has gone before with the same
/// [`Workspace`], which says what threads add to that.
///
/// The output is that of [`attend`] to the bit. Arrays that are not in row-major order are copied into
/// the workspace.
///
/// # Shapes
/// The shapes of [`attend`]; `output: [B, M, Tq, dv]`.
///
/// # Errors
/// As [`attend`], and [`Error::ShapeMismatch`] if the output does not fit; it is as before then.
///
/// ```
/// use bochner_attention::{Form, Magnitude, Mask, Settings, Similarity, Workspace, attend_into};
/// use ndarray::Array4;
///
/// let settings = Settings {
///     similarity: Similarity::Rbf,
///     magnitude: Magnitude::Norm { p: 2.0 },
///     mask: &Mask::none(),
///     dropout: None,
///     form: Form::Automatic,
/// };
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
    let mut call = Call::new(q, k, v, settings, workspace)?;
    let shape = call.shape(call.queries, call.value_width());
    same_shape("output", &shape, output.shape())?;
    let form = call.form()?;
    write_row_major(output, &workspace.numbers, |output| {
        let state = overwritten_by(output, |output| call.attend(form, false, output));
        multiply_finite(output, state.unit);
    });
    Ok(())
}

impl<T: Real> Call<'_, '_, T> {
    /// Writes the attended values in the unit of the state, which is of no other use unless it is kept.
    fn attend(&mut self, form: Form, keep: bool, output: Unwritten<T>) -> State<T> {
        let unit = self.unit_of_values(self.largest_value(), self.keys);
        self.divide_values(unit);
        let mut statistics = self.statistics(self.all_heads() * self.queries);
        let out = OutputRows {
            output,
            statistics: &mut statistics,
        };
        let (heads, starts) = match form {
            Form::LinearTime => {
                let heads = self.prepare(form);
                let starts = self.in_linear_time(&heads, out);
                (heads, Some(starts))
            }
            _ => (self.pair_by_pair(keep, out), None),
        };
        State {
            heads,
            statistics,
            starts,
            unit,
            origin: self.origin(),
        }
    }

    /// What a head needs is made and packed when its turn comes, so that it comes from the cache; if
    /// it is not kept, the next head's takes the same memory.
    fn pair_by_pair(&self, keep: bool, out: OutputRows<T>) -> Buffer<Prepared<T>> {
        let (queries, chunk) = (self.queries, self.chunk());
        let heads = self.all_heads();
        let mut prepared = self.workspace.prepared.empty(heads);
        prepared.resize_with(heads, Prepared::default);
        let attend = |h: usize, (rows, prepared): (OutputRows<T>, &mut [Prepared<T>])| {
            let [prepared] = prepared else {
                unreachable!("one a head")
            };
            *prepared = self.prepare_head(h, Form::Quadratic);
            let head = self.head(h, prepared);
            let packed = head.pack();
            let head = head.with(&packed);
            parallel::for_each_piece(
                rows,
                queries.div_ceil(chunk),
                |rows, i, next| rows.split_at((next - i) * chunk),
                |i, rows| head.forward(i * chunk, rows),
            );
            if !keep {
                *prepared = Prepared::default();
            }
        };
        parallel::for_each_piece(
            (out, &mut prepared[..]),
            heads,
            |(rows, prepared), h, next| {
                let (rows, more_rows) = rows.split_at((next - h) * queries);
                let (prepared, more) = prepared.split_at_mut(next - h);
                ((rows, prepared), (more_rows, more))
            },
            attend,
        );
        prepared
    }
}

/// The vector-Jacobian product of [`attend`].
///
/// With $P$ the weights and $G_{ij} = dO_i \cdot v_j - dO_i \cdot O_i$: $dV = P^T dO$,
/// $dm_j = \sum_i P_{ij} G_{ij}$, $df_{ij} = 2 f_{ij} g_j G_{ij} / Z_i$, and back through the
/// features.
///
/// # Shapes
/// `cotangent: [B, M, Tq, dv]`; the gradients have the shapes of what they belong to.
///
/// # Errors
/// As [`attend`]; [`Error::ShapeMismatch`] if the cotangent does not fit, [`Error::ForeignForward`] if
/// `attended` is of other shapes or lengths, or of another kind of similarity, magnitude or dropout.
/// That it is of other numbers, or of another floor, is not noticed. The form is that of `attended`; of
/// `settings.form` only the size of blocks is used.
///
/// # Numerics
/// The same blocks are recomputed: memory stays O(T). Gradients of masked keys and values, and of
/// rows without a kept key, are exactly zero. What would overflow is computed in other units; a
/// gradient beyond the type's range is its largest number, never NaN.
pub fn attend_vjp<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    settings: &Settings<T>,
    attended: &Attended<T>,
    cotangent: ArrayView4<T>,
) -> Result<AttentionGradients<T>, Error> {
    let Attended { output, state } = attended;
    state.pull_back(q, k, v, settings, output.view(), cotangent)
}

impl<T: Real> State<T> {
    /// [`attend_vjp`], for callers that keep the output elsewhere.
    pub(crate) fn pull_back(
        &self,
        q: ArrayView4<T>,
        k: ArrayView4<T>,
        v: ArrayView4<T>,
        settings: &Settings<T>,
        output: ArrayView4<T>,
        cotangent: ArrayView4<T>,
    ) -> Result<AttentionGradients<T>, Error> {
        let workspace = Workspace::new();
        let mut call = Call::new(q, k, v, settings, &workspace)?;
        let shape = call.shape(call.queries, call.value_width());
        same_shape("attended output", &shape, output.shape())?;
        same_shape("cotangent", &shape, cotangent.shape())?;
        let mechanism = "attend_vjp";
        if !call.is_that_of(self.origin, &self.heads) {
            return Err(Error::ForeignForward { mechanism });
        }
        let mut units = call.units(&self.heads, cotangent);
        // The values of the linear-time form's sums are divided already.
        units.values = units.values.max(self.unit);
        call.divide_values(units.values);
        let (output, cotangent) = (
            divided(output, units.values),
            divided(cotangent, units.cotangents),
        );
        let (output, cotangent) = (output.as_standard_layout(), cotangent.as_standard_layout());
        let given = (0..self.heads.len()).map(|h| Cotangent {
            statistics: &self.statistics[h * call.queries..(h + 1) * call.queries],
            output: slab(output.view(), h),
            cotangent: slab(cotangent.view(), h),
        });
        let given: Vec<Cotangent<T>> = given.collect();
        Ok(match &self.starts {
            Some(starts) => {
                let more = units.values - self.unit;
                let part = |h: usize| {
                    call.back_in_linear_time(h, &self.heads, &starts[h], &given[h], more)
                };
                call.pull_back(&self.heads, part, units)
            }
            None => {
                let part = |h: usize| self.back_pair_by_pair(&call, h, &given[h]);
                call.pull_back(&self.heads, part, units)
            }
        })
    }

    fn back_pair_by_pair(
        &self,
        call: &Call<T>,
        h: usize,
        given: &Cotangent<T>,
    ) -> HeadGradients<T> {
        let chunks: Vec<_> = blocks(0..call.queries, call.chunk()).collect();
        let head = call.head(h, &self.heads[h]);
        let packed = head.pack_for_backward();
        let head = head.with(&packed);
        let part = |i: usize| head.backward(chunks[i].clone(), given);
        let mut parts = parallel::map(chunks.len(), part).into_iter();
        let mut whole = parts.next().expect("there are queries");
        parts.for_each(|part| whole.join(part));
        whole
    }
}

/// The normalised weights $\alpha$, `[B, M, Tq, Tk]`, before dropout.
///
/// Takes O(Tq Tk) memory: for looking at, not for computing with. They are those of the quadratic form,
/// whatever form `settings` ask for.
///
/// # Shapes
/// `q: [B, M, Tq, d]`, `k: [B, M, Tk, d]`.
///
/// # Errors
/// As [`attend`].
pub fn weights<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    settings: &Settings<T>,
) -> Result<Array4<T>, Error> {
    let workspace = Workspace::new();
    let call = Call::new(q, k, k, settings, &workspace)?;
    let heads = call.prepare(Form::Quadratic);
    let mut weights = Array4::zeros(call.shape(call.queries, call.keys));
    let rows = |h, block| call.head(h, &heads[h]).weights(block);
    for (h, block, rows) in call.by_blocks(call.blocks.queries, rows) {
        let (b, m) = (h / call.heads, h % call.heads);
        let kept = call.kept(h);
        let rows = ArrayView2::from_shape((block.len(), kept), &rows).expect("one row a query");
        weights.slice_mut(s![b, m, block, ..kept]).assign(&rows);
    }
    Ok(weights)
}
