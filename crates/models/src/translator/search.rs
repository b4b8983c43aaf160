//! Translating: the encoder once, then the decoder token by token.

use super::{Trainer, Translator};
use crate::Error;
use crate::decoder::{DecoderSteps, PackedDecoder};
use crate::embedding::tensor;
use bochner_attention::{Mask, Pass};
use bochner_nn::Element;
use bochner_numerics::{Buffers, argument, parallel};
use bochner_ops::{PackedAffine, log_softmax};
use bochner_text::{BeamConfig, BeamSearch, Tokens, Vocabulary, padded};
use dfdx::shapes::HasShape;
use ndarray::{Array3, ArrayView3, ArrayViewMut3};

/// A translation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translation {
    /// Its tokens without marks.
    pub tokens: Vec<usize>,
    /// The logarithm of its probability, that of its end included.
    pub log_prob: f64,
}

/// Hypotheses of all sentences that take their steps together, about.
const HYPOTHESES: usize = 160;

/// Sentences that take their steps together, at most: enough rows for products at their speed, and several batches
/// for the threads.
const SENTENCES: usize = 32;

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
    /// [`Error::Text`] for a beam of 0 and the like; [`Error::Argument`] for a longest translation that has more tokens
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
        let together = (HYPOTHESES / beam.beam).clamp(1, SENTENCES);
        let packed = Packed {
            decoder: self.decoder.packed()?,
            table: self.embedding.packed_logits(),
            numbers: Buffers::default(),
        };
        // A batch is one thread's work, which has nothing to wait for, as long as there are enough of them.
        let batches: Vec<&[usize]> = order.chunks(together).collect();
        let translated = |i: usize| {
            let read: Vec<Vec<usize>> = batches[i].iter().map(|&at| sources[at].clone()).collect();
            self.translate_batch(&packed, &read, beam, pass)
        };
        let found = parallel::awake(|| parallel::map(batches.len(), translated));
        for (batch, found) in batches.iter().zip(found) {
            for (&at, translation) in batch.iter().zip(found?) {
                translations[at] = translation;
            }
        }
        Ok(translations)
    }

    /// Refuses settings that no search can have.
    pub(super) fn searches(&self, beam: &BeamConfig) -> Result<(), Error> {
        BeamSearch::new(self.tokens(), beam)?;
        let (got, longest) = (beam.max_length, self.config.longest);
        if got > longest {
            let allowed = format!(
                "at most {longest}, the model's number of positions; to change another setting of a `TextTranslator`'s \
                 search, start from `..translator.search().clone()`"
            );
            return Err(argument::out_of_range("max_length", got as f64, allowed).into());
        }
        Ok(())
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
        packed: &Packed<E>,
        sources: &[Vec<usize>],
        beam: &BeamConfig,
        pass: Pass,
    ) -> Result<Vec<Result<Translation, Error>>, Error> {
        let tokens = self.tokens();
        let search = |_| BeamSearch::new(tokens, beam);
        // A search that fails ends there, and the others go on.
        let mut searches: Vec<Result<_, bochner_text::Error>> =
            sources.iter().map(search).collect();
        let mut steps = self.memory(packed, sources, pass)?;
        let mut rows = Rows::new(sources.len());
        let (mut vectors, mut log_probs) = (Vec::new(), Vec::new());
        for position in 0.. {
            let before = rows.count();
            rows.go_on(&searches);
            if rows.count() == 0 {
                break;
            }
            let stay = rows.parents.iter().copied().eq(0..before);
            if !stay {
                steps.reorder(&rows.parents)?;
            }
            vectors.resize(rows.count() * self.embedding.width(), E::default());
            log_probs.resize(rows.count() * tokens.vocabulary, E::default());
            self.embedding
                .write_at(&rows.last, position, &mut vectors)?;
            packed.logits(&mut steps, &vectors, &mut log_probs)?;
            // Every search has rows of its own.
            parallel::for_each_piece(
                (&mut searches[..], &mut log_probs[..]),
                sources.len(),
                |(searches, log_probs), at, next| {
                    let own = rows.starts[next] - rows.starts[at];
                    let (searches, more_searches) = searches.split_at_mut(next - at);
                    let (log_probs, more) = log_probs.split_at_mut(own * tokens.vocabulary);
                    ((searches, log_probs), (more_searches, more))
                },
                |_, (search, log_probs)| advance(&mut search[0], log_probs, tokens.vocabulary),
            );
        }
        let searches = searches.into_iter();
        Ok(searches.map(|search| best(search?)).collect())
    }

    /// The decoder before the first token of a translation of each source.
    fn memory(
        &self,
        packed: &Packed<E>,
        sources: &[Vec<usize>],
        pass: Pass,
    ) -> Result<DecoderSteps<E>, Error> {
        let all: Vec<usize> = (0..sources.len()).collect();
        let read = padded(sources, &all, Vocabulary::PADDING)?;
        let [first, second] = [pass.nth(0), pass.nth(1)];
        let x = self.embedding.apply(tensor(&read)?, first)?;
        let mask = Mask::none().with_key_lengths(read.lengths);
        let encoded = self.encoder.apply(x, &mask, first)?.output;
        let memory = Array3::from_shape_vec(*encoded.shape(), encoded.as_vec());
        let memory = memory.expect("a tensor has the elements of its shape");
        packed.decoder.steps(memory.view(), &mask, second)
    }
}

/// What the searches of all batches read of a translator, packed once.
struct Packed<E: Element> {
    decoder: PackedDecoder<E>,
    table: PackedAffine<E>,
    numbers: Buffers<E>,
}

impl<E: Element> Packed<E> {
    /// Writes the logits of the tokens that follow, `[B, tokens]`, given the vectors of the last ones, `[B, width]`.
    fn logits(
        &self,
        steps: &mut DecoderSteps<E>,
        vectors: &[E],
        logits: &mut [E],
    ) -> Result<(), Error> {
        let batch = logits.len() / self.table.outputs();
        let shape = [batch, 1, vectors.len() / batch];
        let mut decoded = self.numbers.any(vectors.len());
        let x = ArrayView3::from_shape(shape, vectors).expect("rows of one width");
        let output = ArrayViewMut3::from_shape(shape, &mut decoded).expect("as many");
        steps.step_into(x, output)?;
        self.table.apply(&decoded, &self.numbers, logits, |_| ());
        Ok(())
    }
}

/// The live hypotheses of all searches that go on, one after the other: the rows of a step.
struct Rows {
    /// The first row of each search, which has none once it is over, and the number of all rows.
    starts: Vec<usize>,
    /// The row of the step before that each hypothesis continues.
    parents: Vec<usize>,
    /// The last token of each hypothesis.
    last: Vec<usize>,
}

impl Rows {
    /// A row for each search.
    fn new(searches: usize) -> Self {
        Self {
            starts: (0..=searches).collect(),
            parents: Vec::new(),
            last: Vec::new(),
        }
    }

    /// The number of all rows.
    fn count(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Goes on to the rows of the next step.
    fn go_on(&mut self, searches: &[Result<BeamSearch<'_>, bochner_text::Error>]) {
        self.parents.clear();
        self.last.clear();
        for (start, search) in self.starts.iter_mut().zip(searches) {
            let before = std::mem::replace(start, self.last.len());
            let going = search.as_ref().ok().filter(|search| !search.is_over());
            for hypothesis in going.into_iter().flat_map(BeamSearch::live) {
                self.parents.push(before + hypothesis.parent);
                self.last.push(*hypothesis.tokens.last().expect("a start"));
            }
        }
        if let Some(count) = self.starts.last_mut() {
            *count = self.last.len();
        }
    }
}

/// A search's next step, given the logits of its rows, if it has any.
fn advance<E: Element>(
    search: &mut Result<BeamSearch<'_>, bochner_text::Error>,
    logits: &mut [E],
    vocabulary: usize,
) {
    let Ok(going) = search else { return };
    if logits.is_empty() {
        return;
    }
    logits.chunks_exact_mut(vocabulary).for_each(log_softmax);
    if let Err(error) = going.advance(logits) {
        *search = Err(error);
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
