//! Bipolar attention over steps of time, to be trained.

use crate::kernels;
use crate::{
    Error, Mask,
    fixed_point::{attend_by_shifts, from_fixed_point, ternary, to_fixed_point},
};
use bochner_engine::{Saved, Wanted, attend, attend_vjp};
use bochner_nn::{Element, LayerNorm, Linear, Parameters, TapeInputs, record_one};
use bochner_numerics::{ArgumentError, Real, argument};
use bochner_ops::{BoxError, Operation, Slot, SpikingNeuron, given, slots};
use dfdx::dtypes::Dtype;
use dfdx::nn::{Module, NonMutableModule};
use dfdx::shapes::{Dim, HasShape, Shape};
use dfdx::tensor::{Cpu, Merge, Storage, Tape, Tensor, TensorFromVec};
use ndarray::{Array4, ArrayD, ArrayView4, ArrayViewD, Ix4, IxDyn};
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// The settings of a [`BipolarLayer`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct BipolarLayerConfig {
    /// The number of heads, a divisor of the layer's width.
    pub heads: usize,
    /// The neurons of queries and keys.
    pub neuron: SpikingNeuron,
    /// Neurons between the heads and the last map, such as the paper has; `None` by default, so that the last
    /// map reads real numbers.
    #[serde(alias = "last_neuron")]
    pub last_neuron: Option<SpikingNeuron>,
    /// Whether every mask is made causal.
    pub causal: bool,
}

impl Default for BipolarLayerConfig {
    fn default() -> Self {
        Self {
            heads: 1,
            neuron: SpikingNeuron::default(),
            last_neuron: None,
            causal: false,
        }
    }
}

bochner_numerics::checked_when_read!(BipolarLayerConfig, |config| config.validate(config.heads));

impl BipolarLayerConfig {
    /// The checks of a layer of width `embed`.
    fn validate(&self, embed: usize) -> Result<(), ArgumentError> {
        argument::heads(self.heads, embed)?;
        let neurons = [Some(self.neuron), self.last_neuron];
        let mut neurons = neurons.iter().flatten();
        neurons.try_for_each(SpikingNeuron::validate)
    }
}

/// Bipolar self-attention of sequences that are given step after step: `[steps, B, T, Embed]` to the same shape.
///
/// $$Q = s(\mathrm{LN}(X W_q^\top + b_q)) \quad K = s(\mathrm{LN}(X W_k^\top + b_k)) \quad
/// V = \mathrm{LN}(X W_v^\top + b_v) \quad Y = \operatorname{concat}_m(A_m V_m) W_o^\top + b_o$$
///
/// where s are [neurons](SpikingNeuron) over the steps, values stay real, and $A_m$ is the shiftmax of the whole scores
/// of a head at one step, as in [`Bipolar`](crate::Bipolar). Attention takes each step by itself; only the neurons
/// join the steps. Layer norms are ours: the networks of the paper have batch norms.
///
/// # Reference
/// Wang et al. 2025, "Bipolar self-attention for spiking transformers".
///
/// ```
/// use bochner_attention::{Mask, layer::{BipolarLayer, BipolarLayerConfig}};
/// use bochner_numerics::Seed;
/// use bochner_attention::prelude::*;
///
/// let (device, mut rng) = (Cpu::default(), Seed::new(1).stream("initial values"));
/// let config = BipolarLayerConfig { heads: 2, ..Default::default() };
/// let layer: BipolarLayer<usize, f32> = BipolarLayer::try_new(&device, 8, config, &mut rng)?;
///
/// // Four steps, three sequences.
/// let x: Tensor<(usize, usize, usize, usize), f32, Cpu> = device.sample_normal_like(&(4, 3, 5, 8));
/// let mask = Mask::none().with_key_lengths(vec![5, 2, 4]);
/// let y = layer.attend_self(x.leaky_trace(), &mask)?;
/// let gradients = y.square().mean().backward();
/// assert_eq!(gradients.get(&layer.query.weight).shape(), &(8, 8));
/// # Ok::<(), bochner_attention::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BipolarLayer<Embed: Dim, E: Dtype, D: Storage<E> = Cpu> {
    /// The map to the queries.
    pub query: Linear<Embed, Embed, E, D>,
    /// The map to the keys.
    pub key: Linear<Embed, Embed, E, D>,
    /// The map to the values.
    pub value: Linear<Embed, Embed, E, D>,
    /// The norm before the neurons of the queries.
    pub query_norm: LayerNorm<Embed, E, D>,
    /// The norm before the neurons of the keys.
    pub key_norm: LayerNorm<Embed, E, D>,
    /// The norm of the values.
    pub value_norm: LayerNorm<Embed, E, D>,
    /// The map from the concatenated heads to the output.
    pub output: Linear<Embed, Embed, E, D>,
    config: BipolarLayerConfig,
}

impl<Embed: Dim, E: Element> BipolarLayer<Embed, E> {
    /// A layer with random initial values.
    ///
    /// # Errors
    /// [`Error::Argument`] if the heads do not divide the width, or for a neuron with a number out of range.
    pub fn try_new(
        device: &Cpu,
        embed: Embed,
        config: BipolarLayerConfig,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Self, Error> {
        config.validate(embed.size())?;
        let mut map = || Linear::try_new(device, embed, embed, rng);
        let [query, key, value, output] = [map()?, map()?, map()?, map()?];
        let norm = || LayerNorm::try_new(device, embed);
        let [query_norm, key_norm, value_norm] = [norm()?, norm()?, norm()?];
        Ok(Self {
            query,
            key,
            value,
            query_norm,
            key_norm,
            value_norm,
            output,
            config,
        })
    }

    /// The layer's settings.
    pub fn config(&self) -> &BipolarLayerConfig {
        &self.config
    }

    /// Attention of sequences to themselves, step by step; the mask is that of every step and every head.
    ///
    /// # Errors
    /// [`Error::Argument`] if the last axis is not the layer's width or the input is empty, and [`Error::Mask`], for a
    /// matrix of each head too.
    #[expect(clippy::type_complexity, reason = "the tensor types of dfdx are long")]
    pub fn attend_self<S: Dim, B: Dim, Q: Dim, T: Tape<E, Cpu> + Merge<T>>(
        &self,
        x: Tensor<(S, B, Q, Embed), E, Cpu, T>,
        mask: &Mask,
    ) -> Result<Tensor<(S, B, Q, Embed), E, Cpu, T>, Error> {
        let shape = *x.shape();
        self.with_heads(x, mask, |[q, k, v], heads| {
            let inputs = TapeInputs::<E, T>::new().with(q)?.with(k)?.with(v)?;
            Ok(record_one(heads, inputs, shape)?)
        })
    }

    /// [`attend_self`](Self::attend_self) without a tape, its attention by [`attend_by_shifts`]: values in
    /// [fixed point](crate::fixed_point::to_fixed_point), scores by counting bits, weights as right shifts. Maps, norms and neurons
    /// compute as in training.
    ///
    /// # Numerics
    /// For a query with n kept keys, the outputs of the heads lie at most $n + 1/2$ units of $2^{-12}$ below those of
    /// training, since each weight rounds down, and at most half a unit above them, since values round to the nearest; `f32` rounds
    /// both itself where they are large.
    ///
    /// # Errors
    /// The errors of [`attend_self`](Self::attend_self), and [`Error::Argument`] for normalised values that have no
    /// fixed point, from $2^{19}$ on, and for queries, keys and values that are no numbers.
    #[expect(clippy::type_complexity, reason = "the tensor types of dfdx are long")]
    pub fn infer<S: Dim, B: Dim, Q: Dim>(
        &self,
        x: Tensor<(S, B, Q, Embed), E, Cpu>,
        mask: &Mask,
    ) -> Result<Tensor<(S, B, Q, Embed), E, Cpu>, Error> {
        let shape = *x.shape();
        let dims = shape.concrete();
        self.with_heads(x, mask, |streams, heads| {
            let [q, k, v] = streams.map(|x| {
                let x = ArrayD::from_shape_vec(IxDyn(&dims), x.as_vec());
                heads.split(x.expect("a tensor has the elements of its shape").view())
            });
            let [q, k] = [ternary(q.view(), 0.5)?, ternary(k.view(), 0.5)?];
            let v = to_fixed_point(v.view())?;
            let attended = attend_by_shifts(q.view(), k.view(), v.view(), &heads.mask)?;
            let attended = heads.join(from_fixed_point::<E>(attended.view()).view());
            let attended = Cpu::default().try_tensor_from_vec(attended, shape);
            Ok(attended.map_err(bochner_nn::Error::from)?)
        })
    }

    /// The layer around an attention of spiking queries and keys.
    #[expect(clippy::type_complexity, reason = "the tensor types of dfdx are long")]
    fn with_heads<S: Dim, B: Dim, Q: Dim, T: Tape<E, Cpu> + Merge<T>>(
        &self,
        x: Tensor<(S, B, Q, Embed), E, Cpu, T>,
        mask: &Mask,
        attend: impl FnOnce(
            [Tensor<(S, B, Q, Embed), E, Cpu, T>; 3],
            SpikingHeads,
        ) -> Result<Tensor<(S, B, Q, Embed), E, Cpu, T>, Error>,
    ) -> Result<Tensor<(S, B, Q, Embed), E, Cpu, T>, Error> {
        let shape = *x.shape();
        let spikes = |potentials, neuron| {
            record_one(neuron, TapeInputs::<E, T>::new().with(potentials)?, shape)
        };
        let q = self.query_norm.apply(self.query.apply(x.retaped::<T>())?)?;
        let k = self.key_norm.apply(self.key.apply(x.retaped::<T>())?)?;
        let v = self.value_norm.apply(self.value.apply(x)?)?;
        let [q, k] = [
            spikes(q, self.config.neuron)?,
            spikes(k, self.config.neuron)?,
        ];
        let mask = match self.config.causal {
            true => mask.for_self_attention().with_causality(),
            false => mask.for_self_attention(),
        };
        let heads = SpikingHeads {
            heads: self.config.heads,
            mask,
        };
        let mut attended = attend([q, k, v], heads)?;
        if let Some(neuron) = self.config.last_neuron {
            attended = spikes(attended, neuron)?;
        }
        Ok(self.output.apply(attended)?)
    }
}

impl<Embed: Dim, E: Element> Parameters<E> for BipolarLayer<Embed, E> {
    bochner_nn::visit_fields!(
        E: query, key, value, query_norm, key_norm, value_norm, output;
        |layer| heads = layer.config.heads
    );
}

impl<Embed: Dim, E: Dtype, D: Storage<E>> NonMutableModule for BipolarLayer<Embed, E, D> {}

impl<Embed, E, S, B, Q, T> Module<Tensor<(S, B, Q, Embed), E, Cpu, T>> for BipolarLayer<Embed, E>
where
    Embed: Dim,
    E: Element,
    S: Dim,
    B: Dim,
    Q: Dim,
    T: Tape<E, Cpu> + Merge<T>,
{
    type Output = Tensor<(S, B, Q, Embed), E, Cpu, T>;
    type Error = Error;

    /// Self-attention without a mask.
    fn try_forward(&self, x: Tensor<(S, B, Q, Embed), E, Cpu, T>) -> Result<Self::Output, Error> {
        self.attend_self(x, &Mask::none())
    }
}

/// Attention of each step's ternary queries and keys, as an operation on queries, keys and values
/// `[steps, B, T, M w]`. A step sees no other: the heads of all steps are attended as if they were those of one.
#[derive(Clone, Debug)]
struct SpikingHeads {
    heads: usize,
    mask: Mask,
}

impl SpikingHeads {
    /// The heads of all steps as heads of one step, `[B, steps M, T, w]`.
    fn split<T: Real>(&self, x: ArrayViewD<T>) -> Array4<T> {
        let x = x.into_dimensionality::<Ix4>();
        let x = x.expect("checked with the shapes");
        let (steps, batch, time, width) = x.dim();
        let shape = (steps, batch, time, self.heads, width / self.heads);
        let x = x.into_shape_with_order(shape).expect("a row-major array");
        let values = x.permuted_axes([1, 0, 3, 2, 4]).iter().copied().collect();
        let shape = (batch, steps * self.heads, time, width / self.heads);
        Array4::from_shape_vec(shape, values).expect("as many as before")
    }

    /// The values of an array `[steps, B, T, M w]`, given these heads.
    fn join<T: Real>(&self, heads: ArrayView4<T>) -> Vec<T> {
        let (batch, all, time, width) = heads.dim();
        let shape = (batch, all / self.heads, self.heads, time, width);
        let x = heads
            .into_shape_with_order(shape)
            .expect("a row-major array");
        x.permuted_axes([1, 0, 3, 2, 4]).iter().copied().collect()
    }
}

impl<T: Real> Operation<T> for SpikingHeads {
    type Saved = Saved<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [q, k, v] = given(inputs)?;
        argument::shape("k", q, k)?;
        argument::shape("v", q, v)?;
        argument::shape("axes of q", &[4], &[q.len()])?;
        let (steps, batch, time, width) = (q[0], q[1], q[2], q[3]);
        let width = width - width % self.heads;
        argument::shape("q", &[steps, batch, time, width], q)?;
        Ok(vec![q.to_vec()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let [output] = slots(outputs);
        let [q, k, v] = [0, 1, 2].map(|i| self.split(inputs[i].view()));
        let settings = kernels::spikes(&self.mask);
        let (attended, saved) = attend(&settings, q.view(), k.view(), v.view())?;
        output.put(self.join(attended.view()));
        Ok(saved)
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        if gradients.iter().all(Option::is_none) {
            return Ok(());
        }
        let [q, k, v] = [0, 1, 2].map(|i| self.split(inputs[i].view()));
        let (settings, cotangent) = (kernels::spikes(&self.mask), &cotangents[0]);
        let cotangent = self.split(cotangent.view());
        let [q, k, v] = [&q, &k, &v].map(|x| x.view());
        let wanted = Wanted::default();
        let pulled = attend_vjp(&settings, saved, q, k, v, cotangent.view(), wanted)?;
        for (slot, of) in gradients.into_iter().zip([pulled.q, pulled.k, pulled.v]) {
            if let Some(slot) = slot {
                slot.put(self.join(of.view()));
            }
        }
        Ok(())
    }
}
