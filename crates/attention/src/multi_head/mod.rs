//! The trainable multi-head layer on the tape of dfdx.

mod decoder;
mod inference;
mod maps;
mod module;
mod operation;

use crate::mechanism::Softmax;
use crate::mechanism::Variant;
use crate::mechanism::{Inputs, Inspection, Pass};
use crate::{DecoderSize, Error, Form, Mask};
use bochner_nn::{Element, Linear, TapeInputs, record};
use bochner_numerics::{DropoutMask, Seed, argument};
use bochner_spectral::{ParameterSpec, Size};
pub use decoder::MultiHeadDecoder;
use dfdx::dtypes::Dtype;
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Storage, Tape, Tensor, TensorFromVec};
pub use inference::MultiHeadInference;
use maps::{Map, Maps};
use operation::split_heads;
pub use operation::{MultiHeadOperation, SavedHeads};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// Settings of a [`MultiHead`] layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MultiHeadConfig {
    /// Number of heads; must divide the layer's width.
    pub heads: usize,
    /// The mechanism, with its own settings.
    pub variant: Variant,
    /// Rate of dropout on the normalised weights in [`ModuleMut`](dfdx::nn::ModuleMut)'s training
    /// passes, in `0..1`; elsewhere the [`Pass`] says it.
    pub dropout: f64,
    /// Seed of what is drawn in evaluation (one fixed draw by default), and of
    /// [`ModuleMut`](dfdx::nn::ModuleMut)'s training passes.
    pub seed: Seed,
}

impl Default for MultiHeadConfig {
    fn default() -> Self {
        Self {
            heads: 8,
            variant: Variant::Softmax(Softmax {}),
            dropout: 0.0,
            seed: Seed::new(0),
        }
    }
}

/// Multi-head attention with any mechanism of the registry.
///
/// $$\operatorname{MultiHead}(x, y) = \operatorname{concat}_m(o_m)\, W_o^\top + b_o$$
///
/// where $o_m$ attends from $x W_q^\top + b_q$ to $y W_k^\top + b_k$ and $y W_v^\top + b_v$, head by
/// head. The sizes are `Const<N>` or `usize`, like those of [`Linear`]; `Count` is the number of
/// the mechanism's own parameters ([`MultiHead::kernel_specs`]).
///
/// With sizes known at compile time and settings from a [`StaticConfig`] the layer is an ordinary
/// dfdx module: it builds on a device, saves to safetensors, and fits into tuples of modules.
///
/// ```
/// use bochner_attention::{IkanDirect, Mask, MultiHead, MultiHeadConfig, Pass};
/// use bochner_numerics::Seed;
/// use dfdx::prelude::*;
///
/// let device = Cpu::default();
/// let variant = IkanDirect { p: 1.5, points: 4, ..Default::default() }.into();
/// let config = MultiHeadConfig { heads: 2, variant, ..Default::default() };
/// let mut rng = Seed::new(1).stream("initial values");
/// let layer: MultiHead<usize, f32> = MultiHead::try_new(&device, 8, config, &mut rng)?;
///
/// let x: Tensor<(usize, usize, usize), f32, Cpu> = device.ones_like(&(3, 5, 8));
/// let mask = Mask::none().with_key_lengths(vec![5, 2, 4]);
/// let pass = Pass::Training { seed: Seed::new(2), dropout: 0.1 };
/// let attended = layer.attend_self(x.leaky_trace(), &mask, pass)?;
/// let loss = attended.output.square().mean() + attended.penalty;
/// let gradients = loss.backward();
/// assert_eq!(gradients.get(&layer.query.weight).shape(), &(8, 8));
/// # Ok::<(), bochner_attention::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MultiHead<Embed: Dim, E: Dtype, D: Storage<E> = Cpu, Count: Dim = usize, S = ()> {
    /// The map to the queries.
    pub query: Linear<Embed, Embed, E, D>,
    /// The map to the keys.
    pub key: Linear<Embed, Embed, E, D>,
    /// The map to the values.
    pub value: Linear<Embed, Embed, E, D>,
    /// The map from the concatenated heads to the output.
    pub output: Linear<Embed, Embed, E, D>,
    /// The mechanism's own parameters, laid out by [`MultiHead::kernel_specs`].
    pub kernel: Tensor<(Count,), E, D>,
    config: MultiHeadConfig,
    steps: u64,
    source: PhantomData<S>,
}

/// What a layer gives: the output, and the penalty summed over the batch.
#[derive(Clone, Debug)]
pub struct Attention<Out, Penalty> {
    /// The attended values, `[B, Tq, Embed]`.
    pub output: Out,
    /// What the objective adds, already weighted ($\beta\,\mathrm{KL}$), summed over the batch;
    /// divide by the number of training examples.
    pub penalty: Penalty,
}

/// Settings known at compile time, for layers built by dfdx.
///
/// ```
/// use bochner_attention::{IkanDirect, MultiHead, MultiHeadConfig, StaticConfig};
/// use dfdx::prelude::*;
///
/// struct Mine;
/// impl StaticConfig for Mine {
///     fn config() -> MultiHeadConfig {
///         let variant = IkanDirect { points: 4, ..Default::default() }.into();
///         MultiHeadConfig { heads: 2, variant, ..Default::default() }
///     }
/// }
/// // Two sets of 2 heads x 4 points x 4 numbers.
/// type Layer = MultiHead<Const<8>, f32, Cpu, Const<64>, Mine>;
///
/// let device = Cpu::default();
/// let layer = Layer::build(&device);
/// let y: Tensor<Rank3<1, 5, 8>, f32, Cpu> = layer.forward(device.ones::<Rank3<1, 5, 8>>());
/// ```
pub trait StaticConfig: 'static {
    /// The settings.
    fn config() -> MultiHeadConfig;
}

impl<Embed: Dim, E: Element, Count: Dim, S> MultiHead<Embed, E, Cpu, Count, S> {
    /// A layer with random initial values.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the heads do not divide the width or a setting is out of range,
    /// [`Error::ParameterCount`] if `Count` is known at compile time and is another number.
    pub fn try_new(
        device: &Cpu,
        embed: Embed,
        config: MultiHeadConfig,
        rng: &mut impl Rng,
    ) -> Result<Self, Error> {
        let size = config.size(embed.size())?;
        // The maps first: variants that share a stream then share their initial values too.
        let mut linear = || Linear::try_new(device, embed, embed, &mut *rng);
        let [query, key, value, output] = [linear()?, linear()?, linear()?, linear()?];
        let values = config.variant.mechanism::<E>().initial(size, rng)?;
        let count = Count::from_size(values.len()).ok_or_else(|| Error::ParameterCount {
            mechanism: config.variant.name(),
            expected: values.len(),
            got: compiled_size::<Count>(),
        })?;
        Ok(Self {
            query,
            key,
            value,
            output,
            kernel: device
                .try_tensor_from_vec(values, (count,))
                .map_err(bochner_nn::Error::from)?,
            config,
            steps: 0,
            source: PhantomData,
        })
    }

    /// The layer's settings.
    pub fn config(&self) -> &MultiHeadConfig {
        &self.config
    }

    /// Names and shapes of the mechanism's own parameters, in the order of `kernel`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the heads do not divide the width.
    pub fn kernel_specs(&self) -> Result<Vec<ParameterSpec>, Error> {
        let size = self.config.size(self.embed().size())?;
        Ok(self.config.variant.mechanism::<E>().parameters(size))
    }

    /// Attention of a sequence to itself; one operation on the tape.
    ///
    /// # Errors
    /// As [`MultiHead::attend`].
    #[expect(clippy::type_complexity, reason = "the tensor types of dfdx are long")]
    pub fn attend_self<B: Dim, Q: Dim, T: Tape<E, Cpu>>(
        &self,
        x: Tensor<(B, Q, Embed), E, Cpu, T>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Attention<Tensor<(B, Q, Embed), E, Cpu, T>, Tensor<(), E, Cpu, T>>, Error> {
        let shape = self.checked(*x.shape())?;
        let inputs = TapeInputs::<E, T>::new().with(x)?;
        self.recorded(self.operation(mask, pass), inputs, shape)
    }

    /// Attention of one sequence to another; one operation on the tape.
    ///
    /// # Shapes
    /// `query: [B, Tq, Embed]`, `memory: [B, Tk, Embed]` to `[B, Tq, Embed]`.
    ///
    /// # Errors
    /// Whatever does not fit: shapes, the mask, the pass's dropout rate.
    #[expect(clippy::type_complexity, reason = "the tensor types of dfdx are long")]
    pub fn attend<B: Dim, Q: Dim, K: Dim, T: Tape<E, Cpu>>(
        &self,
        query: Tensor<(B, Q, Embed), E, Cpu, T>,
        memory: Tensor<(B, K, Embed), E, Cpu, T>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Attention<Tensor<(B, Q, Embed), E, Cpu, T>, Tensor<(), E, Cpu, T>>, Error> {
        let shape = self.checked(*query.shape())?;
        self.checked(*memory.shape())?;
        let operation = MultiHeadOperation {
            mask: mask.clone(),
            sequences: 2,
            ..self.operation(mask, pass)
        };
        let inputs = TapeInputs::<E, T>::new().with(query)?.with(memory)?;
        self.recorded(operation, inputs, shape)
    }

    #[expect(clippy::type_complexity, reason = "the tensor types of dfdx are long")]
    fn recorded<B: Dim, Q: Dim, T: Tape<E, Cpu>>(
        &self,
        operation: MultiHeadOperation,
        sequences: TapeInputs<E, T>,
        shape: (B, Q, Embed),
    ) -> Result<Attention<Tensor<(B, Q, Embed), E, Cpu, T>, Tensor<(), E, Cpu, T>>, Error> {
        let mut outputs = record(operation, self.add_to(sequences)?)?;
        Ok(Attention {
            output: outputs.take(shape)?,
            penalty: outputs.take(())?,
        })
    }

    /// Attention of a sequence to itself as an operation, to be part of another one.
    pub fn operation(&self, mask: &Mask, pass: Pass) -> MultiHeadOperation {
        MultiHeadOperation {
            variant: self.config.variant.clone(),
            heads: self.config.heads,
            mask: mask.of_itself(),
            pass,
            sequences: 1,
        }
    }

    /// Adds all parameters to the inputs of an operation.
    ///
    /// # Errors
    /// [`bochner_nn::Error::Argument`] if one has no elements.
    pub fn add_to<T: Tape<E, Cpu>>(
        &self,
        mut inputs: TapeInputs<E, T>,
    ) -> Result<TapeInputs<E, T>, bochner_nn::Error> {
        for map in [&self.query, &self.key, &self.value, &self.output] {
            inputs = map.add_to(inputs)?;
        }
        if self.kernel.shape().0.size() > 0 {
            inputs = inputs.with(self.kernel.clone())?;
        }
        Ok(inputs)
    }

    /// A sequence's shape, if it has the layer's width.
    fn checked<B: Dim, Q: Dim>(&self, shape: (B, Q, Embed)) -> Result<(B, Q, Embed), Error> {
        let got = dims(&shape);
        let [batch, time, _] = got;
        let fits = argument::shape("the input", &[batch, time, self.embed().size()], &got);
        fits.and_then(|()| argument::not_empty("the input", &got))
            .map_err(bochner_nn::Error::from)?;
        Ok(shape)
    }

    /// The layer as it stands, decoding `batch` sequences position by position, without a tape.
    ///
    /// Its parameters are copied, so that later changes of the layer's do not reach it. What a
    /// latent kernel draws is drawn once, from the pass's seed, as it is for whole sequences.
    /// [`Form::LinearTime`] keeps a state of constant size, any other form keys and values.
    ///
    /// # Errors
    /// As [`Mechanism::decoder`](crate::Mechanism::decoder).
    ///
    /// ```
    /// use bochner_attention::{Form, MultiHead, MultiHeadConfig, Pass};
    /// use bochner_numerics::Seed;
    /// use dfdx::prelude::*;
    /// use ndarray::Array3;
    ///
    /// let mut rng = Seed::new(1).stream("initial values");
    /// let config = MultiHeadConfig { heads: 2, ..Default::default() };
    /// let layer: MultiHead<usize, f32> = MultiHead::try_new(&Cpu::default(), 8, config, &mut rng)?;
    ///
    /// let pass = Pass::Evaluation { seed: Seed::new(2) };
    /// let mut decoder = layer.decoder(3, Form::Automatic, pass)?;
    /// decoder.step(Array3::ones((3, 5, 8)).view())?; // a prompt
    /// let next = decoder.step(Array3::ones((3, 1, 8)).view())?;
    /// assert_eq!((next.dim(), decoder.lengths()), ((3, 1, 8), &[6, 6, 6][..]));
    /// # Ok::<(), bochner_attention::Error>(())
    /// ```
    pub fn decoder(
        &self,
        batch: usize,
        form: Form,
        pass: Pass,
    ) -> Result<MultiHeadDecoder<E>, Error> {
        let Size { heads, width } = self.config.size(self.embed().size())?;
        let size = DecoderSize {
            batch,
            heads,
            width,
            value_width: width,
        };
        let mechanism = self.config.variant.mechanism::<E>();
        let decoder = mechanism.decoder(size, &self.kernel_values(), &pass, form)?;
        let maps = self.maps();
        Ok(MultiHeadDecoder { maps, decoder })
    }

    /// The layer as it stands, for attention without a tape in memory that is used again.
    ///
    /// Its parameters are copied and packed, so that later changes of the layer's do not reach it.
    /// What a latent kernel draws is drawn from the pass's seed, as it is with a tape.
    ///
    /// # Errors
    /// As [`Mechanism::settings`](crate::Mechanism::settings).
    ///
    /// ```
    /// use bochner_attention::{Mask, MultiHead, MultiHeadConfig, Pass, Workspace};
    /// use bochner_numerics::Seed;
    /// use dfdx::prelude::*;
    /// use ndarray::Array3;
    ///
    /// let mut rng = Seed::new(1).stream("initial values");
    /// let config = MultiHeadConfig { heads: 2, ..Default::default() };
    /// let layer: MultiHead<usize, f32> = MultiHead::try_new(&Cpu::default(), 8, config, &mut rng)?;
    ///
    /// let mut inference = layer.inference(Pass::Evaluation { seed: Seed::new(2) })?;
    /// // One workspace serves all layers of a model.
    /// let (workspace, mask) = (Workspace::new(), Mask::none());
    /// let (x, mut y) = (Array3::ones((3, 5, 8)), Array3::zeros((3, 5, 8)));
    /// inference.attend_self(x.view(), &mask, &workspace, y.view_mut())?;
    /// assert!(y.iter().all(|y| *y == y.clamp(-8.0, 8.0)));
    /// # Ok::<(), bochner_attention::Error>(())
    /// ```
    pub fn inference(&self, pass: Pass) -> Result<MultiHeadInference<E>, Error> {
        let variant = self.config.variant.clone();
        MultiHeadInference::new(self.maps(), variant, self.kernel_values(), pass)
    }

    fn maps(&self) -> Maps<E> {
        let maps = [&self.query, &self.key, &self.value, &self.output];
        Maps {
            maps: maps.map(|map| Map::new(&map.weight.as_vec(), map.bias.as_vec())),
            heads: self.config.heads,
        }
    }

    fn kernel_values(&self) -> Vec<E> {
        // Not as_vec, which panics on a tensor without elements.
        let mut kernel = vec![E::default(); self.kernel.shape().0.size()];
        self.kernel.copy_into(&mut kernel);
        kernel
    }

    /// What there is to see: weights of every head, spectral points, correlation of the heads.
    ///
    /// Of a sequence that attends to itself with padding, give the mask the query lengths too.
    ///
    /// # Errors
    /// As [`MultiHead::attend`].
    pub fn inspect<B: Dim, Q: Dim, K: Dim>(
        &self,
        query: Tensor<(B, Q, Embed), E, Cpu>,
        memory: Tensor<(B, K, Embed), E, Cpu>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Inspection<E>, Error> {
        let (queries, keys) = (dims(query.shape()), dims(memory.shape()));
        let heads = self.config.heads;
        let values = self.value.apply(memory.clone())?;
        let views = [
            split_heads(&self.query.apply(query)?.as_vec(), &queries, heads),
            split_heads(&self.key.apply(memory)?.as_vec(), &keys, heads),
            split_heads(&values.as_vec(), &keys, heads),
        ];
        let [q, k, v] = views.each_ref().map(|x| x.view());
        let mechanism = self.config.variant.mechanism::<E>();
        mechanism.inspect(&Inputs { q, k, v, mask }, &self.kernel_values(), &pass)
    }

    fn embed(&self) -> Embed {
        self.query.bias.shape().0
    }
}

fn dims<B: Dim, T: Dim, N: Dim>(shape: &(B, T, N)) -> [usize; 3] {
    [shape.0.size(), shape.1.size(), shape.2.size()]
}

/// The size of a dimension known at compile time, which its type tells only by accepting it.
fn compiled_size<N: Dim>() -> usize {
    (0..)
        .find(|&size| N::from_size(size).is_some())
        .expect("a dimension has a size")
}

impl MultiHeadConfig {
    /// The size of one head in a layer of width `embed`.
    fn size(&self, embed: usize) -> Result<Size, Error> {
        if DropoutMask::new(self.dropout, self.seed).is_err() {
            return Err(Error::OutOfRange {
                name: "dropout",
                range: "at least 0 and below 1",
                got: self.dropout,
            });
        }
        if embed == 0 {
            return Err(Error::Empty {
                what: "the layer",
                axis: "width",
            });
        }
        if self.heads == 0 || !embed.is_multiple_of(self.heads) {
            return Err(Error::OutOfRange {
                name: "heads",
                range: "at least 1 and a divisor of the layer's width",
                got: self.heads as f64,
            });
        }
        Ok(Size {
            heads: self.heads,
            width: embed / self.heads,
        })
    }
}
