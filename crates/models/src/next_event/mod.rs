//! The kind of the next event, from the kinds and the times of those before it.

mod task;

pub use crate::training::{EpochReport, TrainingConfig};
pub use task::{Events, Foretold, Task, Trainer};

use crate::Error;
use crate::encoder::{Encoder, EncoderConfig, Logits, Sequences};
use bochner_attention::{
    Mask, Pass,
    layer::Attention,
    mechanism::Inspection,
    time_input::{TimeBasis, TimeInput},
};
use bochner_nn::{
    Element, Embedding, Linear, Parameter, ParameterMut, Parameters, TapeInputs, record_one,
};
use bochner_numerics::{ArgumentError, Seed, argument};
use bochner_ops::check_lengths;
use dfdx::shapes::HasShape;
use dfdx::tensor::{Cpu, Merge, NoneTape, Tape, Tensor, TensorFromVec};
use dfdx::tensor_ops::ReshapeTo;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Settings of a [`NextEvent`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct NextEventConfig {
    /// Number of kinds.
    pub kinds: usize,
    /// The settings of the encoder, whose mechanism must allow for a causal mask.
    pub encoder: EncoderConfig,
    /// The features of times that join the vectors of the kinds, one after the other; without any the model sees no time.
    /// They take their width from that of the encoder.
    #[serde(default)]
    pub time: Vec<TimeSense>,
}

bochner_numerics::checked_when_read!(NextEventConfig);

/// Features of times at their start; all of their parameters are learnt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, remote = "Self")]
pub enum TimeSense {
    /// Sines and cosines of so many frequencies.
    Bochner {
        /// Number of frequencies.
        frequencies: usize,
        /// The shortest and the longest period, in the unit of the times: frequencies start between them, each the same
        /// multiple of the one before.
        periods: [f64; 2],
    },
    /// Fourier series of so many bases.
    Mercer {
        /// Number of bases.
        bases: usize,
        /// The degree of each series.
        degree: usize,
        /// The shortest and the longest period, between which those of the bases start. All coefficients start equal, with
        /// features of norm 1.
        periods: [f64; 2],
    },
}

bochner_numerics::checked_when_read!(TimeSense);

impl TimeSense {
    /// The number of features.
    pub fn width(self) -> usize {
        match self {
            Self::Bochner { frequencies, .. } => 2 * frequencies,
            Self::Mercer { bases, degree, .. } => bases * (2 * degree + 1),
        }
    }

    fn validate(&self) -> Result<(), ArgumentError> {
        let (Self::Bochner { periods, .. } | Self::Mercer { periods, .. }) = *self;
        argument::at_least_one("features of time", self.width())?;
        argument::positive("periods", periods[0])?;
        let ordered = periods[0] <= periods[1] && periods[1].is_finite();
        let allowed = format!("finite and at least the shortest, {}", periods[0]);
        argument::in_range(ordered, "periods", periods[1], allowed)
    }
}

/// So many numbers from the first to the second, each the same multiple of the one before.
fn geometric([first, last]: [f64; 2], count: usize) -> impl Iterator<Item = f64> {
    let step = match count {
        0 | 1 => 0.0,
        _ => (last / first).ln() / (count - 1) as f64,
    };
    (0..count).map(move |i| first * (step * i as f64).exp())
}

impl NextEventConfig {
    fn validate(&self) -> Result<(), Error> {
        argument::at_least_one("kinds", self.kinds)?;
        self.encoder.validate()?;
        self.time.iter().try_for_each(TimeSense::validate)?;
        let causal = self.encoder.layer.attention.card().causal;
        causal.required("a model of next events with this mechanism")?;
        let (features, width) = (self.features(), self.encoder.layer.width);
        let allowed = format!("less than the encoder's width, {width}");
        Ok(argument::in_range(
            features < width,
            "features of time",
            features as f64,
            allowed,
        )?)
    }

    /// The number of all features of a time.
    fn features(&self) -> usize {
        self.time.iter().map(|sense| sense.width()).sum()
    }
}

/// Logits of the kind of the next event behind each event of a sequence: attention to what was before, over kinds and times.
///
/// $$\mathrm{logits} = A \mathrm{Encoder}([W_{k_1} \mathbin\Vert \Phi(t_1)], \dots, [W_{k_T} \mathbin\Vert \Phi(t_T)]) + b$$
///
/// where $k$ are the kinds and $t$ the times; $W$ is the table of vectors, whose rows start with norm 1 on average, as
/// features of times have it; $\Phi$ joins the [features of times](bochner_attention::time_input::TimeInput) that the settings name. The
/// encoder has a causal mask, and nothing else tells it the order of events.
///
/// # Numerics
/// A step of Adam moves a frequency by its learning rate, and a phase by as much times t: take a unit in which times are of
/// the order of 1 to 10. No origin is subtracted; the caller does that.
///
/// # Reference
/// Xu, Ruan, Kumar, Korpeoglu, Achan, *Self-attention with functional time representation learning*, 2019.
///
/// ```
/// use bochner_attention::{Pass, Softmax};
/// use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
/// use bochner_models::next_event::{NextEvent, NextEventConfig, TimeSense};
/// use bochner_numerics::Seed;
/// use bochner_models::prelude::*;
/// use bochner_models::ndarray::array;
///
/// let layer = EncoderLayerConfig {
///     width: 16,
///     heads: 2,
///     hidden: 32,
///     attention: Softmax::default().into(),
///     dropout: 0.0,
///     norm: NormPlacement::Pre,
///     ..Default::default()
/// };
/// let config = NextEventConfig {
///     kinds: 5,
///     encoder: EncoderConfig::new(1, layer),
///     time: vec![TimeSense::Bochner { frequencies: 4, periods: [1.0, 50.0] }],
/// };
/// let device = Cpu::default();
/// let model: NextEvent<f32> = NextEvent::try_new(&device, &config, Seed::new(1))?;
/// let kinds = device.tensor_from_vec(vec![4, 0, 2, 1, 1, 0], (2, 3));
/// let times = array![[0.0, 0.7, 9.0], [0.0, 3.0, 0.0]];
/// let pass = Pass::Evaluation { seed: Seed::new(2) };
/// let next = model.apply(kinds, times, &[3, 2], pass)?;
/// assert_eq!(next.output.shape(), &(6, 5));
/// # Ok::<(), bochner_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NextEvent<E: Element> {
    kinds: Embedding<E>,
    senses: Vec<Sense<E>>,
    encoder: Encoder<E>,
    head: Linear<usize, usize, E>,
}

/// The parameters of features of times, as a [`TimeInput`] takes them.
#[derive(Clone, Debug)]
struct Sense<E: Element> {
    basis: TimeBasis,
    width: usize,
    /// Frequencies, or logarithms of half-periods.
    rates: Tensor<(usize,), E, Cpu>,
    /// Roots of the coefficients of series.
    roots: Option<Tensor<(usize, usize), E, Cpu>>,
}

impl<E: Element> Sense<E> {
    fn try_new(device: &Cpu, start: TimeSense) -> Result<Self, bochner_nn::Error> {
        let width = start.width();
        let vector = |values: Vec<E>| {
            let count = values.len();
            device.try_tensor_from_vec(values, (count,))
        };
        Ok(match start {
            TimeSense::Bochner {
                frequencies,
                periods,
            } => {
                let rates = geometric(periods, frequencies).map(|period| E::of(TAU / period));
                Self {
                    basis: TimeBasis::Bochner,
                    width,
                    rates: vector(rates.collect())?,
                    roots: None,
                }
            }
            TimeSense::Mercer {
                bases,
                degree,
                periods,
            } => {
                let logs = geometric(periods, bases).map(|period| E::of((0.5 * period).ln()));
                // A sine and a cosine of each degree have the norm of one coefficient together.
                let root = ((bases * (1 + degree)) as f64).sqrt().recip();
                let roots = vec![E::of(root); width];
                let roots = device.try_tensor_from_vec(roots, (bases, 2 * degree + 1))?;
                Self {
                    basis: TimeBasis::Mercer,
                    width,
                    rates: vector(logs.collect())?,
                    roots: Some(roots),
                }
            }
        })
    }

    /// Joins the features of the times to sequences.
    fn join<T: Tape<E, Cpu>>(
        &self,
        x: Sequences<E, T>,
        times: &Array2<f64>,
    ) -> Result<Sequences<E, T>, Error> {
        let &(batch, time, own) = x.shape();
        let map = TimeInput::new(times.clone(), self.basis)?;
        let inputs = TapeInputs::<E, T>::new().with(x)?;
        let mut inputs = inputs.with(self.rates.clone())?;
        if let Some(roots) = &self.roots {
            inputs = inputs.with(roots.clone())?;
        }
        Ok(record_one(map, inputs, (batch, time, own + self.width))?)
    }
}

impl<E: Element> Parameters<E> for Sense<E> {
    bochner_nn::visit_fields!(E: rates, roots);
}

impl<E: Element> NextEvent<E> {
    /// A model with random initial values.
    ///
    /// # Errors
    /// A setting that is out of range is refused; [`Error::Attention`] for a mechanism that takes no causal mask.
    pub fn try_new(device: &Cpu, config: &NextEventConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let stream = |part: &str| seed.child(part).stream("initial values");
        let width = config.encoder.layer.width;
        let own = width - config.features();
        let mut kinds = Embedding::try_new(device, config.kinds, own, &mut stream("kinds"))?;
        let (mut values, shrink) = (Vec::new(), E::of((own as f64).sqrt().recip()));
        kinds.read_into(&mut values);
        values.iter_mut().for_each(|x| *x *= shrink);
        kinds.write(&values);
        let senses = config
            .time
            .iter()
            .map(|&start| Sense::try_new(device, start));
        Ok(Self {
            kinds,
            senses: senses.collect::<Result<_, _>>()?,
            encoder: Encoder::try_new(device, &config.encoder, seed.child("encoder"))?,
            head: Linear::try_new(device, width, config.kinds, &mut stream("head"))?,
        })
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`](bochner_attention::MultiHead::go_to_step).
    pub fn go_to_step(&mut self, step: u64) {
        self.encoder.go_to_step(step);
    }

    /// The logits of what comes next, `[B T, kinds]`, behind each event of sequences `[B, T]` with their times, and the
    /// attention's penalty, already weighted and summed over the batch.
    ///
    /// Only the first `lengths[b]` events of sequence `b` count: what fills it up behind them changes no logits before it.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there is one time for each event, finite, and one length for each sequence;
    /// [`Error::Nn`] for a kind that there is not.
    pub fn apply<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        kinds: Tensor<(usize, usize), usize, Cpu, T>,
        times: Array2<f64>,
        lengths: &[usize],
        pass: Pass,
    ) -> Result<Logits<E, T>, Error> {
        let (batch, time) = *kinds.shape();
        let (x, mask) = self.read(kinds, &times, lengths)?;
        let encoded = self.encoder.apply(x, &mask, pass)?;
        let logits = self.head.apply(encoded.output)?;
        let shape = (batch * time, self.head.bias.shape().0);
        let logits = logits.try_reshape_like(&shape);
        Ok(Attention {
            output: logits.map_err(bochner_nn::Error::from)?,
            penalty: encoded.penalty,
        })
    }

    /// Weights of every head and other inner values of each layer's attention.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn inspect(
        &self,
        kinds: Tensor<(usize, usize), usize, Cpu, NoneTape>,
        times: Array2<f64>,
        lengths: &[usize],
        pass: Pass,
    ) -> Result<Vec<Inspection<E>>, Error> {
        let (x, mask) = self.read(kinds, &times, lengths)?;
        self.encoder.inspect(x, &mask, pass)
    }

    /// Returns the input of the encoder, and its mask.
    fn read<T: Tape<E, Cpu>>(
        &self,
        kinds: Tensor<(usize, usize), usize, Cpu, T>,
        times: &Array2<f64>,
        lengths: &[usize],
    ) -> Result<(Sequences<E, T>, Mask), Error> {
        let (batch, time) = *kinds.shape();
        argument::shape("times", &[batch, time], times.shape())?;
        check_lengths(lengths, batch, time)?;
        let mut x = self.kinds.apply(kinds)?;
        for sense in &self.senses {
            x = sense.join(x, times)?;
        }
        let mask = Mask::none().with_causality();
        Ok((x, mask.with_key_lengths(lengths.to_vec())))
    }
}

impl<E: Element> Parameters<E> for NextEvent<E> {
    bochner_nn::visit_fields!(E: kinds, senses, encoder, head);
}
