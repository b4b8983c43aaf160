//! Translating: the encoder once, then the decoder token by token.

use super::{Trainer, Translator};
use crate::Error;
use crate::decoder::{DecoderSteps, PackedDecoder};
use crate::embedding::tensor;
use bochner_attention::{Mask, Pass};
use bochner_nn::Element;
use bochner_numerics::{ArgumentError, Buffers, argument, parallel};
use bochner_ops::{PackedAffine, log_softmax};
use bochner_text::{BeamConfig, BeamSearch, Hypothesis, Tokens, Vocabulary, padded};
use dfdx::shapes::HasShape;
use ndarray::{Array3, ArrayView3, ArrayViewMut3};

/// A translation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translation {
    /// Its tokens without the start and the end. A model that gives them probability may write the padding and the
    /// unknown token.
    pub tokens: Vec<usize>,
    /// The logarithm of its probability, that of its end included.
    pub log_prob: f64,
    /// The score that it was ranked by: see [`BeamConfig::score`].
    pub score: f64,
}

/// The most hypotheses that take their steps together, unless those of one sentence are more.
const HYPOTHESES: usize = 160;

/// The most sentences that take their steps together: with the usual beams, enough rows for products at their full
/// speed. More sentences are several batches, which the threads share.
const SENTENCES: usize = 32;

/// The translations that a search has found, the best one first; `None` is a search that has failed.
fn found(search: Option<BeamSearch<'_>>) -> Result<Vec<Translation>, Error> {
    let found = search.map_or_else(Vec::new, |search| search.found().hypotheses);
    if found.is_empty() {
        return Err(Error::Overflow);
    }
    let translation = |mut found: Hypothesis| {
        found.tokens.pop();
        Translation {
            tokens: found.tokens,
            log_prob: found.log_prob,
            score: found.score,
        }
    };
    Ok(found.into_iter().map(translation).collect())
}

impl<E: Element> Translator<E> {
    /// The default settings of a search, for translations as long as the model has positions for.
    pub fn search(&self) -> BeamConfig {
        BeamConfig {
            max_length: self.config.longest,
            ..BeamConfig::default()
        }
    }

    /// The best translation of each source that a beam search finds; with a beam of 1 and
    /// [`Stop::Count`](bochner_text::Stop), the greedy one.
    ///
    /// A translation that has the longest length allowed ends there.
    ///
    /// Each call copies and packs the decoder's weights, so that many sources in one call take less time than one by one.
    ///
    /// # Numerics
    /// States are kept from token to token, so that a token takes the time of one position. Sentences of similar length
    /// take their steps together, at most 32 of them, and fewer the wider the beam is above 5: at most 160 hypotheses.
    /// What a mechanism draws, such as the spectral points of [`Mikan`](bochner_attention::Mikan), it draws once for all
    /// sentences. A sentence's neighbours change its numbers by rounding alone, the number of threads changes nothing. The
    /// logarithmic probabilities are those of
    /// [`apply`](Self::apply) in the same pass, to rounding.
    ///
    /// About as many batches are at work at once as there are threads, and each holds the states of its hypotheses. Keys
    /// and values that hypotheses have in common are there once. A state of constant size is held by each hypothesis: for a
    /// squared kernel with R spectral points in linear time, `R (2 R + 1) (head width + 1)` numbers for each head of each
    /// layer. With 32 points, 4 layers of 4 heads of width 32 and `f32` these are 4.4 MB a hypothesis, 0.7 GB a batch.
    ///
    /// # Errors
    /// [`Error::Text`] for a beam of 0 and the like; [`Error::Argument`] for a longest translation that has more tokens
    /// than there are positions; [`Error::Unsupported`] for a training pass.
    ///
    /// A source that cannot be translated has its own error in its place, and the others their translations:
    /// [`Error::TooLong`] if it has more tokens than there are positions; [`Error::Argument`] for a token that is not
    /// in the table; [`Error::Overflow`], or the error of a mechanism, where the numbers overflow. Where a mechanism refuses
    /// a whole batch for its numbers, each source of it is translated alone; any other error of a batch is that of the
    /// call.
    pub fn translate(
        &self,
        sources: &[Vec<usize>],
        beam: &BeamConfig,
        pass: Pass,
    ) -> Result<Vec<Result<Translation, Error>>, Error> {
        let lists = self.n_best(sources, beam, pass)?.into_iter();
        Ok(lists
            .map(|list| list.map(|mut list| list.swap_remove(0)))
            .collect())
    }

    /// The n-best list of each source: the translations that a beam search finds, at most as many as the beam is wide and
    /// at least one, with their scores, the best one first. The first one is that of [`translate`](Self::translate).
    ///
    /// # Errors
    /// The errors of [`translate`](Self::translate).
    pub fn n_best(
        &self,
        sources: &[Vec<usize>],
        beam: &BeamConfig,
        pass: Pass,
    ) -> Result<Vec<Result<Vec<Translation>, Error>>, Error> {
        self.n_best_packed(&self.packed()?, sources, beam, pass)
    }

    /// Packs the parts of the translator that searches read, for use by all searches.
    pub(super) fn packed(&self) -> Result<Packed<E>, Error> {
        Ok(Packed {
            decoder: self.decoder.packed()?,
            table: self.embedding.packed_logits(),
            numbers: Buffers::default(),
        })
    }

    /// [`n_best`](Self::n_best) by what was packed of this translator before.
    pub(super) fn n_best_packed(
        &self,
        packed: &Packed<E>,
        sources: &[Vec<usize>],
        beam: &BeamConfig,
        pass: Pass,
    ) -> Result<Vec<Result<Vec<Translation>, Error>>, Error> {
        if matches!(pass, Pass::Training { .. }) {
            return Err(Error::Unsupported {
                what: "translation in a training pass",
                instead: "`Pass::Evaluation`: a search drops nothing",
            });
        }
        self.searches(beam, "`Translator::search` gives settings that fit")?;
        let refused = sources.iter().map(|source| self.reads(source).err());
        let mut translations: Vec<Option<Result<Vec<Translation>, Error>>> =
            refused.map(|error| error.map(Err)).collect();
        let mut order: Vec<usize> = (0..sources.len()).collect();
        order.retain(|&at| translations[at].is_none());
        order.sort_by_key(|&at| sources[at].len());
        let translated = |batch: &[usize]| {
            let read: Vec<Vec<usize>> = batch.iter().map(|&at| sources[at].clone()).collect();
            self.translate_batch(packed, &read, beam, pass)
        };
        let alone = |at: &usize| {
            let found = translated(std::slice::from_ref(at));
            found.map_or_else(Err, |mut found| found.remove(0))
        };
        let together = (HYPOTHESES / beam.beam).clamp(1, SENTENCES);
        let batches = batches(&order, together);
        let found = parallel::awake(|| {
            parallel::map(batches.len(), |i| match translated(batches[i]) {
                Err(error) if !is_of_numbers(&error) => Err(error),
                Err(error) if batches[i].len() == 1 => Ok(vec![Err(error)]),
                // The numbers of one source are enough to refuse the batch.
                Err(_) => Ok(batches[i].iter().map(alone).collect()),
                found => found,
            })
        });
        let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (&at, found) in order.iter().zip(found.into_iter().flatten()) {
            translations[at] = Some(found);
        }
        let all = translations.into_iter();
        Ok(all
            .map(|found| found.expect("every source is refused or translated"))
            .collect())
    }

    /// Refuses settings that no search can have; `advice` says what to do about a longest translation that has no place.
    pub(super) fn searches(&self, beam: &BeamConfig, advice: &str) -> Result<(), Error> {
        BeamSearch::new(self.tokens(), &beam.for_source(0)?)?;
        let (got, longest) = (beam.max_length, self.config.longest);
        if got > longest {
            let allowed = format!("at most {longest}, the model's number of positions; {advice}");
            return Err(argument::out_of_range("max_length", got as f64, allowed).into());
        }
        Ok(())
    }

    /// Refuses a source that the encoder cannot read.
    fn reads(&self, source: &[usize]) -> Result<(), Error> {
        self.fits(source.len())?;
        for &token in source {
            argument::index("source", token, self.config.tokens)?;
        }
        Ok(())
    }

    /// Returns the tokens' numbers that a search needs.
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
    ) -> Result<Vec<Result<Vec<Translation>, Error>>, Error> {
        let tokens = self.tokens();
        let settings = sources.iter().map(|source| beam.for_source(source.len()));
        let settings: Vec<BeamConfig> = settings.collect::<Result<_, _>>()?;
        // A search that fails ends there and is `None`, and the others go on.
        let searches = settings
            .iter()
            .map(|own| BeamSearch::new(tokens, own).map(Some));
        let mut searches: Vec<Option<BeamSearch<'_>>> = searches.collect::<Result<_, _>>()?;
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
        Ok(searches.into_iter().map(found).collect())
    }

    /// Encodes the sources, and returns a decoder that reads them and has written nothing yet.
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

/// Whether an error of a batch comes from numbers, which may be those of one source.
fn is_of_numbers(error: &Error) -> bool {
    use bochner_attention::Error as Attention;
    let Error::Attention(error) = error else {
        return matches!(error, Error::Overflow);
    };
    match error {
        Attention::Engine(_) | Attention::Kernels(_) | Attention::Spectral(_) => true,
        Attention::Argument(error) => matches!(error, ArgumentError::NotFinite { .. }),
        _ => false,
    }
}

/// Batches of at most so many of the sorted sources, as even as can be: none waits for the one that is left over.
fn batches(order: &[usize], together: usize) -> Vec<&[usize]> {
    let batches = order.len().div_ceil(together).max(1);
    order.chunks(order.len().div_ceil(batches).max(1)).collect()
}

/// The parts of a translator that the searches of all batches read, packed once.
#[derive(Debug)]
pub(super) struct Packed<E: Element> {
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
    fn go_on(&mut self, searches: &[Option<BeamSearch<'_>>]) {
        self.parents.clear();
        self.last.clear();
        for (start, search) in self.starts.iter_mut().zip(searches) {
            let before = std::mem::replace(start, self.last.len());
            let going = search.as_ref().filter(|search| !search.is_over());
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

/// Takes a search one step further, given the logits of its rows; a search that is over has none and stays as it is.
fn advance<E: Element>(search: &mut Option<BeamSearch<'_>>, logits: &mut [E], vocabulary: usize) {
    let Some(going) = search else { return };
    if logits.is_empty() {
        return;
    }
    logits.chunks_exact_mut(vocabulary).for_each(log_softmax);
    // What it refuses is a NaN.
    if going.advance(logits).is_err() {
        *search = None;
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
        let pass = self.evaluation_pass();
        self.model().translate(sources, beam, pass)
    }
}
