//! Beam search.

mod candidate;

use crate::Error;
use bochner_numerics::{ArgumentError, Real, argument};
use candidate::Candidate;
use serde::{Deserialize, Serialize};
use std::collections::BinaryHeap;

/// The settings of [`beam_search`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct BeamConfig {
    /// The number of hypotheses that are followed; 5 by default. A search with 1 and [`Stop::Count`] is greedy: it takes
    /// the most probable token at each place.
    pub beam: usize,
    /// The exponent of the length penalty, at least 0; 0.6 by default.
    pub alpha: f64,
    /// The largest number of tokens of a hypothesis, the end included; 200 by default.
    #[serde(alias = "max_length")]
    pub max_length: usize,
    /// The least number of tokens of a hypothesis, the end included; 1 by default. With 2, no hypothesis is empty: without
    /// a length penalty, a wide beam finds that an empty one is the most probable for many a model.
    #[doc(alias = "min_len")]
    #[serde(alias = "min_length")]
    pub min_length: usize,
    /// The tokens that never follow, such as that of unknown words; none by default. The end is always allowed.
    #[doc(alias = "suppress_tokens")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub banned: Vec<usize>,
    /// The size of the n-grams of tokens that a hypothesis holds at most once, at least 1; none by default. The end is always
    /// allowed. A hypothesis whose every continuation would repeat one, and that is too short to end, is dropped.
    #[doc(alias = "no_repeat_ngram_size")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_repeat_ngram: Option<usize>,
    /// The condition that stops the search before that.
    pub stop: Stop,
    /// A further bound on the number of tokens, by the length of the source; none by default.
    ///
    /// A translator obeys it. [`BeamSearch`] and [`beam_search`], which know no source, refuse it: they take the settings
    /// that [`for_source`](Self::for_source) makes of it.
    #[serde(alias = "source_bound", skip_serializing_if = "Option::is_none")]
    pub source_bound: Option<SourceBound>,
}

/// A bound on the length of a hypothesis by the length of its source: so many tokens for each token of the source, and
/// some more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SourceBound {
    /// The number of tokens for each token of the source, at least 0. Fractions of a token are cut off.
    #[serde(alias = "per_token")]
    pub per_token: f64,
    /// The number of tokens besides.
    pub more: usize,
}

/// The condition that stops a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The search stops when as many hypotheses have ended as the beam is wide.
    #[default]
    Count,
    /// The search stops when no live hypothesis can overtake the best one that has ended.
    ///
    /// Since a live hypothesis may still grow to the largest length, whose penalty is the mildest, this is usually many
    /// steps later. With a beam of 1 the search is not greedy then: where the most probable token ends the hypothesis,
    /// the next one goes on, and the better score of the two wins.
    Bound,
}

impl Default for BeamConfig {
    fn default() -> Self {
        Self {
            beam: 5,
            alpha: 0.6,
            max_length: 200,
            min_length: 1,
            banned: Vec::new(),
            no_repeat_ngram: None,
            stop: Stop::Count,
            source_bound: None,
        }
    }
}

impl BeamConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("beam", self.beam)?;
        argument::at_least_one("max_length", self.max_length)?;
        argument::at_least_one("min_length", self.min_length)?;
        argument::in_range(
            self.min_length <= self.max_length,
            "min_length",
            self.min_length as f64,
            format!("at most `max_length`, {}", self.max_length),
        )?;
        argument::at_least_one("no_repeat_ngram", self.no_repeat_ngram.unwrap_or(1))?;
        argument::non_negative("alpha", self.alpha)?;
        let per_token = self.source_bound.map_or(0.0, |bound| bound.per_token);
        argument::non_negative("per_token", per_token)
    }

    /// The settings of the search for a translation of a source of so many tokens: the [`source_bound`](Self::source_bound)
    /// becomes a part of `max_length`, which stays at least `min_length`.
    ///
    /// ```
    /// use bochner_text::{BeamConfig, SourceBound};
    ///
    /// let source_bound = Some(SourceBound { per_token: 1.5, more: 10 });
    /// let config = BeamConfig { max_length: 40, source_bound, ..BeamConfig::default() };
    /// let longest = [3, 100].map(|tokens| config.for_source(tokens).unwrap().max_length);
    /// assert_eq!(longest, [14, 40]);
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] for a setting of zero, an exponent or a number of tokens below 0, or a `min_length` above
    /// `max_length`.
    pub fn for_source(&self, tokens: usize) -> Result<Self, Error> {
        self.validate()?;
        let bound = self.source_bound.map(|SourceBound { per_token, more }| {
            let of_source = (per_token * tokens as f64) as usize;
            of_source.saturating_add(more).max(self.min_length)
        });
        Ok(Self {
            max_length: bound.map_or(self.max_length, |bound| bound.min(self.max_length)),
            source_bound: None,
            ..self.clone()
        })
    }

    /// The score of a hypothesis of `length` tokens, the end included.
    ///
    /// $$s = \log P \Big/ \Bigl(\frac{5 + n}{6}\Bigr)^\alpha$$
    pub fn score(&self, log_prob: f64, length: usize) -> f64 {
        log_prob / ((5.0 + length as f64) / 6.0).powf(self.alpha)
    }
}

bochner_numerics::checked_when_read!(BeamConfig);

/// The tokens of a model, as far as a search knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The number of tokens.
    pub vocabulary: usize,
    /// The token that every hypothesis begins with and that never follows.
    pub start: usize,
    /// The token that ends a hypothesis.
    pub end: usize,
}

/// A hypothesis that has not ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// Its tokens; the first one is the start.
    pub tokens: Vec<usize>,
    /// Its logarithmic probability.
    pub log_prob: f64,
    /// The place, in the step before, of the hypothesis that it continues: the row of a cache that it
    /// takes over.
    pub parent: usize,
}

/// A hypothesis that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// Its tokens without the start, the end included.
    pub tokens: Vec<usize>,
    /// Its logarithmic probability.
    pub log_prob: f64,
    /// Its score: see [`BeamConfig::score`].
    pub score: f64,
}

/// The n-best list of a search.
#[doc(alias = "n_best")]
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The best hypotheses with their scores, at most as many as the beam is wide; the best one first.
    ///
    /// Among equal scores the one that ended earlier comes first. There is none if no hypothesis can end.
    pub hypotheses: Vec<Hypothesis>,
    /// The number of steps.
    pub steps: usize,
}

/// Searches for the sequence of the best score, with a model that gives probabilities of the next token.
///
/// `step` is called once for each place, with the live hypotheses and with a row of `vocabulary` numbers
/// for each. It fills in the logarithmic probabilities of the token that follows; minus infinity stands for
/// a token that cannot follow.
///
/// At each place, all continuations of all live hypotheses are ranked by probability, among equals by the
/// lower token, then by the earlier place in the beam. Those that end and are among the first `beam` have
/// ended; the first `beam` of those that do not end live on, so that a hypothesis that ends takes no place
/// from them. At the last place only the end can follow.
///
/// ```
/// use bochner_text::{BeamConfig, Error, Tokens, beam_search};
///
/// // A model that counts from 2 to 4, then ends.
/// let tokens = Tokens { vocabulary: 5, start: 0, end: 1 };
/// let found = beam_search(&tokens, &BeamConfig::default(), |live, log_probs: &mut [f32]| {
///     for (hypothesis, row) in live.iter().zip(log_probs.chunks_mut(tokens.vocabulary)) {
///         let next = match hypothesis.tokens.last() {
///             Some(4) => 1,
///             Some(0) => 2,
///             last => last.unwrap() + 1,
///         };
///         row.fill(f32::NEG_INFINITY);
///         row[next] = 0.5_f32.ln();
///     }
///     Ok::<(), Error>(())
/// })?;
/// assert_eq!(found.hypotheses[0].tokens, [2, 3, 4, 1]);
/// assert_eq!(found.hypotheses[0].log_prob, 4.0 * f64::from(0.5_f32.ln()));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// The errors of `step` and of [`BeamSearch::new`]; [`Error::Argument`] for a logarithmic probability that is NaN or plus
/// infinity.
///
/// # Reference
/// Y. Wu et al., *Google's neural machine translation system*, 2016 (the length penalty).
pub fn beam_search<T: Real, E: From<Error>>(
    tokens: &Tokens,
    config: &BeamConfig,
    mut step: impl FnMut(&[Live], &mut [T]) -> Result<(), E>,
) -> Result<Found, E> {
    let mut search = BeamSearch::new(*tokens, config).map_err(E::from)?;
    let mut log_probs = Vec::new();
    while !search.is_over() {
        log_probs.clear();
        log_probs.resize(search.live.len() * tokens.vocabulary, T::zero());
        step(&search.live, &mut log_probs)?;
        search.advance(&log_probs).map_err(E::from)?;
    }
    Ok(search.found())
}

fn check(tokens: &Tokens, config: &BeamConfig) -> Result<(), ArgumentError> {
    config.validate()?;
    if let Some(bound) = config.source_bound {
        let allowed =
            "left out where no source is known: take what `BeamConfig::for_source` makes of it";
        return Err(argument::out_of_range(
            "source_bound",
            bound.per_token,
            allowed,
        ));
    }
    argument::index("start", tokens.start, tokens.vocabulary)?;
    argument::index("end", tokens.end, tokens.vocabulary)?;
    for &token in &config.banned {
        argument::index("banned", token, tokens.vocabulary)?;
        let allowed = "another token than the end";
        argument::in_range(token != tokens.end, "banned", token as f64, allowed)?;
    }
    let differ = tokens.start != tokens.end;
    argument::in_range(
        differ,
        "end",
        tokens.end as f64,
        "another token than the start",
    )
}

/// Whether tokens that a token follows would end in `n` tokens that they hold already.
///
/// ```
/// // Behind 5 6 5, a 6 would repeat 5 6.
/// assert!(bochner_text::repeats(&[5, 6, 5], 6, 2));
/// assert!(!bochner_text::repeats(&[5, 6, 5], 7, 2));
/// ```
///
/// # Panics
/// If `n` is 0.
pub fn repeats(tokens: &[usize], token: usize, n: usize) -> bool {
    let Some(start) = (tokens.len() + 1).checked_sub(n) else {
        return false;
    };
    let before = &tokens[start..];
    let mut grams = tokens.windows(n);
    grams.any(|gram| gram[n - 1] == token && gram[..n - 1] == *before)
}

/// Refuses NaN and plus infinity, not minus infinity.
fn check_rows<T: Real>(log_probs: &[T], vocabulary: usize) -> Result<(), ArgumentError> {
    /// Numbers that are looked at without a branch.
    const PIECE: usize = 64;
    let wrong = |x: &T| x.is_nan() || *x == T::infinity();
    let any_wrong = |piece: &[T]| piece.iter().fold(false, |any, x| any | wrong(x));
    if !log_probs.chunks(PIECE).any(any_wrong) {
        return Ok(());
    }
    match log_probs.iter().position(wrong) {
        None => Ok(()),
        Some(at) => Err(ArgumentError::NotFinite {
            name: "log_probs".into(),
            index: vec![at / vocabulary, at % vocabulary],
            got: log_probs[at].as_f64(),
        }),
    }
}

/// A [`beam_search`] that is told the probabilities step by step: for the searches of a batch, which go on together.
#[derive(Clone, Debug)]
pub struct BeamSearch<'a> {
    tokens: Tokens,
    config: &'a BeamConfig,
    live: Vec<Live>,
    /// The hypotheses that lived a step before, whose memory the next ones take.
    before: Vec<Live>,
    /// The candidates of the last step, likewise.
    ranked: Vec<Candidate>,
    /// In the order in which they ended.
    ended: Vec<Hypothesis>,
    steps: usize,
}

impl<'a> BeamSearch<'a> {
    /// A search before its first step.
    ///
    /// # Errors
    /// [`Error::Argument`] for a setting of zero, an exponent below 0, a least length above the largest, n-grams of length
    /// 0, a bound by the source, a banned end, and for a start, an end or a banned token beyond the vocabulary.
    pub fn new(tokens: Tokens, config: &'a BeamConfig) -> Result<Self, Error> {
        check(&tokens, config)?;
        Ok(Self {
            tokens,
            config,
            live: vec![Live {
                tokens: vec![tokens.start],
                log_prob: 0.0,
                parent: 0,
            }],
            before: Vec::new(),
            ranked: Vec::new(),
            ended: Vec::new(),
            steps: 0,
        })
    }

    /// The hypotheses that go on, the most probable first.
    pub fn live(&self) -> &[Live] {
        &self.live
    }

    /// Goes on by one token: `log_probs` has a row of `vocabulary` numbers for each live hypothesis. Memory is allocated
    /// for what ends, and where hypotheses have grown to twice their length.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of them, or one that is NaN or plus infinity.
    pub fn advance<T: Real>(&mut self, log_probs: &[T]) -> Result<(), Error> {
        let expected = self.live.len() * self.tokens.vocabulary;
        argument::shape("log_probs", &[expected], &[log_probs.len()])?;
        check_rows(log_probs, self.tokens.vocabulary)?;
        self.steps += 1;
        let memory = std::mem::take(&mut self.ranked);
        let ranked = self.rank(log_probs, memory);
        std::mem::swap(&mut self.live, &mut self.before);
        let mut living = 0;
        for (rank, candidate) in ranked.iter().enumerate() {
            let &Candidate {
                log_prob,
                token,
                place,
            } = candidate;
            let parent = &self.before[place].tokens;
            if token == self.tokens.end {
                if rank < self.config.beam {
                    self.ended.push(Hypothesis {
                        tokens: [&parent[1..], &[token]].concat(),
                        log_prob,
                        score: self.config.score(log_prob, self.steps),
                    });
                }
            } else if living < self.config.beam {
                if living == self.live.len() {
                    self.live.push(Live::default());
                }
                let live = &mut self.live[living];
                live.tokens.clone_from(parent);
                live.tokens.push(token);
                (live.log_prob, live.parent) = (log_prob, place);
                living += 1;
            }
        }
        self.live.truncate(living);
        self.ranked = ranked;
        Ok(())
    }

    /// Finds the first continuations in their order: as many as could matter, which is twice the beam, since at
    /// most one continuation of each live hypothesis ends. Returns them in the memory that is given.
    fn rank<T: Real>(&self, log_probs: &[T], mut memory: Vec<Candidate>) -> Vec<Candidate> {
        /// Tokens that are passed over at once where none of them can be among the first.
        const PIECE: usize = 64;
        let most = self.config.beam.saturating_mul(2);
        let Tokens {
            vocabulary,
            start,
            end,
        } = self.tokens;
        let allowed = match self.steps == self.config.max_length {
            true => end..end + 1,
            false => 0..vocabulary,
        };
        let may_end = self.steps >= self.config.min_length;
        let may_follow = |hypothesis: &Live, token: usize| {
            let is_repeated = |n| repeats(&hypothesis.tokens[1..], token, n);
            token != start
                && (may_end || token != end)
                && !self.config.banned.contains(&token)
                && !self.config.no_repeat_ngram.is_some_and(is_repeated)
        };
        memory.clear();
        // The last of the first candidates is at the top.
        let mut first_ones = BinaryHeap::from(memory);
        let rows = log_probs.chunks_exact(vocabulary);
        for (place, (hypothesis, row)) in self.live.iter().zip(rows).enumerate() {
            for first in allowed.clone().step_by(PIECE) {
                let tokens = first..allowed.end.min(first + PIECE);
                let last = first_ones.peek().filter(|_| first_ones.len() >= most);
                let least = last.map_or(f64::NEG_INFINITY, |last| last.log_prob);
                // Without a branch for each token.
                let reaches = |x: &T| hypothesis.log_prob + x.as_f64() >= least;
                let piece = row[tokens.clone()].iter();
                if !piece.fold(false, |any, x| any | reaches(x)) {
                    continue;
                }
                for token in tokens {
                    let log_prob = hypothesis.log_prob + row[token].as_f64();
                    let candidate = Candidate {
                        log_prob,
                        token,
                        place,
                    };
                    let last = first_ones.peek().filter(|_| first_ones.len() >= most);
                    let is_first = last.is_none_or(|last| candidate < *last);
                    // The costliest question is the last one.
                    if log_prob == f64::NEG_INFINITY || !is_first || !may_follow(hypothesis, token)
                    {
                        continue;
                    }
                    if last.is_some() {
                        first_ones.pop();
                    }
                    first_ones.push(candidate);
                }
            }
        }
        first_ones.into_sorted_vec()
    }

    /// Whether nothing more is looked for.
    pub fn is_over(&self) -> bool {
        let can_go_on = self.steps < self.config.max_length && !self.live.is_empty();
        !can_go_on || self.steps > 0 && self.has_enough()
    }

    fn has_enough(&self) -> bool {
        match self.config.stop {
            Stop::Count => self.ended.len() >= self.config.beam,
            Stop::Bound => {
                let ended = self.ended.iter().map(|hypothesis| hypothesis.score);
                let best = ended.fold(f64::NEG_INFINITY, f64::max);
                // The live hypotheses are in the order of their probabilities.
                let bound = self.live.first().map_or(f64::NEG_INFINITY, |live| {
                    self.config.score(live.log_prob, self.config.max_length)
                });
                !self.ended.is_empty() && best >= bound
            }
        }
    }

    /// Returns the hypotheses found so far.
    pub fn found(mut self) -> Found {
        // The sort is stable: among equals the one that ended earlier stays first.
        self.ended.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.ended.truncate(self.config.beam);
        Found {
            hypotheses: self.ended,
            steps: self.steps,
        }
    }
}
