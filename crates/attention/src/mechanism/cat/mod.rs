//! CAT: one distribution a head over the lags, which turns with the position.

mod causal;
mod circular;
mod scores;

use crate::mechanism::{Cotangents, Forward, Gradients, Inspection, Mechanism, Pass, Streams};
use crate::{
    Card, Error, Mask, Support,
    card::{Masks, Stream, Symmetry},
};
use bochner_numerics::row_major::RowMajor;
use bochner_numerics::{Buffers, DropoutMask, Mat, Real, argument, parallel};
use ndarray::{Array4, ArrayView4};
use scores::{Distribution, Scores, softmax};
use serde::{Deserialize, Serialize};

/// Circular-convolutional attention: a softmax over the sequence, one a head, that is turned by a place for each
/// row.
///
/// $$o_i = \sum_{l=0}^{n-1} z^{\ast}\_l v_{(i + l) \bmod n} \qquad z^{\ast} = \mathrm{softmax}(z)$$
///
/// where n is the example's own length, $z_l$ a score, and the lag of the value is read along the sequence or
/// against it, as the [form](CatForm) says. Rows beyond n are zero. Dropout takes lags: each of $z^*$, for all rows
/// of a head.
///
/// # Shapes
/// Scores `[B, M, T, 1]` (queries and keys `[B, M, T, d]` for [`CatForm::AveragedKey`]) and values `[B, M, T, dv]`.
///
/// # Errors
/// A mask by a matrix and another sequence's values have no circulant: [`Error::Unsupported`].
///
/// # Numerics
/// $O(n \log n d_v)$ time and $O(n d_v)$ memory by Fourier transforms of the true length, whose error is relative
/// to the largest value of a column; $O(n^2 d_v)$ time for [`CatForm::Causal`]. One thread works on a head.
///
/// # Reference
/// Yamada 2025, "CAT: circular-convolutional attention for sub-quadratic transformers".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Cat {
    /// The source of the scores, and the value that each lag reads.
    pub form: CatForm,
}

/// The forms of [`Cat`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CatForm {
    /// The paper's: $o_i = \sum_l z^{\ast}\_l v_{(i + l) \bmod n}$.
    #[default]
    Correlation,
    /// The transposed circulant: $o_i = \sum_l z^{\ast}\_l v_{(i - l) \bmod n}$.
    Convolution,
    /// Ours, not the paper's: $o_i = \sum_{l \le i} e^{z_l} v_{i-l} / \sum_{l \le i} e^{z_l}$.
    ///
    /// Row i depends on nothing after position i, to the bit, which no Fourier transform of the whole sequence
    /// can promise: products with the weights of some rows at a time replace it. The form is causal with a causal mask and without one.
    Causal,
    /// The paper's qkv form: [`CatForm::Correlation`] with the scores $z_i = q_i \cdot \bar k / \sqrt d$, where
    /// $\bar k$ is the mean of the keys.
    AveragedKey,
}

impl CatForm {
    /// Returns the index, out of n values, that lag `l` of row `i` reads.
    fn place(self, i: usize, l: usize, n: usize) -> usize {
        match self {
            Self::Correlation | Self::AveragedKey => (i + l) % n,
            Self::Convolution | Self::Causal => (i + n - l) % n,
        }
    }
}

/// The arguments of one pass, checked, in row-major order.
struct Call<'a, T> {
    scores: Scores<'a, T>,
    values: RowMajor<'a, T>,
    shape: [usize; 4],
    mask: &'a Mask,
    dropout: Option<DropoutMask>,
    buffers: Buffers<T>,
}

impl<'a, T: Real> Call<'a, T> {
    fn new(cat: &Cat, inputs: &Streams<'a, T>, flat: &[T], pass: &Pass) -> Result<Self, Error> {
        argument::shape("parameters", &[0], &[flat.len()])?;
        Mechanism::<T>::card(cat).admit(inputs)?;
        let buffers = Buffers::default();
        let (scores, values) = match cat.form {
            CatForm::AveragedKey => {
                let [q, k, v] = inputs.get()?;
                argument::shape("k", q.shape(), k.shape())?;
                argument::not_empty("k", k.shape())?;
                inputs.check_range("q", q)?;
                inputs.check_range("k", k)?;
                (
                    Scores::OfPairs([q, k].map(|x| RowMajor::new(x, &buffers))),
                    v,
                )
            }
            _ => {
                let [scores, v] = inputs.get()?;
                let (batch, heads, time, _) = scores.dim();
                argument::shape("the scores", &[batch, heads, time, 1], scores.shape())?;
                (Scores::Given(RowMajor::new(scores, &buffers)), v)
            }
        };
        let ([batch, heads, time], width) = (scores.shape(), values.dim().3);
        argument::shape("v", &[batch, heads, time, width], values.shape())?;
        argument::not_empty("v", values.shape())?;
        inputs.mask.check([batch, heads, time, time])?;
        inputs.check_range("v", values)?;
        Ok(Self {
            scores,
            shape: [batch, heads, time, width],
            values: RowMajor::new(values, &buffers),
            mask: inputs.mask,
            dropout: pass.weight_dropout()?,
            buffers,
        })
    }

    /// The length n of the example of head `h` of all heads.
    fn length(&self, h: usize) -> usize {
        let [_, heads, time, _] = self.shape;
        self.mask.key_limit(h / heads, time)
    }

    /// The first n rows of head `h` of an array `[B, M, T, width]` in row-major order.
    fn rows<'b>(&self, x: ArrayView4<'b, T>, h: usize) -> Mat<'b, T> {
        let (_, _, time, width) = x.dim();
        let x = x.to_slice().expect("row-major");
        let n = self.length(h);
        Mat::new(&x[h * time * width..][..n * width], n, width)
    }

    /// Returns the distribution of head `h` over its lags.
    fn distribution(&self, h: usize) -> Distribution<T> {
        let [_, _, time, _] = self.shape;
        let n = self.length(h);
        let mut factors = Vec::new();
        if let Some(dropout) = self.dropout {
            factors.resize(n, T::one());
            dropout.factors((h * time) as u64, &mut factors);
        }
        Distribution {
            scores: self.scores.of_head(self, h),
            factors,
        }
    }

    /// An array `[B, M, T, width]` of which `f` writes the first n rows of each head.
    fn by_heads(&self, width: usize, f: impl Fn(usize, &mut [T]) + Send + Sync) -> Array4<T> {
        let [batch, heads, time, _] = self.shape;
        let mut data = vec![T::zero(); batch * heads * time * width];
        parallel::for_each_chunk(&mut data, time * width, |h, data| {
            let n = self.length(h);
            if n > 0 {
                f(h, &mut data[..n * width]);
            }
        });
        Array4::from_shape_vec((batch, heads, time, width), data).expect("one slab a head")
    }
}

impl<T: Real> Mechanism<T> for Cat {
    fn card(&self) -> Card {
        let circulant = Card {
            name: "cat",
            title: "a softmax over the sequence, turned by a place for each row",
            paper: "Yamada 2025",
            streams: &[Stream::Scores, Stream::Values],
            masks: Masks::Lengths,
            causal: Support::No {
                instead: "the form `causal` of CAT",
            },
            cross: Support::No {
                instead: "softmax attention, or queries, keys and values of one sequence",
            },
            linear_form: Support::No {
                instead: "its only form",
            },
            constant_state: Support::No {
                instead: "the forward pass of the whole sequence",
            },
            shared_keys: Support::No {
                instead: "as many heads of values as there are heads",
            },
            symmetry: Symmetry::CyclicShiftsOfValues,
            ..Card::PAIRWISE
        };
        match self.form {
            CatForm::Correlation => circulant,
            CatForm::Convolution => Card {
                name: "cat-convolution",
                title: "CAT against the sequence: the transposed circulant",
                ..circulant
            },
            CatForm::Causal => Card {
                name: "cat-causal",
                title: "a causal form of CAT, ours and not the paper's",
                causal: Support::Yes,
                symmetry: Symmetry::None,
                ..circulant
            },
            CatForm::AveragedKey => Card {
                name: "cat-averaged-key",
                title: "CAT with scores by queries and the mean of the keys",
                streams: Card::PAIRWISE.streams,
                ..circulant
            },
        }
    }

    fn forward(&self, inputs: &Streams<T>, flat: &[T], pass: &Pass) -> Result<Forward<T>, Error> {
        let call = Call::new(self, inputs, flat, pass)?;
        let output = call.by_heads(call.shape[3], |h, output| {
            let (distribution, values) = (call.distribution(h), call.rows(call.values.view(), h));
            match self.form {
                CatForm::Causal => causal::attend(&distribution, values, &call.buffers, output),
                form => circular::attend(form, &distribution, values, &call.buffers, output),
            }
        });
        Ok(Forward::unpenalised(output, self.clone()))
    }

    fn backward(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let call = Call::new(self, inputs, flat, pass)?;
        let mechanism = Mechanism::<T>::card(self).name;
        if forward.saved::<Self>(mechanism)? != self {
            return Err(Error::ForeignForward { mechanism });
        }
        argument::shape("the cotangent", &call.shape, cotangent.output.shape())?;
        argument::shape("the forward pass", &call.shape, forward.output.shape())?;
        let pair = [cotangent.output, forward.output.view()];
        let pair = pair.map(|x| RowMajor::new(x, &call.buffers));
        let [batch, heads, time, width] = call.shape;
        let mut slopes = vec![Vec::new(); batch * heads];
        let mut of_values = Array4::zeros(call.shape);
        let slabs = of_values.as_slice_mut().expect("row-major");
        let slabs = slabs.chunks_exact_mut(time * width);
        let heads: Vec<_> = slopes.iter_mut().zip(slabs).enumerate().collect();
        parallel::for_each(heads, |(h, (slope, of_values))| {
            let n = call.length(h);
            if n == 0 {
                return;
            }
            let (distribution, values) = (call.distribution(h), call.rows(call.values.view(), h));
            let [g, output] = pair.each_ref().map(|x| call.rows(x.view(), h));
            let (buffers, of_values) = (&call.buffers, &mut of_values[..n * width]);
            *slope = match self.form {
                CatForm::Causal => {
                    causal::pull(&distribution, values, (g, output), buffers, of_values)
                }
                form => circular::pull(form, &distribution, values, g, buffers, of_values),
            };
        });
        let mut streams = call.scores.pull(&call, &slopes);
        streams.push(of_values);
        Ok(Gradients::new(streams, Vec::new()))
    }

    fn inspect(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
    ) -> Result<Inspection<T>, Error> {
        let call = Call::new(self, inputs, flat, pass)?;
        let time = call.shape[2];
        let weights = call.by_heads(time, |h, weights| {
            let n = call.length(h);
            let scores = call.scores.of_head(&call, h);
            let all = softmax(&scores);
            for (i, row) in weights.chunks_exact_mut(time).enumerate() {
                let seen = match self.form {
                    CatForm::Causal => &softmax(&scores[..=i]),
                    _ => &all,
                };
                for (l, &w) in seen.iter().enumerate() {
                    row[self.form.place(i, l, n)] = w;
                }
            }
        });
        Ok(Inspection::of(weights))
    }
}
