//! A table of vectors, looked up by number.

use super::initial::{count, draws};
use crate::parameters::{Parameter, ParameterMut, Parameters, join};
use crate::{Element, Error, Leaf, TapeInputs, record_one};
use bochner_numerics::{argument, standard_normal};
use bochner_ops::rows::add;
use bochner_ops::{
    Affine, CrossEntropy, LinearCrossEntropy, PackedAffine, filled, lookup, lookup_vjp,
};
use dfdx::shapes::{Dim, HasShape, Shape};
use dfdx::tensor::{Cpu, Gradients, PutTape, SplitTape, Tape, Tensor, TensorFromVec, UniqueId};
use dfdx::tensor_ops::ReshapeTo;
use ndarray::{ArcArray, Array2, Ix2};
use rand::RngCore;

/// A table with a row of `width` numbers for each of `words` words.
///
/// $$ y_{bt} = W_{i_{bt}} $$
///
/// * $i$: the words' numbers, `[B, T]`, each below `words`
/// * $W$: the table, `[words, width]`, starts standard normal, as in PyTorch
/// * $y$: `[B, T, width]`
///
/// # Numerics
/// The table may be by far the largest parameter of a model, of which a step sees a few rows. Hence
/// it is not a tensor of dfdx, which lends no slice of its data: a lookup copies the rows asked for,
/// and [`Adam`](crate::Adam) steps it in place. The backward pass adds to the rows that occurred,
/// and [`zero_gradients`](crate::zero_gradients) clears those alone. To an optimiser the gradient
/// is dense, and zero elsewhere: a row's moments decay and move it also where it does not occur.
///
/// ```
/// use bochner_nn::Embedding;
/// use bochner_numerics::Seed;
/// use bochner_nn::dfdx::prelude::*;
///
/// let device = Cpu::default();
/// let table: Embedding<f32> = Embedding::try_new(&device, 10, 4, &mut Seed::new(1).stream("table"))?;
/// let words = device.tensor_from_vec(vec![3, 3, 9, 0, 1, 2], (2, 3));
/// let y = table.apply(words)?;
/// assert_eq!(y.shape(), &(2, 3, 4));
/// assert_eq!(y.as_vec()[..4], table.row(3)[..]);
/// # Ok::<(), bochner_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Embedding<E: Element> {
    /// The gradient has [marks](marked) behind it.
    table: Leaf<E, Ix2>,
}

impl<E: Element> Embedding<E> {
    /// A table with random initial values.
    ///
    /// # Errors
    /// [`Error::Argument`] if a size is zero or the table cannot be addressed, [`Error::Device`] if there is no
    /// memory for it.
    pub fn try_new(
        device: &Cpu,
        words: usize,
        width: usize,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Self, Error> {
        let n = count::<E>(&[words, width])?;
        // The gradient with its marks, one a word, has to be addressed too.
        count::<E>(&[words, width.saturating_add(1)])?;
        let values = draws(n, || standard_normal(rng))?;
        let values = Array2::from_shape_vec((words, width), values);
        Ok(Self {
            table: Leaf::new(device, values.expect("as many as the shape holds"))?,
        })
    }

    /// The vectors of the words; one operation on the tape.
    ///
    /// # Errors
    /// [`Error::Argument`] for a word that is not in the table, or without words.
    #[expect(clippy::type_complexity, reason = "the tensor types of dfdx are long")]
    pub fn apply<B: Dim, Q: Dim, T: Tape<E, Cpu>>(
        &self,
        words: Tensor<(B, Q), usize, Cpu, T>,
    ) -> Result<Tensor<(B, Q, usize), E, Cpu, T>, Error> {
        let (words, mut tape) = words.split_tape();
        let (batch, time) = *words.shape();
        argument::not_empty("words", &[batch.size(), time.size()])?;
        let (device, words) = (words.device().clone(), words.as_vec());
        for &word in &words {
            argument::index("words", word, self.words())?;
        }
        let width = self.width();
        let [values] = filled([words.len() * width], |[rows]| {
            lookup(self.values(), width, &words, rows);
        });
        let y = device.try_tensor_from_vec(values, (batch, time, width))?;
        if T::OWNS_TAPE {
            let (key, result, words_in_all) = (self.table.key.ghost(), y.ghost(), self.words());
            tape.add_backward_op(move |gradients: &mut Gradients<E, Cpu>| {
                let cotangent = std::mem::take(&mut **gradients.get_or_alloc_mut(&result)?);
                let (dw, marks) = marked(gradients.get_or_alloc_mut(&key)?, words_in_all, width);
                lookup_vjp(&words, &cotangent, dw, marks);
                **gradients.get_or_alloc_mut(&result)? = cotangent;
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }

    /// The products of vectors with all rows, $x W^\top$: the logits of words, where a model's output is tied to its
    /// table. One operation on the tape.
    ///
    /// # Shapes
    /// `x: [B, T, width]` to `[B T, words]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for another width, or without vectors.
    ///
    /// # Reference
    /// Press and Wolf, *Using the Output Embedding to Improve Language Models*, 2017.
    ///
    /// ```
    /// use bochner_nn::Embedding;
    /// use bochner_numerics::Seed;
    /// use bochner_nn::dfdx::prelude::*;
    ///
    /// let device = Cpu::default();
    /// let table: Embedding<f64> = Embedding::try_new(&device, 3, 2, &mut Seed::new(1).stream("table"))?;
    /// let x = device.tensor_from_vec(vec![1.0, 0.0], (1, 1, 2));
    /// let logits = table.logits(x)?;
    /// assert_eq!(logits.as_vec(), [0, 1, 2].map(|word| table.row(word)[0]));
    /// # Ok::<(), bochner_nn::Error>(())
    /// ```
    pub fn logits<B: Dim, Q: Dim, T: Tape<E, Cpu>>(
        &self,
        x: Tensor<(B, Q, usize), E, Cpu, T>,
    ) -> Result<Tensor<(usize, usize), E, Cpu, T>, Error> {
        let (inputs, rows) = self.rows_of(x)?;
        let zeros = ArcArray::from_elem(self.words(), E::zero());
        let inputs = inputs.with_leaf(&self.table).with_constant(zeros)?;
        let y = record_one(Affine, inputs, (rows, self.words()))?;
        Ok(self.reaching_all_rows(y))
    }

    /// The mean cross-entropy of the [logits](Self::logits) of some rows of `x`, `[B T, width]`, as one operation on the
    /// tape that does not hold the logits: [`LinearCrossEntropy`].
    ///
    /// # Errors
    /// [`Error::Argument`] for another width, a row or a label that is not there, or an `x` without rows. Without a label
    /// the loss is 0.
    ///
    /// ```
    /// use bochner_nn::Embedding;
    /// use bochner_numerics::Seed;
    /// use bochner_ops::CrossEntropy;
    /// use bochner_nn::dfdx::prelude::*;
    ///
    /// let device = Cpu::default();
    /// let table: Embedding<f64> = Embedding::try_new(&device, 3, 2, &mut Seed::new(1).stream("table"))?;
    /// let x = device.tensor_from_vec(vec![0.0, 0.0], (1, 1, 2));
    /// let loss = CrossEntropy { labelled: vec![(0, 2)], smoothing: 0.1 };
    /// let loss = table.cross_entropy(x.leaky_trace(), loss)?;
    /// assert!((loss.array() - 3.0_f64.ln()).abs() < 1e-12);
    /// # Ok::<(), bochner_nn::Error>(())
    /// ```
    pub fn cross_entropy<B: Dim, Q: Dim, T: Tape<E, Cpu>>(
        &self,
        x: Tensor<(B, Q, usize), E, Cpu, T>,
        loss: CrossEntropy,
    ) -> Result<Tensor<(), E, Cpu, T>, Error> {
        let (inputs, _) = self.rows_of(x)?;
        let inputs = inputs.with_leaf(&self.table);
        let y = record_one(LinearCrossEntropy(loss), inputs, ())?;
        Ok(self.reaching_all_rows(y))
    }

    /// The rows of `x`, `[B T, width]`, as the first input of an operation, and their number.
    fn rows_of<B: Dim, Q: Dim, T: Tape<E, Cpu>>(
        &self,
        x: Tensor<(B, Q, usize), E, Cpu, T>,
    ) -> Result<(TapeInputs<E, T>, usize), Error> {
        let [batch, time, width] = x.shape().concrete();
        argument::shape("x", &[batch, time, self.width()], &[batch, time, width])?;
        argument::not_empty("x", &[batch, time])?;
        let rows = batch * time;
        let x = x.try_reshape_like(&(rows, width))?;
        Ok((TapeInputs::<E, T>::new().with(x)?, rows))
    }

    /// Removes the marks from the table's gradient before the operation that was recorded last adds to it, since that
    /// operation reaches all rows.
    fn reaching_all_rows<S: Shape, T: Tape<E, Cpu>>(
        &self,
        y: Tensor<S, E, Cpu, T>,
    ) -> Tensor<S, E, Cpu, T> {
        let (y, mut tape) = y.split_tape();
        let (key, n) = (self.table.key.ghost(), self.values().len());
        tape.add_backward_op(move |gradients: &mut Gradients<E, Cpu>| {
            gradients.get_or_alloc_mut(&key)?.truncate(n);
            Ok(())
        });
        y.put_tape(tape)
    }

    /// The map to the products with all rows as it stands, packed once for many calls: for inference.
    pub fn packed(&self) -> PackedAffine<E> {
        PackedAffine::new(self.values(), self.words(), None)
    }

    /// The vector of one word.
    ///
    /// # Panics
    /// If it is not in the table.
    pub fn row(&self, word: usize) -> &[E] {
        &self.values()[word * self.width()..][..self.width()]
    }

    /// The number of words.
    pub fn words(&self) -> usize {
        self.table.view().nrows()
    }

    fn width(&self) -> usize {
        self.table.view().ncols()
    }

    /// All rows, one after the other.
    fn values(&self) -> &[E] {
        let values = self.table.shared().as_slice();
        values.expect("brought to row-major order")
    }

    /// The gradient and its marks.
    fn marked<'g>(
        &self,
        gradients: &'g mut Gradients<E, Cpu>,
    ) -> Result<(&'g mut [E], &'g mut [E]), Error> {
        let gradient = gradients.get_or_alloc_mut(&self.table.key)?;
        Ok(marked(gradient, self.words(), self.width()))
    }
}

/// The gradient of a table, and behind it one mark for each row that may differ from zero.
///
/// The marks travel with the gradient, so that they cannot belong to another one. A gradient without marks may differ
/// from zero in all rows.
fn marked<E: Element>(gradient: &mut Vec<E>, words: usize, width: usize) -> (&mut [E], &mut [E]) {
    let n = words * width;
    if gradient.len() == n {
        gradient.resize(n + words, E::one());
    } else if gradient.len() != n + words {
        // Zeros come from the operating system untouched: rows that never occur take no memory.
        *gradient = vec![E::zero(); n + words];
    }
    gradient.split_at_mut(n)
}

impl<E: Element> Parameter<E> for Embedding<E> {
    fn dims(&self) -> Vec<usize> {
        self.table.dims()
    }

    fn read_into(&self, values: &mut Vec<E>) {
        self.table.read_into(values);
    }

    fn gradient<'g>(&self, gradients: &'g mut Gradients<E, Cpu>) -> Result<&'g [E], Error> {
        Ok(self.marked(gradients)?.0)
    }

    fn dense_gradient<'g>(
        &self,
        gradients: &'g mut Gradients<E, Cpu>,
    ) -> Result<&'g mut [E], Error> {
        let (gradient, marks) = self.marked(gradients)?;
        marks.fill(E::one());
        Ok(gradient)
    }

    fn id(&self) -> UniqueId {
        self.table.id()
    }

    fn gradient_parts(
        &self,
        gradients: &mut Gradients<E, Cpu>,
        f: &mut dyn FnMut(usize, &mut [E]),
    ) -> Result<(), Error> {
        let (gradient, marks) = self.marked(gradients)?;
        let width = self.width();
        let rows = gradient.chunks_exact_mut(width).zip(marks);
        for (word, (row, _)) in rows
            .enumerate()
            .filter(|(_, (_, mark))| **mark != E::zero())
        {
            f(word * width, row);
        }
        Ok(())
    }

    fn zero_gradient(&self, gradients: &mut Gradients<E, Cpu>) -> Result<(), Error> {
        self.gradient_parts(gradients, &mut |_, row| row.fill(E::zero()))?;
        let (_, marks) = self.marked(gradients)?;
        marks.fill(E::zero());
        Ok(())
    }

    fn drain_gradient(
        &self,
        gradients: &mut Gradients<E, Cpu>,
        sum: &mut Gradients<E, Cpu>,
    ) -> Result<(), Error> {
        let (sums, marks) = self.marked(sum)?;
        self.gradient_parts(gradients, &mut |start, row| {
            marks[start / row.len()] = E::one();
            add(&mut sums[start..start + row.len()], row);
        })?;
        self.zero_gradient(gradients)
    }
}

impl<E: Element> ParameterMut<E> for Embedding<E> {
    fn write(&mut self, values: &[E]) {
        self.table.write(values);
    }

    fn update(
        &mut self,
        gradients: &mut Gradients<E, Cpu>,
        _: &mut Vec<E>,
        f: &mut dyn FnMut(&mut [E], &[E]),
    ) -> Result<(), Error> {
        let (gradient, _) = self.marked(gradients)?;
        f(self.table.values_mut(), gradient);
        Ok(())
    }
}

impl<E: Element> Parameters<E> for Embedding<E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        f(&join(prefix, "weight"), self);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        f(&join(prefix, "weight"), self);
    }
}
