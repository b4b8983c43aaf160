//! Translating: the encoder once, then the decoder token by token.

use super::{Trainer, Translator, embedding_mode};
use crate::Error;
use crate::decoder::DecoderSteps;
use crate::translator::task::tensor;
use bochner_attention::{Mask, Pass};
use bochner_nn::Element;
use bochner_numerics::argument;
use bochner_text::{BeamConfig, BeamSearch, Tokens, Vocabulary, padded};
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

/// Hypotheses of all sentences that are translated at a time, about.
const HYPOTHESES: usize = 128;

/// The best translation that a search has found.
fn best(search: BeamSearch<'_>) -> Result<Translation, Error> {
    let Some(mut best) = search.found().hypotheses.into_iter().next() else {
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

impl<E: Element> Translator<E> {
    /// The best translation of each source that a beam search finds; with a beam of 1, the greedy one.
    ///
    /// A translation that has the longest length allowed ends there.
    ///
    /// # Numerics
    /// States are kept from token to token, so that a token takes the time of one position, and sentences of similar
    /// length take their steps together. What a mechanism draws for a sentence depends on its place among these, and
    /// nothing else does. The logarithmic probabilities are those of [`apply`](Self::apply) in the same pass, to
    /// rounding.
    ///
    /// # Errors
    /// [`Error::Text`] for a beam of 0 and the like; [`Error::TooLong`] for a longest translation that has more tokens
    /// than there are positions; [`Error::Unsupported`] for a training pass; [`Error::Attention`] for a mechanism that
    /// does not decode.
    ///
    /// A source that cannot be translated has its own error in its place, and the others their translations:
    /// [`Error::TooLong`] if it has more tokens than there are positions; [`Error::Argument`] for a token that is not
    /// in the table; [`Error::Text`] or [`Error::Unsupported`] where the numbers overflow.
    pub fn translate(
        &self,
        sources: &[Vec<usize>],
        beam: &BeamConfig,
        pass: Pass,
    ) -> Result<Vec<Result<Translation, Error>>, Error> {
        if matches!(pass, Pass::Training { .. }) {
            return Err(Error::Unsupported {
                what: "translation in a training pass",
                instead: "`Pass::Evaluation`: a search drops nothing",
            });
        }
        self.searches(beam)?;
        let checked = sources.iter().map(|source| self.reads(source));
        let mut translations: Vec<_> = checked
            .map(|checked| checked.map(|()| Translation::default()))
            .collect();
        let mut order: Vec<usize> = (0..sources.len()).collect();
        order.retain(|&at| translations[at].is_ok());
        order.sort_by_key(|&at| sources[at].len());
        let together = (HYPOTHESES / beam.beam).max(1);
        for batch in order.chunks(together) {
            let read: Vec<Vec<usize>> = batch.iter().map(|&at| sources[at].clone()).collect();
            let found = self.translate_batch(&read, beam, pass)?;
            for (&at, translation) in batch.iter().zip(found) {
                translations[at] = translation;
            }
        }
        Ok(translations)
    }

    /// Refuses settings that no search can have.
    pub(super) fn searches(&self, beam: &BeamConfig) -> Result<(), Error> {
        BeamSearch::new(self.tokens(), beam)?;
        self.embedding.fits(beam.max_length)
    }

    /// Refuses a source that the encoder cannot read.
    fn reads(&self, source: &[usize]) -> Result<(), Error> {
        self.embedding.fits(source.len())?;
        for &token in source {
            argument::index("source", token, self.config.tokens)?;
        }
        Ok(())
    }

    /// What a search knows of the tokens.
    fn tokens(&self) -> Tokens {
        Tokens {
            vocabulary: self.config.tokens,
            start: self.config.start,
            end: self.config.end,
        }
    }

    /// The translations of sources whose searches take their steps together.
    fn translate_batch(
        &self,
        sources: &[Vec<usize>],
        beam: &BeamConfig,
        pass: Pass,
    ) -> Result<Vec<Result<Translation, Error>>, Error> {
        let tokens = self.tokens();
        let search = |_| BeamSearch::new(tokens, beam);
        // A search that fails ends there, and the others go on.
        let mut searches: Vec<Result<_, bochner_text::Error>> =
            sources.iter().map(search).collect();
        let mut steps = self.memory(sources, pass)?;
        let mut going: Vec<usize> = (0..sources.len()).collect();
        let mut log_probs = Vec::new();
        for position in 0.. {
            let live = going.iter().filter_map(|&at| searches[at].as_ref().ok());
            let live = live.flat_map(BeamSearch::live);
            let last = live.map(|hypothesis| *hypothesis.tokens.last().expect("a start"));
            let logits = self.next(&mut steps, &last.collect::<Vec<_>>(), position)?;
            log_probs.resize(logits.len(), E::default());
            let rows = log_probs.chunks_mut(tokens.vocabulary);
            for (logits, row) in logits.outer_iter().zip(rows) {
                log_softmax(logits.iter().copied(), row);
            }
            // The rows of the states that hypotheses go on from.
            let (mut parents, mut row) = (Vec::new(), 0);
            going.retain(|&at| {
                let Ok(search) = &mut searches[at] else {
                    return false;
                };
                let rows = row..row + search.live().len();
                row = rows.end;
                let own = rows.start * tokens.vocabulary..rows.end * tokens.vocabulary;
                if let Err(error) = search.advance(&log_probs[own]) {
                    searches[at] = Err(error);
                    return false;
                }
                let goes_on = !search.is_over();
                if goes_on {
                    let live = search.live().iter();
                    parents.extend(live.map(|hypothesis| rows.start + hypothesis.parent));
                }
                goes_on
            });
            if going.is_empty() {
                break;
            }
            let stay = parents.iter().copied().eq(0..row);
            if !stay {
                steps.reorder(&parents)?;
            }
        }
        let searches = searches.into_iter();
        Ok(searches.map(|search| best(search?)).collect())
    }

    /// The decoder before the first token of a translation of each source.
    fn memory(&self, sources: &[Vec<usize>], pass: Pass) -> Result<DecoderSteps<E>, Error> {
        let all: Vec<usize> = (0..sources.len()).collect();
        let read = padded(sources, &all, Vocabulary::PADDING)?;
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
pub(super) fn log_softmax<E: Element>(row: impl Iterator<Item = E> + Clone, log_probs: &mut [E]) {
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
    ) -> Result<Vec<Result<Translation, Error>>, Error> {
        let seed = self.evaluation_seed();
        self.model()
            .translate(sources, beam, Pass::Evaluation { seed })
    }
}
