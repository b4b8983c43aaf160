//! Translation of sequences of tokens into others.

mod search;
mod task;
mod text;

pub use crate::training::{EpochReport, TrainingConfig};
pub use search::Translation;
pub use task::{Pair, Task, Trainer};
pub use text::{ScoredLine, TextTranslator};

use crate::Error;
use crate::attention::{admit_dropout, is_default};
use crate::decoder::{Decoder, DecoderConfig, DecoderLayerConfig};
use crate::embedding::{EmbeddingScale, WordEmbedding, WordEmbeddingConfig};
use crate::encoder::{Encoded, Encoder, EncoderConfig, EncoderLayerConfig, Logits};
use crate::positions::Positions;
use bochner_attention::{
    Mask, Pass, Variant, card::Penalty, layer::Attention, mechanism::Inspection,
};
use bochner_nn::{Element, Parameters};
use bochner_numerics::{Seed, argument};
use bochner_ops::check_lengths;
use bochner_text::Vocabulary;
use dfdx::prelude::PutTape;
use dfdx::shapes::HasShape;
use dfdx::tensor::{Cpu, Merge, Tape, Tensor};
use dfdx::tensor_ops::TryAdd;
use serde::{Deserialize, Serialize};

/// Settings of a [`Translator`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub struct TranslatorConfig {
    /// Number of tokens of the vocabulary that both languages share, padding and marks included.
    pub tokens: usize,
    /// The token that every translation begins with.
    pub start: usize,
    /// The token that ends a translation.
    pub end: usize,
    /// Positions of the longest sequence, its mark included.
    pub longest: usize,
    /// The settings of the encoder.
    pub encoder: EncoderConfig,
    /// The settings of the decoder, of the encoder's width, and of its dropout unless `attention_dropout` is given.
    pub decoder: DecoderConfig,
    /// The positions that are added to the tokens' vectors. Defaults to sinusoids; rotary positions in the attentions do
    /// without.
    #[serde(default, skip_serializing_if = "is_default")]
    pub input_positions: InputPositions,
    /// The rate of dropout on the weights of all attentions in training. Defaults to the encoder's rate. A trainer
    /// refuses a form in linear time unless this is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(alias = "attention_dropout")]
    pub attention_dropout: Option<f64>,
    /// The [fingerprint](Vocabulary::fingerprint) of the vocabulary that the tokens are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<u64>,
}

bochner_numerics::checked_when_read!(TranslatorConfig);

impl TranslatorConfig {
    fn validate(&self) -> Result<(), Error> {
        for (name, token) in [("start", self.start), ("end", self.end)] {
            argument::index(name, token, self.tokens)?;
        }
        let differs = self.start != self.end;
        argument::in_range(
            differs,
            "end",
            self.end as f64,
            "another token than the start",
        )?;
        argument::at_least_one("longest", self.longest)?;
        self.encoder.validate()?;
        self.decoder.validate()?;
        argument::rate("attention_dropout", self.attention_dropout.unwrap_or(0.0))?;
        let (encoder, decoder) = (&self.encoder.layer, &self.decoder.layer);
        argument::shape("width of the decoder", &[encoder.width], &[decoder.width])?;
        // One pass says what is dropped from the weights of both.
        let alike = self.attention_dropout.is_some() || encoder.dropout == decoder.dropout;
        let allowed = "the dropout of the encoder, unless `attention_dropout` is given";
        Ok(argument::in_range(
            alike,
            "dropout of the decoder",
            decoder.dropout,
            allowed,
        )?)
    }

    /// Refuses dropout that no training pass of the three attentions supports.
    fn admit_training(&self) -> Result<(), Error> {
        let dropout = self.attention_dropout.unwrap_or(self.encoder.layer.dropout);
        self.attentions()
            .into_iter()
            .try_for_each(|attention| admit_dropout(attention, dropout))
    }

    /// The mechanisms of the encoder, of the decoder's attention to itself and of that to the memory.
    fn attentions(&self) -> [&Variant; 3] {
        let decoder = &self.decoder.layer;
        let encoder = &self.encoder.layer.attention;
        [encoder, &decoder.attention, &decoder.cross_attention]
    }

    /// A Transformer whose decoder has the encoder's sizes, with one mechanism in both of its attentions.
    ///
    /// The decoder's attention to itself has the options of the encoder's, and that to the memory those of them that need
    /// no positions.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a vocabulary without marks.
    pub fn transformer(
        vocabulary: &Vocabulary,
        longest: usize,
        encoder: EncoderConfig,
        of_decoder: Variant,
    ) -> Result<Self, Error> {
        let (Some(start), Some(end)) = (vocabulary.start(), vocabulary.end()) else {
            return Err(Error::Unsupported {
                what: "translation into a vocabulary without a start and an end",
                instead: "a vocabulary with `Marks::StartAndEnd`",
            });
        };
        let &EncoderLayerConfig {
            width,
            heads,
            hidden,
            dropout,
            activation,
            epsilon,
            ..
        } = &encoder.layer;
        let layer = DecoderLayerConfig {
            width,
            heads,
            hidden,
            attention: of_decoder.clone(),
            cross_attention: of_decoder,
            attention_options: encoder.layer.attention_options.clone(),
            cross_attention_options: (encoder.layer.attention_options.clone()).without_positions(),
            dropout,
            activation,
            epsilon,
        };
        let decoder = DecoderConfig {
            layers: encoder.layers,
            layer,
        };
        Ok(Self {
            tokens: vocabulary.len(),
            start,
            end,
            longest,
            encoder,
            decoder,
            input_positions: InputPositions::default(),
            attention_dropout: None,
            vocabulary: Some(vocabulary.fingerprint()),
        })
    }

    /// Refuses a vocabulary that the model was not made for.
    ///
    /// # Errors
    /// [`Error::Text`] with `AnotherVocabulary`, where the settings know theirs; [`Error::Argument`] for another number
    /// of tokens, start or end.
    pub fn expect(&self, vocabulary: &Vocabulary) -> Result<(), Error> {
        if let Some(fingerprint) = self.vocabulary {
            vocabulary.expect(fingerprint)?;
        }
        argument::shape("the vocabulary", &[self.tokens], &[vocabulary.len()])?;
        let marks = [
            ("start", self.start, vocabulary.start()),
            ("end", self.end, vocabulary.end()),
        ];
        for (name, token, mark) in marks {
            argument::in_range(mark == Some(token), name, token as f64, "the vocabulary's")?;
        }
        Ok(())
    }
}

/// The positions that a [`Translator`] adds to the vectors of its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputPositions {
    /// Sines and cosines, [`Positions::Sinusoidal`].
    #[default]
    Sinusoidal,
    /// No positions: the attentions tell positions apart, by rotary positions or a position bias.
    None,
}

/// A Transformer that reads a sequence and writes another: one table of vectors for the source, for the target and for
/// the output, positions at the input, an encoder, a decoder.
///
/// $$ \mathrm{logits} = D\bigl(\sqrt d W_y + P, E(\sqrt d W_x + P)\bigr) W^\top $$
///
/// * $x$, $y$: the tokens of the source `[B, S]`, and of the target behind its start `[B, T]`
/// * $W$: the table, `[tokens, d]`; $P$: the positions, or zero without [`InputPositions`]
/// * $E$, $D$: [`Encoder`] and [`Decoder`]; the memory of a pre-LN encoder is normalised behind its last layer
///
/// # Reference
/// Vaswani et al., *Attention Is All You Need*, 2017; Press and Wolf, *Using the Output Embedding to Improve Language
/// Models*, 2017, for the table that is tied.
#[derive(Clone, Debug)]
pub struct Translator<E: Element> {
    embedding: WordEmbedding<E>,
    encoder: Encoder<E>,
    decoder: Decoder<E>,
    config: TranslatorConfig,
    /// The step of training that it stands at.
    step: u64,
}

/// The inspection of a [`Translator`]'s attentions, one entry for each layer, the lowest first.
///
/// # Shapes
/// The weights are `[B, heads, S, S]` in the encoder, `[B, heads, T, T]` in the decoder and `[B, heads, T, S]` across.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslatorInspection<E> {
    /// The encoder's attention to itself.
    pub encoder: Vec<Inspection<E>>,
    /// The decoder's attention to itself, which is causal.
    pub decoder: Vec<Inspection<E>>,
    /// The decoder's attention to the encoder's output.
    pub cross: Vec<Inspection<E>>,
}

impl<E: Element> Translator<E> {
    /// A translator with random initial values.
    ///
    /// # Errors
    /// A setting that is out of range is refused; [`Error::Attention`] for a mechanism that does not fit its slot,
    /// [`Error::Unsupported`] for one in the decoder that cannot go on token by token, and for mechanisms whose penalties
    /// are of different kinds.
    pub fn try_new(device: &Cpu, config: &TranslatorConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let width = config.encoder.layer.width;
        let embedding = WordEmbeddingConfig {
            scale: EmbeddingScale::RootOfWidth,
            positions: match config.input_positions {
                InputPositions::Sinusoidal => Positions::Sinusoidal {
                    longest: config.longest,
                },
                InputPositions::None => Positions::None,
            },
            dropout: config.encoder.layer.dropout,
        };
        let (tokens, place) = (config.tokens, seed.child("embedding"));
        let translator = Self {
            embedding: WordEmbedding::try_new(device, tokens, width, &embedding, place)?,
            encoder: Encoder::try_new(device, &config.encoder, seed.child("encoder"))?,
            decoder: Decoder::try_new(device, &config.decoder, seed.child("decoder"))?,
            config: config.clone(),
            step: 0,
        };
        translator.penalty()?;
        translator.decoder.expect_steps()?;
        Ok(translator)
    }

    /// The translator's settings.
    pub fn config(&self) -> &TranslatorConfig {
        &self.config
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`](bochner_attention::MultiHead::go_to_step).
    pub fn go_to_step(&mut self, step: u64) {
        self.step = step;
        self.encoder.go_to_step(step);
        self.decoder.go_to_step(step);
    }

    /// The logits of the token behind each token of the target, `[B T, tokens]`, and the attention's penalty, already
    /// weighted and summed over the batch.
    ///
    /// Only the first `lengths[b]` tokens of sequence `b` count, of sources and of targets alike: which token fills a
    /// sequence up behind them changes no logits before it.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there is one length for each sequence, at most S or T; [`Error::TooLong`] if S or T is
    /// more than there are positions; [`Error::Nn`] for a token that is not in the table.
    pub fn apply<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        source: Tensor<(usize, usize), usize, Cpu, T>,
        target: Tensor<(usize, usize), usize, Cpu>,
        lengths: [&[usize]; 2],
        pass: Pass,
    ) -> Result<Logits<E, T>, Error> {
        let decoded = self.vectors(source, target, lengths, pass)?;
        Ok(Attention {
            output: self.embedding.logits(decoded.output)?,
            penalty: decoded.penalty,
        })
    }

    /// Returns the vectors that [`apply`](Self::apply) turns into logits, `[B, T, width]`.
    fn vectors<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        source: Tensor<(usize, usize), usize, Cpu, T>,
        target: Tensor<(usize, usize), usize, Cpu>,
        lengths: [&[usize]; 2],
        pass: Pass,
    ) -> Result<Encoded<E, T>, Error> {
        let [of_source, of_target] = self.masks([*source.shape(), *target.shape()], lengths)?;
        let [first, second] = [pass.nth(0), pass.nth(1)];
        let x = self.embedding.apply(source, first)?;
        let y = self
            .embedding
            .apply(target.put_tape(T::default()), second)?;
        let encoded = self.encoder.apply(x, &of_source, first)?;
        let masks = [&of_target, &of_source];
        let decoded = self.decoder.apply(y, encoded.output, masks, second)?;
        let penalty = encoded.penalty.try_add(decoded.penalty);
        Ok(Attention {
            output: decoded.output,
            penalty: penalty.map_err(bochner_nn::Error::from)?,
        })
    }

    /// Weights of every head, queries, keys and other inner values of every attention.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply); [`Error::Attention`] for a mechanism that shows no weights.
    pub fn inspect(
        &self,
        source: Tensor<(usize, usize), usize, Cpu>,
        target: Tensor<(usize, usize), usize, Cpu>,
        lengths: [&[usize]; 2],
        pass: Pass,
    ) -> Result<TranslatorInspection<E>, Error> {
        let [of_source, of_target] = self.masks([*source.shape(), *target.shape()], lengths)?;
        let [first, second] = [pass.nth(0), pass.nth(1)];
        let x = self.embedding.apply(source, first)?;
        let y = self.embedding.apply(target, second)?;
        let encoder = self.encoder.inspect(x.clone(), &of_source, first)?;
        let memory = self.encoder.apply(x, &of_source, first)?.output;
        let masks = [&of_target, &of_source];
        let seen = self.decoder.inspect(y, &memory, masks, second)?;
        let (decoder, cross) = seen.into_iter().map(<(_, _)>::from).unzip();
        Ok(TranslatorInspection {
            encoder,
            decoder,
            cross,
        })
    }

    /// The masks of sources and targets of these shapes and lengths.
    fn masks(
        &self,
        shapes: [(usize, usize); 2],
        lengths: [&[usize]; 2],
    ) -> Result<[Mask; 2], Error> {
        for (lengths, (batch, time)) in lengths.into_iter().zip(shapes) {
            check_lengths(lengths, batch, time)?;
            self.fits(time)?;
        }
        Ok(lengths.map(|own| Mask::none().with_key_lengths(own.to_vec())))
    }

    /// Refuses a sequence of more positions than the longest.
    fn fits(&self, got: usize) -> Result<(), Error> {
        let longest = self.config.longest;
        match got > longest {
            true => Err(Error::TooLong { got, longest }),
            false => Ok(()),
        }
    }

    /// The pass of a training step, with dropout on the attentions' weights.
    fn training(&self, seed: Seed) -> Pass {
        match self.config.attention_dropout {
            Some(dropout) => Pass::Training { seed, dropout },
            None => self.encoder.training(seed),
        }
    }

    /// The kind of the penalties of all attentions.
    fn penalty(&self) -> Result<Penalty, Error> {
        let of = self.config.attentions();
        let mut kinds = of.map(|variant| variant.card().penalty).to_vec();
        kinds.retain(|kind| *kind != Penalty::None);
        let first = kinds.first().copied().unwrap_or(Penalty::None);
        match kinds.iter().all(|kind| *kind == first) {
            true => Ok(first),
            false => Err(Error::Unsupported {
                what: "objective of attentions whose penalties are of different kinds",
                instead: "mechanisms with one kind of penalty, or without any, in all three slots",
            }),
        }
    }
}

impl<E: Element> Parameters<E> for Translator<E> {
    bochner_nn::visit_fields!(E: embedding, encoder, decoder);
}
