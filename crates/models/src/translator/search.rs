//! Translating: the encoder once, then the decoder token by token.

use super::{Trainer, Translator, embedding_mode};
use crate::Error;
use crate::decoder::DecoderSteps;
use crate::translator::task::tensor;
use bochner_attention::{Mask, Pass};
use bochner_nn::Element;
use bochner_numerics::argument;
use bochner_text::{BeamConfig, Live, Tokens, Vocabulary, beam_search, padded};
use dfdx::shapes::HasShape;
use ndarray::{Array2, Array3, Axis};

/// A translation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translation {
    /// Its tokens without marks.
    pub tokens: Vec<usize>,
    /// The logarithm of its probability, that of its end included.
    pub log_prob: f64,
}

impl<E: Element> Translator<E> {
    /// The best translation of each source that a beam search finds; with a beam of 1, the greedy one.
    ///
    /// A translation that has the longest length allowed ends there.
    ///
    /// # Numerics
    /// States are kept from token to token, so that a token takes the time of one position. The logarithmic
    /// probabilities are those of [`apply`](Self::apply) in the same pass, to rounding.
    ///
    /// # Errors
    /// [`Error::Text`] for a beam of 0 and the like; [`Error::TooLong`] for a source, or a longest translation, that has
    /// more tokens than there are positions; [`Error::Argument`] for a token that is not in the table;
    /// [`Error::Attention`] for a mechanism that does not decode.
    pub fn translate(
        &self,
        sources: &[Vec<usize>],
        beam: &BeamConfig,
        pass: Pass,
    ) -> Result<Vec<Translation>, Error> {
        self.embedding.fits(beam.max_length)?;
        let each = sources
            .iter()
            .map(|source| self.translate_one(source, beam, pass));
        each.collect()
    }

    fn translate_one(
        &self,
        source: &[usize],
        beam: &BeamConfig,
        pass: Pass,
    ) -> Result<Translation, Error> {
        let mut steps = self.memory(&[source.to_vec()], pass)?;
        let tokens = Tokens {
            vocabulary: self.config.tokens,
            start: self.config.start,
            end: self.config.end,
        };
        let mut first = true;
        let step = |live: &[Live], log_probs: &mut [E]| -> Result<(), Error> {
            let parents: Vec<usize> = live.iter().map(|hypothesis| hypothesis.parent).collect();
            if !std::mem::take(&mut first) {
                steps.reorder(&parents)?;
            }
            let last = live
                .iter()
                .map(|hypothesis| *hypothesis.tokens.last().expect("a start"));
            let position = live[0].tokens.len() - 1;
            let logits = self.next(&mut steps, &last.collect::<Vec<_>>(), position)?;
            for (row, log_probs) in logits
                .outer_iter()
                .zip(log_probs.chunks_mut(tokens.vocabulary))
            {
                log_softmax(row.iter().copied(), log_probs);
            }
            Ok(())
        };
        let found = beam_search(&tokens, beam, step)?;
        let Some(mut best) = found.hypotheses.into_iter().next() else {
            return Err(Error::Unsupported {
                what: "translation whose end has a probability above zero in this precision",
                instead: "a model whose logits differ by less than the largest number",
            });
        };
        best.tokens.pop();
        Ok(Translation {
            tokens: best.tokens,
            log_prob: best.log_prob,
        })
    }

    /// The decoder before the first token of a translation of each source.
    fn memory(&self, sources: &[Vec<usize>], pass: Pass) -> Result<DecoderSteps<E>, Error> {
        let all: Vec<usize> = (0..sources.len()).collect();
        let read = padded(sources, &all, Vocabulary::PADDING)?;
        for &token in &read.numbers {
            argument::index("source", token, self.config.tokens)?;
        }
        let [first, second] = [pass.nth(0), pass.nth(1)];
        let x = self
            .embedding
            .apply(tensor(&read)?, embedding_mode(first))?;
        let mask = Mask::none().with_key_lengths(read.lengths);
        let encoded = self.encoder.apply(x, &mask, first)?.output;
        let memory = Array3::from_shape_vec(*encoded.shape(), encoded.as_vec());
        let memory = memory.expect("a tensor has the elements of its shape");
        self.decoder.steps(memory.view(), &mask, second)
    }

    /// The logits of the tokens that follow, `[B, tokens]`, given the last token of each sequence and its position.
    fn next(
        &self,
        steps: &mut DecoderSteps<E>,
        last: &[usize],
        position: usize,
    ) -> Result<Array2<E>, Error> {
        let vectors = self.embedding.at(last, position)?;
        let decoded = steps.step(vectors.insert_axis(Axis(1)))?;
        Ok(self.embedding.logits_of(&decoded))
    }
}

/// The logarithms of the softmax of a row.
fn log_softmax<E: Element>(row: impl Iterator<Item = E> + Clone, log_probs: &mut [E]) {
    let largest = row.clone().fold(E::neg_infinity(), |a, b| a.max(b));
    let total: f64 = row.clone().map(|x| (x - largest).as_f64().exp()).sum();
    let total = total.ln();
    for (log_prob, x) in log_probs.iter_mut().zip(row) {
        *log_prob = E::of((x - largest).as_f64() - total);
    }
}

impl Trainer {
    /// [`Translator::translate`] by the model as it stands, in evaluation.
    ///
    /// # Errors
    /// The errors of [`Translator::translate`].
    pub fn translate(
        &self,
        sources: &[Vec<usize>],
        beam: &BeamConfig,
    ) -> Result<Vec<Translation>, Error> {
        let seed = self.evaluation_seed();
        self.model()
            .translate(sources, beam, Pass::Evaluation { seed })
    }
}
