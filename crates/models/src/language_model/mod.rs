//! Language models: the next token of a text, from the tokens before it.

mod sampling;
mod task;

pub use crate::training::{EpochReport, TrainingConfig};
pub use sampling::{Generator, Sampling};
pub use task::{Task, Trainer};

use crate::Error;
use crate::embedding::{EmbeddingScale, WordEmbedding, WordEmbeddingConfig};
use crate::encoder::{Encoded, Encoder, EncoderConfig, Logits};
use crate::saved::{Kind, Read};
use crate::training;
use bochner_attention::{Mask, Pass, layer::Attention};
use bochner_nn::{Element, Parameters};
use bochner_numerics::{Seed, argument};
use bochner_ops::check_lengths;
use dfdx::shapes::HasShape;
use dfdx::tensor::{Cpu, Merge, Tape, Tensor};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Settings of a [`LanguageModel`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub struct LanguageModelConfig {
    /// Number of tokens of the vocabulary.
    pub tokens: usize,
    /// The settings of the table of vectors and of the positions that are added to them.
    pub embedding: WordEmbeddingConfig,
    /// The settings of the layers, whose mechanism must allow for a causal mask.
    pub encoder: EncoderConfig,
}

bochner_numerics::checked_when_read!(LanguageModelConfig);

impl LanguageModelConfig {
    /// A Transformer without added positions: the attention tells positions apart, by rotary positions, a position bias
    /// or its causal mask alone. Dropout is that of the layers.
    pub fn transformer(tokens: usize, encoder: EncoderConfig) -> Self {
        Self {
            tokens,
            embedding: WordEmbeddingConfig {
                scale: EmbeddingScale::RootOfWidth,
                dropout: encoder.layer.dropout,
                ..WordEmbeddingConfig::default()
            },
            encoder,
        }
    }

    fn validate(&self) -> Result<(), Error> {
        argument::at_least_one("tokens", self.tokens)?;
        self.embedding.validate()?;
        self.encoder.validate()?;
        let causal = self.encoder.layer.attention.card().causal;
        Ok(causal.required("a language model with this mechanism")?)
    }
}

/// A decoder-only Transformer: one table of vectors for the input and the output, and layers under a causal mask.
///
/// $$ \mathrm{logits} = \mathrm{Encoder}_{\mathrm{causal}}\bigl(\sqrt d W_x + P\bigr) W^\top $$
///
/// * $x$: the tokens, `[B, T]`
/// * $W$: the table, `[tokens, d]`; $P$: the added positions, zero by default
///
/// [`Trainer`] trains it on one long text, [`generate`](Self::generate) writes. Any causal mechanism goes: one with a
/// state of constant size, such as [`IkanDirect`](bochner_attention::IkanDirect) in linear time, generates any number of
/// tokens in constant memory.
///
/// # Reference
/// Radford et al., *Improving language understanding by generative pre-training*, 2018; Press and Wolf, *Using the Output
/// Embedding to Improve Language Models*, 2017, for the table that is tied.
///
/// ```
/// use bochner_attention::{Rotary, Softmax};
/// use bochner_models::attention::AttentionOptions;
/// use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
/// use bochner_models::language_model::{LanguageModelConfig, Sampling, Task, Trainer, TrainingConfig};
/// use bochner_numerics::Seed;
///
/// // A text of three characters in a fixed order.
/// let text: Vec<usize> = (0..300).map(|i| i % 3).collect();
/// let layer = EncoderLayerConfig {
///     width: 16,
///     heads: 2,
///     hidden: 32,
///     attention: Softmax::default().into(),
///     attention_options: AttentionOptions { rotary: Some(Rotary::default()), ..Default::default() },
///     dropout: 0.0,
///     norm: NormPlacement::Pre,
///     ..Default::default()
/// };
/// let config = LanguageModelConfig::transformer(3, EncoderConfig::new(1, layer));
/// let training = TrainingConfig { learning_rate: 0.01, ..Default::default() };
/// let mut trainer = Trainer::new(&config, &training, Task::new(text, 20, 4)?, Seed::new(1))?;
/// for _ in 0..20 {
///     trainer.epoch()?;
/// }
///
/// let greedy = Sampling { temperature: 0.0, ..Default::default() };
/// let written = trainer.model().generate(&[0, 1], &greedy, Seed::new(2))?.take(4);
/// assert_eq!(written.collect::<Result<Vec<_>, _>>()?, [2, 0, 1, 2]);
/// # Ok::<(), bochner_models::Error>(())
/// ```
#[doc(alias = "gpt")]
#[derive(Clone, Debug)]
pub struct LanguageModel<E: Element> {
    embedding: WordEmbedding<E>,
    encoder: Encoder<E>,
    config: LanguageModelConfig,
    /// The step of training that it stands at.
    step: u64,
}

impl<E: Element> LanguageModel<E> {
    /// A model with random initial values.
    ///
    /// # Errors
    /// [`Error::Argument`] for a setting that is out of range, [`Error::Attention`] for a mechanism that takes no causal
    /// mask.
    pub fn try_new(device: &Cpu, config: &LanguageModelConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let (width, place) = (config.encoder.layer.width, seed.child("embedding"));
        Ok(Self {
            embedding: WordEmbedding::try_new(
                device,
                config.tokens,
                width,
                &config.embedding,
                place,
            )?,
            encoder: Encoder::try_new(device, &config.encoder, seed.child("encoder"))?,
            config: config.clone(),
            step: 0,
        })
    }

    /// The model's settings.
    pub fn config(&self) -> &LanguageModelConfig {
        &self.config
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`](bochner_attention::MultiHead::go_to_step).
    pub fn go_to_step(&mut self, step: u64) {
        self.step = step;
        self.encoder.go_to_step(step);
    }

    /// The logits of the token behind each token, `[B T, tokens]`, and the attention's penalty, already weighted and summed
    /// over the batch.
    ///
    /// Only the first `lengths[b]` tokens of sequence `b` count: which token fills a sequence up behind them changes no
    /// logits before it.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there is one length for each sequence, at most T; [`Error::TooLong`] if T is more than
    /// there are positions; [`Error::Nn`] for a token that is not in the table.
    pub fn apply<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        tokens: Tensor<(usize, usize), usize, Cpu, T>,
        lengths: &[usize],
        pass: Pass,
    ) -> Result<Logits<E, T>, Error> {
        let encoded = self.vectors(tokens, lengths, pass)?;
        Ok(Attention {
            output: self.embedding.logits(encoded.output)?,
            penalty: encoded.penalty,
        })
    }

    /// The vectors that [`apply`](Self::apply) makes logits of, `[B, T, width]`.
    fn vectors<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        tokens: Tensor<(usize, usize), usize, Cpu, T>,
        lengths: &[usize],
        pass: Pass,
    ) -> Result<Encoded<E, T>, Error> {
        let (batch, time) = *tokens.shape();
        check_lengths(lengths, batch, time)?;
        let mask = Mask::causal().with_key_lengths(lengths.to_vec());
        let x = self.embedding.apply(tokens, pass)?;
        self.encoder.apply(x, &mask, pass)
    }
}

impl<E: Element> Parameters<E> for LanguageModel<E> {
    bochner_nn::visit_fields!(E: embedding, encoder);
}

/// The file of a model.
const FILE: Kind = Kind {
    name: "language-model",
    what: "language model",
    writer: "LanguageModel",
    trained_as: <Task as training::Task>::MODEL,
    method: "model",
};

impl LanguageModel<f32> {
    /// Writes the model to a file; a file that was there before is replaced when the new one is whole.
    ///
    /// # Errors
    /// [`Error::Nn`] if the file cannot be written, or for a parameter that is NaN or infinite; a file that was there
    /// before stays as it is.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        FILE.write(path.as_ref(), (self, self.step), &self.config, &())
    }

    /// Reads a model from its file. It gives the logits of the one that was saved.
    ///
    /// # Errors
    /// [`Error::Nn`] if the file cannot be read, is cut off or damaged, or holds parameters of other shapes than its
    /// settings; [`Error::TrainingRun`] for a checkpoint of a [`Trainer`], [`Error::OtherContents`] for one of something
    /// else.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let saved: Read<LanguageModelConfig, ()> = FILE.read(path.as_ref())?;
        let mut model = Self::try_new(&Cpu::default(), &saved.config, Seed::new(0))?;
        let step = saved.restore(&mut model)?;
        model.go_to_step(step);
        Ok(model)
    }
}
