//! A table of vectors, looked up by number.

use super::initial::{count, draws};
use crate::bridge::to_vec;
use crate::parameters::{Parameter, ParameterMut, Parameters, join};
use crate::{Element, Error};
use bochner_numerics::{argument, standard_normal};
use bochner_ops::rows::add;
use bochner_ops::{
    CrossEntropy, LinearCrossEntropy, Operation, PackedAffine, Slot, affine, affine_vjp, filled,
    lookup, lookup_vjp,
};
use dfdx::shapes::{Dim, HasShape, Shape};
use dfdx::tensor::{
    Cpu, Gradients, PutTape, SplitTape, Tape, Tensor, TensorFrom, TensorFromVec, UniqueId,
    ZerosTensor,
};
use dfdx::tensor_ops::ReshapeTo;
use ndarray::ArrayView2;
use rand::RngCore;
use std::sync::Arc;

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
    /// A backward pass of [`logits`](Embedding::logits) shares them, until a step changes them.
    values: Arc<Vec<E>>,
    words: usize,
    width: usize,
    /// The key of the gradient, which [`table`] gives its size.
    key: Tensor<(usize,), E, Cpu>,
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
        Ok(Self {
            values: Arc::new(draws(n, || standard_normal(rng))?),
            words,
            width,
            key: device.try_zeros_like(&(1,))?,
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
            argument::index("words", word, self.words)?;
        }
        let [values] = filled([words.len() * self.width], |[rows]| {
            lookup(&self.values, self.width, &words, rows);
        });
        let y = device.try_tensor_from_vec(values, (batch, time, self.width))?;
        if T::OWNS_TAPE {
            let (key, result, size) = (self.key.ghost(), y.ghost(), (self.words, self.width));
            tape.add_backward_op(move |gradients: &mut Gradients<E, Cpu>| {
                let cotangent = std::mem::take(&mut **gradients.get_or_alloc_mut(&result)?);
                let (dw, marks) = table(gradients.get_or_alloc_mut(&key)?, size);
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
        let [batch, time, width] = x.shape().concrete();
        argument::shape("x", &[batch, time, self.width], &[batch, time, width])?;
        argument::not_empty("x", &[batch, time])?;
        let (rows, words) = (batch * time, self.words);
        // Brings a permuted tensor into row-major order.
        let (x, mut tape) = x.try_reshape_like(&(rows * width,))?.split_tape();
        let (vectors, table_values) = (to_vec(&x), Arc::clone(&self.values));
        let zeros = vec![E::zero(); words];
        let [products] = filled([rows * words], |[products]| {
            affine(&vectors, &table_values, &zeros, products, |_, _| ());
        });
        let y = x.device().try_tensor_from_vec(products, (rows, words))?;
        if T::OWNS_TAPE {
            let (key, x, result) = (self.key.ghost(), x.ghost(), y.ghost());
            tape.add_backward_op(move |gradients: &mut Gradients<E, Cpu>| {
                let dy = std::mem::take(&mut **gradients.get_or_alloc_mut(&result)?);
                let mut dtable = Vec::new();
                let place = Some(Slot::new(&mut dtable, table_values.len()));
                let dx = &mut **gradients.get_or_alloc_mut(&x)?;
                let n = dx.len();
                let places = [Some(Slot::new(dx, n)), place, None];
                affine_vjp(&vectors, &table_values, &dy, words, places);
                let (gradient, marks) = table(gradients.get_or_alloc_mut(&key)?, (words, width));
                add(gradient, &dtable);
                marks.fill(E::one());
                **gradients.get_or_alloc_mut(&result)? = dy;
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
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
        let [batch, time, width] = x.shape().concrete();
        argument::shape("x", &[batch, time, self.width], &[batch, time, width])?;
        argument::not_empty("x", &[batch, time])?;
        let (rows, words) = (batch * time, self.words);
        let operation = LinearCrossEntropy(loss);
        Operation::<E>::output_shapes(&operation, &[&[rows, width], &[words, width]])?;
        // Brings a permuted tensor into row-major order.
        let (x, mut tape) = x.try_reshape_like(&(rows * width,))?.split_tape();
        let vectors = to_vec(&x);
        let of = |values, rows| ArrayView2::from_shape((rows, width), values);
        let inputs = [of(&vectors, rows), of(&self.values, words)];
        let inputs = inputs.map(|input| input.expect("a row for each word").into_dyn());
        let mut value = Vec::new();
        let saved = operation.forward(&inputs, vec![Slot::new(&mut value, 1)]);
        let [dx, dtable] = saved.map_err(|source| Error::Operation {
            operation: "LinearCrossEntropy",
            source,
        })?;
        let y = x.device().try_tensor(value[0])?;
        if T::OWNS_TAPE {
            let (key, x, result) = (self.key.ghost(), x.ghost(), y.ghost());
            tape.add_backward_op(move |gradients: &mut Gradients<E, Cpu>| {
                let dloss = gradients.get_or_alloc_mut(&result)?[0];
                add_scaled(gradients.get_or_alloc_mut(&x)?, dloss, &dx);
                let (gradient, marks) = table(gradients.get_or_alloc_mut(&key)?, (words, width));
                add_scaled(gradient, dloss, &dtable);
                marks.fill(E::one());
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }

    /// The map to the products with all rows as it stands, packed once for many calls: for inference.
    pub fn packed(&self) -> PackedAffine<E> {
        PackedAffine::new(&self.values, self.words, None)
    }

    /// The vector of one word.
    ///
    /// # Panics
    /// If it is not in the table.
    pub fn row(&self, word: usize) -> &[E] {
        &self.values[word * self.width..(word + 1) * self.width]
    }

    /// The number of words.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The gradient and its marks.
    fn table<'g>(
        &self,
        gradients: &'g mut Gradients<E, Cpu>,
    ) -> Result<(&'g mut [E], &'g mut [E]), Error> {
        let gradient = gradients.get_or_alloc_mut(&self.key)?;
        Ok(table(gradient, (self.words, self.width)))
    }
}

/// Adds multiples to as many numbers.
fn add_scaled<E: Element>(to: &mut [E], factor: E, values: &[E]) {
    for (to, &value) in to.iter_mut().zip(values) {
        *to += factor * value;
    }
}

/// The gradient of a table, and behind it one mark for each row that may differ from zero.
///
/// The marks travel with the gradient, so that they cannot belong to another one.
fn table<E: Element>(
    gradient: &mut Vec<E>,
    (words, width): (usize, usize),
) -> (&mut [E], &mut [E]) {
    let n = words * (width + 1);
    if gradient.len() != n {
        // Zeros come from the operating system untouched: rows that never occur take no memory.
        *gradient = vec![E::zero(); n];
    }
    gradient.split_at_mut(words * width)
}

impl<E: Element> Parameter<E> for Embedding<E> {
    fn dims(&self) -> Vec<usize> {
        vec![self.words, self.width]
    }

    fn read_into(&self, values: &mut Vec<E>) {
        values.clone_from(&*self.values);
    }

    fn gradient<'g>(&self, gradients: &'g mut Gradients<E, Cpu>) -> Result<&'g [E], Error> {
        Ok(self.table(gradients)?.0)
    }

    fn dense_gradient<'g>(
        &self,
        gradients: &'g mut Gradients<E, Cpu>,
    ) -> Result<&'g mut [E], Error> {
        let (gradient, marks) = self.table(gradients)?;
        marks.fill(E::one());
        Ok(gradient)
    }

    fn id(&self) -> UniqueId {
        self.key.id()
    }

    fn gradient_parts(
        &self,
        gradients: &mut Gradients<E, Cpu>,
        f: &mut dyn FnMut(usize, &mut [E]),
    ) -> Result<(), Error> {
        let (gradient, marks) = self.table(gradients)?;
        let rows = gradient.chunks_exact_mut(self.width).zip(marks);
        for (word, (row, _)) in rows
            .enumerate()
            .filter(|(_, (_, mark))| **mark != E::zero())
        {
            f(word * self.width, row);
        }
        Ok(())
    }

    fn zero_gradient(&self, gradients: &mut Gradients<E, Cpu>) -> Result<(), Error> {
        self.gradient_parts(gradients, &mut |_, row| row.fill(E::zero()))?;
        let (_, marks) = self.table(gradients)?;
        marks.fill(E::zero());
        Ok(())
    }

    fn drain_gradient(
        &self,
        gradients: &mut Gradients<E, Cpu>,
        sum: &mut Gradients<E, Cpu>,
    ) -> Result<(), Error> {
        let (sums, marks) = self.table(sum)?;
        self.gradient_parts(gradients, &mut |start, row| {
            marks[start / self.width] = E::one();
            add(&mut sums[start..start + row.len()], row);
        })?;
        self.zero_gradient(gradients)
    }
}

impl<E: Element> ParameterMut<E> for Embedding<E> {
    fn write(&mut self, values: &[E]) {
        Arc::make_mut(&mut self.values).copy_from_slice(values);
    }

    fn update(
        &mut self,
        gradients: &mut Gradients<E, Cpu>,
        _: &mut Vec<E>,
        f: &mut dyn FnMut(&mut [E], &[E]),
    ) -> Result<(), Error> {
        let (gradient, _) = self.table(gradients)?;
        f(&mut Arc::make_mut(&mut self.values)[..], gradient);
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
