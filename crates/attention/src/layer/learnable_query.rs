//! Attention from queries that are parameters of the layer.

use super::multi_head::{Attention, MultiHead};
use super::{MultiHeadConfig, PositionBias};
use crate::{Error, Mask, Pass, mechanism::Inspection};
use bochner_nn::{Element, Parameter, ParameterMut, Parameters, join};
use bochner_numerics::{argument, standard_normal};
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Tape, Tensor, TensorFromVec};
use dfdx::tensor_ops::BroadcastTo;
use rand::RngCore;

/// Attention from queries that are parameters to whatever sequence it is given: an output of fixed size, whatever the
/// length, that does not depend on the order of the positions.
///
/// $$Y_b = \operatorname{MultiHead}(Q, X_b)$$
///
/// * $Q$: `queries`, `[n, Embed]`, the same for all examples
/// * MultiHead: `attention`, a [`MultiHead`] layer with any mechanism that attends to another sequence
///
/// The queries start as standard normal numbers, as large as positions behind a layer norm. They have no positions, so
/// that causality, windows, position biases and rotary positions are refused.
///
/// # Reference
/// The notes of Ji and Xie, *Attention*: learnable queries.
///
/// ```
/// use bochner_attention::{Mask, MultiHeadConfig, Pass, layer::LearnableQueryLayer};
/// use bochner_numerics::Seed;
/// use bochner_attention::prelude::*;
///
/// let (device, mut rng) = (Cpu::default(), Seed::new(1).stream("initial values"));
/// let config = MultiHeadConfig { heads: 2, ..Default::default() };
/// let layer: LearnableQueryLayer<usize, f32> =
///     LearnableQueryLayer::try_new(&device, (4, 8), config, &mut rng)?;
///
/// let x: Tensor<(usize, usize, usize), f32, Cpu> = device.ones_like(&(3, 5, 8));
/// let mask = Mask::none().with_key_lengths(vec![5, 2, 4]);
/// let pass = Pass::Evaluation { seed: Seed::new(2) };
/// let pooled = layer.attend(x.leaky_trace(), &mask, pass)?;
/// assert_eq!(pooled.output.shape(), &(3, 4, 8));
/// let gradients = pooled.output.square().mean().backward();
/// assert_eq!(gradients.get(&layer.queries).shape(), &(4, 8));
/// # Ok::<(), bochner_attention::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LearnableQueryLayer<Embed: Dim, E: Element, Wide: Dim = Embed> {
    /// The queries before their map.
    pub queries: Tensor<(usize, Embed), E, Cpu>,
    /// The layer that attends from them.
    pub attention: MultiHead<Embed, E, Cpu, usize, (), Wide>,
}

/// A batch of sequences.
type Sequences<B, T, Embed, E, R> = Tensor<(B, T, Embed), E, Cpu, R>;

impl<Embed: Dim, E: Element, Wide: Dim> LearnableQueryLayer<Embed, E, Wide> {
    /// A layer of so many queries of a width, with random initial values.
    ///
    /// # Errors
    /// The errors of [`MultiHead::try_new`]; [`Error::Argument`] without a query; [`Error::Unsupported`] for a
    /// mechanism of one sequence, and for settings that need positions.
    pub fn try_new(
        device: &Cpu,
        (count, embed): (usize, Embed),
        config: MultiHeadConfig,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Self, Error> {
        argument::at_least_one("queries", count)?;
        let cross = config.variant.card().cross;
        cross.required("attention from learnable queries with this mechanism")?;
        let biased = config.position_bias != PositionBias::None;
        let placed = biased || config.rotary.is_some();
        refuse_positions(placed || config.causal || config.window.is_some())?;
        let attention = MultiHead::try_new(device, embed, config, rng)?;
        let values = (0..count * embed.size()).map(|_| standard_normal(rng));
        let queries = device.try_tensor_from_vec(values.collect(), (count, embed));
        Ok(Self {
            queries: queries.map_err(bochner_nn::Error::from)?,
            attention,
        })
    }

    /// Attention from the queries to each sequence, on its tape.
    ///
    /// # Shapes
    /// `memory: [B, T, Embed]` to `[B, n, Embed]`.
    ///
    /// # Errors
    /// The errors of [`MultiHead::attend`]; [`Error::Unsupported`] for a mask that needs positions of the queries.
    #[expect(clippy::type_complexity, reason = "the tensor types of dfdx are long")]
    pub fn attend<B: Dim, K: Dim, T: Tape<E, Cpu>>(
        &self,
        memory: Sequences<B, K, Embed, E, T>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Attention<Sequences<B, usize, Embed, E, T>, Tensor<(), E, Cpu, T>>, Error> {
        refuse_positions(mask.is_causal() || mask.has_starts())?;
        let queries = self.queries_of(memory.shape().0)?;
        self.attention.attend(queries, memory, mask, pass)
    }

    /// Returns the weights of every head from the queries to the positions of each sequence.
    ///
    /// # Errors
    /// The errors of [`LearnableQueryLayer::attend`].
    pub fn inspect<B: Dim, K: Dim>(
        &self,
        memory: Tensor<(B, K, Embed), E, Cpu>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Inspection<E>, Error> {
        refuse_positions(mask.is_causal() || mask.has_starts())?;
        let queries = self.queries_of(memory.shape().0)?;
        self.attention.inspect(queries, memory, mask, pass)
    }

    /// The queries once for each example: what follows adds up their gradients.
    fn queries_of<B: Dim, T: Tape<E, Cpu>>(
        &self,
        batch: B,
    ) -> Result<Sequences<B, usize, Embed, E, T>, Error> {
        let (count, embed) = *self.queries.shape();
        let queries = self.queries.retaped::<T>();
        let queries = queries.try_broadcast_like(&(batch, count, embed));
        Ok(queries.map_err(bochner_nn::Error::from)?)
    }
}

fn refuse_positions(asked: bool) -> Result<(), Error> {
    match asked {
        false => Ok(()),
        true => Err(Error::Unsupported {
            what: "causality, a window, packed sequences, a position bias or rotary positions with queries that have no \
                   positions",
            instead: "key lengths, or a matrix",
        }),
    }
}

impl<Embed: Dim, E: Element, Wide: Dim> Parameters<E> for LearnableQueryLayer<Embed, E, Wide> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.queries.for_each(&join(prefix, "queries"), f);
        self.attention.for_each(&join(prefix, "attention"), f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.queries.for_each_mut(&join(prefix, "queries"), f);
        self.attention.for_each_mut(&join(prefix, "attention"), f);
    }

    fn for_each_size(&self, prefix: &str, f: &mut dyn FnMut(&str, usize)) {
        self.attention.for_each_size(&join(prefix, "attention"), f);
    }
}
