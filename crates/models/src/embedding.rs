//! Words as vectors, ready for an encoder.

use crate::Error;
use crate::encoder::Sequences;
use crate::positions::Positions;
use crate::training::device_error;
use bochner_attention::Pass;
use bochner_nn::{Element, Embedding, Parameter, ParameterMut, Parameters, TapeInputs, record_one};
use bochner_numerics::{ArgumentError, DropoutMask, Real, Seed, argument};
use bochner_ops::rows::add;
use bochner_ops::{
    BoxError, CrossEntropy, Mode, Operation, PackedAffine, Slot, dropout_mask, given, slices, slots,
};
use bochner_text::Padded;
use dfdx::shapes::HasShape;
use dfdx::tensor::{Cpu, Tape, Tensor, TensorFromVec};
use ndarray::ArrayViewD;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Settings of a [`WordEmbedding`]; by default the table's rows alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct WordEmbeddingConfig {
    /// The factor of the table's rows.
    pub scale: EmbeddingScale,
    /// The positions that are added to the rows.
    pub positions: Positions,
    /// The rate of the dropout on the sum of both, at least 0 and below 1.
    pub dropout: f64,
}

bochner_numerics::checked_when_read!(WordEmbeddingConfig);

impl WordEmbeddingConfig {
    pub(crate) fn validate(&self) -> Result<(), ArgumentError> {
        self.positions.validate()?;
        argument::rate("dropout", self.dropout)
    }
}

/// The factor of the rows in a table of words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmbeddingScale {
    /// Rows stay as they are, and start standard normal.
    #[default]
    One,
    /// Rows are multiplied by $\sqrt d$, their width, and start normal with the variance $1/d$: the products start
    /// standard normal, and move $\sqrt d$ times as far in a step of Adam.
    RootOfWidth,
}

/// The vectors of words at their positions.
///
/// $$ x_{bt} = \mathrm{dropout}\bigl(s W_{i_{bt}} + P_t\bigr) $$
///
/// *where*
///
/// * $i$: the words' numbers, `[B, T]`
/// * $W$: the table, `[words, d]`, the only parameter
/// * $s$: 1 or $\sqrt d$, see [`EmbeddingScale`]
/// * $P$: zero or [`sinusoidal_positions`](crate::positions::sinusoidal_positions)
///
/// # Reference
/// Vaswani et al., *Attention Is All You Need*, 2017, sections 3.4, 3.5 and 5.4.
#[derive(Clone, Debug)]
pub struct WordEmbedding<E: Element> {
    table: Embedding<E>,
    width: usize,
    scale: f64,
    positions: Option<Arc<Vec<E>>>,
    dropout: f64,
}

impl<E: Element> WordEmbedding<E> {
    /// A table with random initial values.
    ///
    /// # Errors
    /// [`Error::Argument`] for a setting that is out of range, [`Error::Nn`] for sizes that are zero or cannot
    /// be addressed.
    pub fn try_new(
        device: &Cpu,
        words: usize,
        width: usize,
        config: &WordEmbeddingConfig,
        seed: Seed,
    ) -> Result<Self, Error> {
        config.validate()?;
        let mut stream = seed.stream("initial values");
        let mut table = Embedding::try_new(device, words, width, &mut stream)?;
        let scale = match config.scale {
            EmbeddingScale::One => 1.0,
            EmbeddingScale::RootOfWidth => (width as f64).sqrt(),
        };
        if scale != 1.0 {
            let (mut values, shrink) = (Vec::new(), E::of(scale.recip()));
            table.read_into(&mut values);
            values.iter_mut().for_each(|x| *x *= shrink);
            table.write(&values);
        }
        Ok(Self {
            table,
            width,
            scale,
            positions: config.positions.table(width)?.map(Arc::new),
            dropout: config.dropout,
        })
    }

    /// The vectors of sentences `[B, T]`, `[B, T, width]`.
    ///
    /// # Errors
    /// [`Error::TooLong`] for sentences longer than the table of positions, padding included;
    /// [`Error::Nn`] for a word that is not in the table of words.
    pub fn apply<T: Tape<E, Cpu>>(
        &self,
        words: Tensor<(usize, usize), usize, Cpu, T>,
        pass: Pass,
    ) -> Result<Sequences<E, T>, Error> {
        let &(_, time) = words.shape();
        self.fits(time)?;
        let mask = dropout_mask(self.dropout, Mode::from(pass).child("embedding"))?;
        let rows = self.table.apply(words)?;
        if self.scale == 1.0 && self.positions.is_none() && mask.is_none() {
            return Ok(rows);
        }
        let (shape, positions) = (*rows.shape(), self.positions.clone());
        let placed = Placed {
            scale: E::of(self.scale),
            positions,
            mask,
        };
        Ok(record_one(
            placed,
            TapeInputs::<E, T>::new().with(rows)?,
            shape,
        )?)
    }

    /// The products of vectors `[B, T, width]` with the table's rows, `[B T, words]`: the logits of an output that is
    /// tied to the table.
    ///
    /// # Errors
    /// [`Error::Nn`] for another width.
    pub fn logits<T: Tape<E, Cpu>>(
        &self,
        x: Sequences<E, T>,
    ) -> Result<Tensor<(usize, usize), E, Cpu, T>, Error> {
        Ok(self.table.logits(x)?)
    }

    /// The mean cross-entropy of these logits for some rows of them, which are not held:
    /// [`bochner_nn::Embedding::cross_entropy`].
    ///
    /// # Errors
    /// [`Error::Nn`] for another width, and a row or a label that is not there.
    pub fn cross_entropy<T: Tape<E, Cpu>>(
        &self,
        x: Sequences<E, T>,
        loss: CrossEntropy,
    ) -> Result<Tensor<(), E, Cpu, T>, Error> {
        Ok(self.table.cross_entropy(x, loss)?)
    }

    /// Writes the vectors of one word each, all at one position, `[B, width]`, without dropout.
    ///
    /// # Errors
    /// [`Error::TooLong`] for a position behind the table, [`Error::Argument`] for a word that is not in it.
    pub(crate) fn write_at(
        &self,
        words: &[usize],
        position: usize,
        vectors: &mut [E],
    ) -> Result<(), Error> {
        self.fits(position + 1)?;
        let places = position * self.width..(position + 1) * self.width;
        let scale = E::of(self.scale);
        for (vector, &word) in vectors.chunks_exact_mut(self.width).zip(words) {
            argument::index("words", word, self.words())?;
            let row = self.table.row(word).iter();
            vector
                .iter_mut()
                .zip(row)
                .for_each(|(y, &x)| *y = scale * x);
            if let Some(positions) = &self.positions {
                add(vector, &positions[places.clone()]);
            }
        }
        Ok(())
    }

    /// [`logits`](Self::logits) as a map, packed for many calls.
    pub(crate) fn packed_logits(&self) -> PackedAffine<E> {
        self.table.packed()
    }

    /// The width of the vectors.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Refuses sentences that the table of positions is too short for.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    pub(crate) fn fits(&self, got: usize) -> Result<(), Error> {
        match self.longest() {
            Some(longest) if got > longest => Err(Error::TooLong { got, longest }),
            _ => Ok(()),
        }
    }

    /// The length of the table of positions; `None` where there is none.
    pub(crate) fn longest(&self) -> Option<usize> {
        let table = self.positions.as_ref()?;
        Some(table.len() / self.width)
    }

    /// The number of words.
    pub fn words(&self) -> usize {
        self.table.words()
    }
}

impl<E: Element> Parameters<E> for WordEmbedding<E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.table.for_each(prefix, f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.table.for_each_mut(prefix, f);
    }
}

/// Padded sequences of words as a tensor.
pub(crate) fn tensor(batch: &Padded) -> Result<Tensor<(usize, usize), usize, Cpu>, Error> {
    let shape = (batch.lengths.len(), batch.width);
    let words = Cpu::default().try_tensor_from_vec(batch.numbers.clone(), shape);
    words.map_err(device_error)
}

/// Rows of a table, scaled, at their positions, with dropout: an operation on `[B, T, d]`.
struct Placed<T> {
    scale: T,
    /// Positions, row by row, for at least the length of the sequences.
    positions: Option<Arc<Vec<T>>>,
    mask: Option<DropoutMask>,
}

/// Multiplications that take as long as one element.
const WORK: usize = 8;

impl<T: Real> Operation<T> for Placed<T> {
    type Saved = ();

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [x] = given(inputs)?;
        argument::shape("axes of x", &[3], &[x.len()])?;
        Ok(vec![x.to_vec()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<(), BoxError> {
        let ([x], [y]) = (slices(inputs), slots(outputs));
        let [batch, time, width] = [0, 1, 2].map(|axis| inputs[0].shape()[axis]);
        let row = time * width;
        y.by_blocks(batch, x.len() * WORK, |range, piece| {
            piece.write(|piece| {
                let piece = piece.copy_of(&x[range.start * row..range.end * row]);
                piece.iter_mut().for_each(|x| *x *= self.scale);
                if let Some(positions) = &self.positions {
                    let sentences = piece.chunks_exact_mut(row);
                    sentences.for_each(|sentence| add(sentence, &positions[..row]));
                }
                if let Some(mask) = &self.mask {
                    mask.scale((range.start * row) as u64, piece);
                }
            });
        });
        Ok(())
    }

    fn backward(
        &self,
        _: &[ArrayViewD<'_, T>],
        _: &(),
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([dy], [dx]) = (slices(cotangents), slots(gradients));
        let Some(dx) = dx else { return Ok(()) };
        dx.by_pieces(dy.len() * WORK, |range, piece| {
            piece.write(|piece| {
                let piece = piece.copy_of(&dy[range.clone()]);
                piece.iter_mut().for_each(|x| *x *= self.scale);
                if let Some(mask) = &self.mask {
                    mask.scale(range.start as u64, piece);
                }
            });
        });
        Ok(())
    }
}
