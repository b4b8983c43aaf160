//! The layer, from its initial values to its operation on the tape.

use super::config::{Layout, MultiHeadConfig};
use super::decoder::{MultiHeadCrossDecoder, MultiHeadDecoder};
use super::heads::Maps;
use super::operation::MultiHeadOperation;
use super::packed::PackedMultiHead;
use super::projection::Projection;
use crate::{Error, Form, Mask, Mechanism, Pass, mechanism::SharedMechanism};
use bochner_engine::PositionCode;
use bochner_nn::{Element, TapeInputs, record};
use bochner_numerics::{ArgumentError, argument};
use dfdx::dtypes::Dtype;
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Storage, Tape, Tensor, TensorFromVec, ZerosTensor};
use ndarray::ArrayView3;
use rand::RngCore;
use std::marker::PhantomData;
use std::sync::Arc;

/// Multi-head attention with any mechanism of the registry.
///
/// $$\operatorname{MultiHead}(x, y) = \operatorname{concat}_m(o_m) W_o^\top + b_o$$
///
/// where $o_m$ is what the mechanism makes of its streams, head by head: it attends from $x W_q^\top + b_q$
/// to $y W_k^\top + b_k$ and $y W_v^\top + b_v$. The sizes are `Const<N>` or `usize`, like those of
/// [`Linear`](bochner_nn::Linear); `Count` is the number of the mechanism's own parameters
/// ([`Mechanism::parameters`]), `Wide` the width of all heads together.
///
/// With sizes known at compile time and settings from a [`StaticConfig`](crate::StaticConfig) the layer is an ordinary
/// dfdx module: it builds on a device, saves to safetensors, and fits into tuples of modules.
///
/// ```
/// use bochner_attention::{IkanDirect, Mask, MultiHead, MultiHeadConfig, Pass};
/// use bochner_numerics::Seed;
/// use bochner_attention::prelude::*;
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
/// assert_eq!(gradients.get(&layer.maps[0].weight).shape(), &(8, 8));
/// # Ok::<(), bochner_attention::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MultiHead<
    Embed: Dim,
    E: Dtype,
    D: Storage<E> = Cpu,
    Count: Dim = usize,
    S = (),
    Wide: Dim = Embed,
> {
    /// The maps to the mechanism's streams: to queries, keys and values.
    pub maps: Vec<Projection<Embed, Wide, E, D, S>>,
    /// The map from the concatenated heads to the output.
    pub output: Projection<Wide, Embed, E, D, S>,
    /// The table of a learnt [`PositionBias`](crate::PositionBias), `[M, 2 reach + 1]`.
    pub position_bias: Option<Tensor<(usize, usize), E, D>>,
    /// The mechanism's own parameters, laid out by [`Mechanism::parameters`]; read them by
    /// [`MultiHead::kernel_values`], since dfdx's `as_vec` and `array` panic if there are none.
    pub kernel: Tensor<(Count,), E, D>,
    pub(super) config: MultiHeadConfig,
    pub(super) layout: Layout,
    /// A position code that the settings do not name.
    pub(super) code: Option<Arc<dyn PositionCode<E>>>,
    /// The step of training that the layer stands at.
    pub(super) step: u64,
    /// The mechanism at the step `drawn_at`.
    pub(super) mechanism: SharedMechanism,
    pub(super) drawn_at: u64,
    pub(super) source: PhantomData<S>,
}

/// The result of a layer: the output, and the penalty summed over the batch.
#[derive(Clone, Debug)]
pub struct Attention<Out, Penalty> {
    /// The attended values, `[B, Tq, Embed]`.
    pub output: Out,
    /// The term that the objective adds, already weighted ($\beta \mathrm{KL}$) and summed over the batch.
    /// [`Penalty::share`](crate::card::Penalty::share) returns the factor to multiply it with.
    pub penalty: Penalty,
}

impl<Embed: Dim, E: Element, Count: Dim, S, Wide: Dim> MultiHead<Embed, E, Cpu, Count, S, Wide> {
    /// A layer with random initial values.
    ///
    /// # Errors
    /// [`Error::Argument`] if the heads do not divide the width or a setting is out of range,
    /// [`Error::Unsupported`] for a width that the mechanism has no use for, or that is not the compile-time
    /// `Wide`; [`Error::Argument`] if `Count` is known at compile time and is another number.
    pub fn try_new(
        device: &Cpu,
        embed: Embed,
        config: MultiHeadConfig,
        mut rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Self, Error> {
        let layout = config.layout(embed.size(), &config.variant.card())?;
        let wide = |width| {
            Wide::from_size(width).ok_or(Error::Unsupported {
                what: "a width of the heads that is not the one known at compile time",
                instead: "that width as the type `Wide` of the layer, or `usize`",
            })
        };
        // The maps first: variants that share a stream then share their initial values too.
        let mut sizes: Vec<_> = layout.maps().map(|(_, size)| size).collect();
        let [_, joined] = sizes.pop().expect("a map to the output");
        let maps = sizes.into_iter().map(|[outputs, inputs]| {
            let inputs = Embed::from_size(inputs).ok_or(Error::Unsupported {
                what: "a memory of another width in a layer whose width is known at compile time",
                instead: "`usize` as the type `Embed` of the layer",
            })?;
            Projection::try_new(device, (inputs, wide(outputs)?), config.bias, rng)
        });
        let maps = maps.collect::<Result<_, _>>()?;
        let output = Projection::try_new(device, (wide(joined)?, embed), config.bias, rng)?;
        let size = layout.size();
        let values = config.variant.mechanism::<E>().initial(size, &mut rng)?;
        let Some(count) = Count::from_size(values.len()) else {
            let (expected, got) = (values.len(), compiled_size::<Count>());
            return Err(ArgumentError::Shape {
                name: "Count, the number of the mechanism's parameters".into(),
                expected: vec![expected],
                got: vec![got],
            }
            .into());
        };
        let table = layout.position_bias.table(layout.heads);
        let table = table.map(|[heads, columns]| device.try_zeros_like(&(heads, columns)));
        Ok(Self {
            maps,
            output,
            position_bias: table.transpose().map_err(bochner_nn::Error::from)?,
            kernel: device
                .try_tensor_from_vec(values, (count,))
                .map_err(bochner_nn::Error::from)?,
            mechanism: config.variant.at_step(0, size),
            config,
            layout,
            code: None,
            step: 0,
            drawn_at: 0,
            source: PhantomData,
        })
    }

    /// The layer's settings.
    pub fn config(&self) -> &MultiHeadConfig {
        &self.config
    }

    /// The step of training that the layer stands at: the number of `ModuleMut`'s passes so far, or the one that
    /// [`go_to_step`](Self::go_to_step) was given.
    ///
    /// dfdx saves and loads it with the layer. A [`Checkpoint`](bochner_nn::Checkpoint) holds parameters alone: save the
    /// step as its [`Progress::step`](bochner_nn::Progress), and go to it once the parameters are restored.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Goes to another step of training. The seeds of `ModuleMut`'s training passes follow from the step, and so does
    /// what a mechanism draws for longer than a pass ([`Mechanism::at_step`]). `ModuleMut` goes on by itself.
    pub fn go_to_step(&mut self, step: u64) {
        self.step = step;
        let size = self.layout.size();
        if let Some(mechanism) = self.mechanism.get::<E>().at_step(step, size) {
            (self.mechanism, self.drawn_at) = (mechanism, step);
        }
    }

    /// The mechanism at the layer's step, which dfdx may have loaded.
    pub(super) fn mechanism(&self) -> Arc<dyn Mechanism<E>> {
        let size = self.layout.size();
        let is_there = self.drawn_at == self.step;
        let at_step = || self.mechanism.get::<E>().at_step(self.step, size);
        match (!is_there).then(at_step).flatten() {
            Some(mechanism) => Arc::clone(mechanism.get()),
            None => Arc::clone(self.mechanism.get()),
        }
    }

    /// Attention of a sequence to itself; one operation on the tape.
    ///
    /// # Errors
    /// The errors of [`MultiHead::attend`].
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
    /// `query: [B, Tq, Embed]`, `memory: [B, Tk, Embed]` to `[B, Tq, Embed]`. The memory has the width of
    /// [`MultiHeadConfig::memory_width`](crate::MultiHeadConfig::memory_width) if that is set.
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
        let operation = self.cross_operation(mask, pass)?;
        let shape = self.checked(*query.shape())?;
        argument::not_empty("the memory", &dims(memory.shape()))
            .map_err(bochner_nn::Error::from)?;
        let inputs = TapeInputs::<E, T>::new().with(query)?.with(memory)?;
        self.recorded(operation, inputs, shape)
    }

    #[expect(clippy::type_complexity, reason = "the tensor types of dfdx are long")]
    fn recorded<B: Dim, Q: Dim, T: Tape<E, Cpu>>(
        &self,
        operation: MultiHeadOperation<E>,
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
    pub fn operation(&self, mask: &Mask, pass: Pass) -> MultiHeadOperation<E> {
        MultiHeadOperation {
            mechanism: self.mechanism(),
            layout: self.layout,
            code: self.code(),
            mask: self.layout.mask(mask.for_self_attention()),
            pass,
            sequences: 1,
        }
    }

    /// Attention of one sequence to another as an operation, to be part of another one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the mechanism attends to its own sequence alone.
    pub fn cross_operation(&self, mask: &Mask, pass: Pass) -> Result<MultiHeadOperation<E>, Error> {
        let cross = self.config.variant.card().cross;
        cross.required("attention to another sequence with this mechanism")?;
        Ok(MultiHeadOperation {
            mask: self.layout.mask(mask.clone()),
            sequences: 2,
            ..self.operation(mask, pass)
        })
    }

    /// Adds all parameters to the inputs of an operation.
    ///
    /// # Errors
    /// [`bochner_nn::Error::Argument`] if one has no elements.
    pub fn add_to<T: Tape<E, Cpu>>(
        &self,
        mut inputs: TapeInputs<E, T>,
    ) -> Result<TapeInputs<E, T>, bochner_nn::Error> {
        for map in &self.maps {
            inputs = map.add_to(inputs)?;
        }
        inputs = self.output.add_to(inputs)?;
        if let Some(table) = &self.position_bias {
            inputs = inputs.with(table.clone())?;
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
    /// [`Form::LinearTime`] keeps a state of constant size, [`Form::Automatic`] the state of the mechanism's own form
    /// ([`Decoding::form`](crate::mechanism::Decoding::form)), any other form keys and values; under a window to the left, those
    /// that it still reaches.
    ///
    /// # Errors
    /// The errors of [`Mechanism::decoder`](crate::Mechanism::decoder).
    ///
    /// ```
    /// use bochner_attention::{Form, MultiHead, MultiHeadConfig, Pass};
    /// use bochner_numerics::Seed;
    /// use bochner_attention::prelude::*;
    /// use bochner_attention::ndarray::{Array3, ArrayView3};
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
        self.packed()?.decoder(batch, form, pass)
    }

    /// The layer as it stands, attending from queries that come a few at a time to a memory that is
    /// mapped and prepared once, without a tape.
    ///
    /// The mask's key lengths say how long the memory of each sequence is. Spectral points that are
    /// inferred from the queries are not known before these, and are refused.
    ///
    /// # Shapes
    /// `memory: [B, Tk, Embed]`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a causal layer or mask, and for a boolean matrix; whatever does not fit;
    /// otherwise the errors of [`MultiHead::decoder`].
    ///
    /// ```
    /// use bochner_attention::{Form, Mask, MultiHead, MultiHeadConfig, Pass};
    /// use bochner_numerics::Seed;
    /// use bochner_attention::prelude::*;
    /// use bochner_attention::ndarray::{Array3, ArrayView3};
    ///
    /// let mut rng = Seed::new(1).stream("initial values");
    /// let config = MultiHeadConfig { heads: 2, ..Default::default() };
    /// let layer: MultiHead<usize, f32> = MultiHead::try_new(&Cpu::default(), 8, config, &mut rng)?;
    ///
    /// let pass = Pass::Evaluation { seed: Seed::new(2) };
    /// let (memory, mask) = (Array3::ones((3, 5, 8)), Mask::none().with_key_lengths(vec![5, 2, 4]));
    /// let mut decoder = layer.cross_decoder(memory.view(), &mask, Form::Automatic, pass)?;
    /// let next = decoder.step(Array3::ones((3, 1, 8)).view())?;
    /// assert_eq!(next.dim(), (3, 1, 8));
    /// # Ok::<(), bochner_attention::Error>(())
    /// ```
    pub fn cross_decoder(
        &self,
        memory: ArrayView3<E>,
        mask: &Mask,
        form: Form,
        pass: Pass,
    ) -> Result<MultiHeadCrossDecoder<E>, Error> {
        self.packed()?.cross_decoder(memory, mask, form, pass)
    }

    /// The layer as it stands, without a tape: its weights are copied and packed once, for attention and for all decoders
    /// that are made of it.
    ///
    /// # Errors
    /// [`Error::Argument`] for a table of a position bias that does not fit.
    ///
    /// ```
    /// use bochner_attention::{Mask, MultiHead, MultiHeadConfig, Pass};
    /// use bochner_numerics::Seed;
    /// use bochner_attention::prelude::*;
    /// use bochner_attention::ndarray::Array3;
    ///
    /// let mut rng = Seed::new(1).stream("initial values");
    /// let config = MultiHeadConfig { heads: 2, ..Default::default() };
    /// let layer: MultiHead<usize, f32> = MultiHead::try_new(&Cpu::default(), 8, config, &mut rng)?;
    ///
    /// let x = Array3::ones((3, 5, 8));
    /// let y = layer.packed()?.attend_self(x.view(), &Mask::none(), Pass::evaluation())?;
    /// assert_eq!(y.dim(), (3, 5, 8));
    /// # Ok::<(), bochner_attention::Error>(())
    /// ```
    pub fn packed(&self) -> Result<PackedMultiHead<E>, Error> {
        Ok(PackedMultiHead {
            maps: Arc::new(self.arrays()?),
            mechanism: self.mechanism(),
            parameters: Arc::new(self.kernel_values()),
        })
    }

    /// The maps as they stand, with packed weights.
    pub(super) fn arrays(&self) -> Result<Maps<E>, Error> {
        let mut values: Vec<_> = self.maps.iter().map(Projection::values).collect();
        values.push(self.output.values());
        let slices = values
            .iter()
            .map(|(weight, bias)| (&weight[..], bias.as_deref()));
        let table = self.position_bias.as_ref().map(Tensor::as_vec);
        let slices: Vec<_> = slices.collect();
        Maps::new(self.layout, &slices, table.as_deref(), self.code())
    }

    /// The values of `kernel`; none for a mechanism without parameters.
    pub fn kernel_values(&self) -> Vec<E> {
        // Not as_vec, which panics on a tensor without elements.
        let mut kernel = vec![E::default(); self.kernel.shape().0.size()];
        self.kernel.copy_into(&mut kernel);
        kernel
    }

    fn embed(&self) -> Embed {
        self.output.weight.shape().0
    }
}

pub(super) fn dims<B: Dim, T: Dim, N: Dim>(shape: &(B, T, N)) -> [usize; 3] {
    [shape.0.size(), shape.1.size(), shape.2.size()]
}

/// The size of a dimension known at compile time, which its type tells only by accepting it.
fn compiled_size<N: Dim>() -> usize {
    (0..)
        .find(|&size| N::from_size(size).is_some())
        .expect("a dimension has a size")
}
