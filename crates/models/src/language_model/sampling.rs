//! Writing text: one token drawn after the other.

use super::LanguageModel;
use crate::Error;
use crate::decoder::DecoderSteps;
use bochner_attention::Pass;
use bochner_nn::Element;
use bochner_numerics::{Buffers, Seed, Stream, argument};
use bochner_ops::PackedAffine;
use bochner_text::repeats;
use ndarray::Array3;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Settings for drawing the next token from the logits $z$, with the probabilities $\mathrm{softmax}(z / \tau)$. Unlikely
/// tokens may be left out.
///
/// `top_k` acts before `top_p`, which adds up the probabilities that are left.
///
/// # Reference
/// Holtzman et al., *The Curious Case of Neural Text Degeneration*, 2020, for `top_p`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct Sampling {
    /// The temperature $\tau$. At 0 the token of the largest logit is taken, the first of equal ones. Defaults to 1.
    pub temperature: f64,
    /// The number of most likely tokens that are left. Defaults to all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<usize>,
    /// The probability that the most likely tokens must reach together; the others are left out (nucleus sampling).
    /// Defaults to 1, all of them.
    pub top_p: f64,
    /// The size of the n-grams that prompt and text together hold at most once, at least 1. A token that would repeat one is
    /// left out before the others are counted. Defaults to none.
    #[doc(alias = "no_repeat_ngram_size")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_repeat_ngram: Option<usize>,
}

bochner_numerics::checked_when_read!(Sampling);

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            no_repeat_ngram: None,
        }
    }
}

impl Sampling {
    fn validate(&self) -> Result<(), Error> {
        let Self {
            temperature, top_p, ..
        } = *self;
        let fits = temperature >= 0.0 && temperature.is_finite();
        argument::in_range(fits, "temperature", temperature, "finite and at least 0")?;
        argument::at_least_one("top_k", self.top_k.unwrap_or(1))?;
        argument::at_least_one("no_repeat_ngram", self.no_repeat_ngram.unwrap_or(1))?;
        let fits = top_p > 0.0 && top_p <= 1.0;
        Ok(argument::in_range(
            fits,
            "top_p",
            top_p,
            "above 0 and at most 1",
        )?)
    }

    /// Draws the place of a logit, behind the tokens so far.
    ///
    /// # Errors
    /// [`Error::Overflow`] for a logit that is NaN or infinite; [`Error::Argument`] if every token would repeat an n-gram.
    fn draw<E: Element>(
        &self,
        logits: &[E],
        tokens: &[usize],
        stream: &mut Stream,
    ) -> Result<usize, Error> {
        if !logits.iter().all(|z| z.is_finite()) {
            return Err(Error::Overflow);
        }
        let mut places: Vec<usize> = (0..logits.len()).collect();
        if let Some(n) = self.no_repeat_ngram {
            places.retain(|&token| !repeats(tokens, token, n));
            let allowed = "so large that some token repeats nothing";
            let is_left = !places.is_empty();
            argument::in_range(is_left, "no_repeat_ngram", n as f64, allowed)?;
        }
        if self.temperature == 0.0 {
            let better = |best: usize, &at: &usize| match logits[at] > logits[best] {
                true => at,
                false => best,
            };
            return Ok(places.iter().fold(places[0], better));
        }
        // Stable: of equal logits the first counts as the likelier one.
        places.sort_by(|&a, &b| logits[b].as_f64().total_cmp(&logits[a].as_f64()));
        places.truncate(self.top_k.unwrap_or(usize::MAX));
        let largest = logits[places[0]].as_f64();
        let weight = |&at: &usize| ((logits[at].as_f64() - largest) / self.temperature).exp();
        let mut sums = Vec::with_capacity(places.len());
        let mut sum = 0.0;
        for weight in places.iter().map(weight) {
            sum += weight;
            sums.push(sum);
        }
        let nucleus = sums.partition_point(|&part| part < self.top_p * sum);
        let kept = (nucleus + 1).min(sums.len());
        let drawn = stream.r#gen::<f64>() * sums[kept - 1];
        let place = sums[..kept].partition_point(|&part| part <= drawn);
        Ok(places[place.min(kept - 1)])
    }
}

impl<E: Element> LanguageModel<E> {
    /// The tokens that follow a prompt, one drawn after the other without an end: an iterator.
    ///
    /// The same prompt and seed give the same tokens. The prompt is read in one step. Each further token takes the time of
    /// one position; keys and values of all before are kept, or a state of constant size with a mechanism in linear time.
    /// The weights are copied and packed once.
    ///
    /// # Errors
    /// [`Error::Argument`] for an empty prompt, a token that is not in the table and settings out of range;
    /// [`Error::TooLong`] for a prompt behind the last of the added positions; [`Error::Attention`] for a mechanism that
    /// does not decode. Items are errors where the table of positions ends, and [`Error::Overflow`] for logits that are NaN
    /// or infinite.
    pub fn generate(
        &self,
        prompt: &[usize],
        sampling: &Sampling,
        seed: Seed,
    ) -> Result<Generator<'_, E>, Error> {
        sampling.validate()?;
        argument::at_least_one("tokens of the prompt", prompt.len())?;
        let seed_of_pass = seed.child("pass");
        let pass = Pass::Evaluation { seed: seed_of_pass };
        let width = self.embedding.width();
        let mut generator = Generator {
            model: self,
            steps: self.encoder.causal_steps(1, pass)?,
            table: self.embedding.packed_logits(),
            numbers: Buffers::default(),
            logits: vec![E::zero(); self.config.tokens],
            sampling: *sampling,
            stream: seed.stream("sampling"),
            x: Array3::zeros((1, prompt.len(), width)),
            output: Array3::zeros((1, prompt.len(), width)),
            tokens: Vec::new(),
        };
        generator.read(prompt)?;
        // From here on there is one token a step.
        generator.x = Array3::zeros((1, 1, width));
        generator.output = Array3::zeros((1, 1, width));
        Ok(generator)
    }
}

/// The tokens that a [`LanguageModel`] writes behind a prompt; made by [`LanguageModel::generate`].
#[derive(Debug)]
pub struct Generator<'a, E: Element> {
    model: &'a LanguageModel<E>,
    steps: DecoderSteps<E>,
    /// The table as the map from vectors to logits.
    table: PackedAffine<E>,
    numbers: Buffers<E>,
    /// The logits of the next token.
    logits: Vec<E>,
    sampling: Sampling,
    stream: Stream,
    x: Array3<E>,
    output: Array3<E>,
    /// The prompt and what was written behind it.
    tokens: Vec<usize>,
}

impl<E: Element> Generator<'_, E> {
    /// The logits of the next token, `[tokens]`.
    pub fn logits(&self) -> &[E] {
        &self.logits
    }

    /// The number of numbers that all layers hold of the tokens so far.
    pub fn held(&self) -> usize {
        self.steps.held()[0]
    }

    /// Reads tokens, as many as `x` has room for.
    fn read(&mut self, tokens: &[usize]) -> Result<(), Error> {
        let (embedding, width) = (&self.model.embedding, self.model.embedding.width());
        embedding.fits(self.tokens.len() + tokens.len())?;
        let rows = self.x.as_slice_mut().expect("made row by row");
        for (row, token) in rows.chunks_exact_mut(width).zip(tokens) {
            let position = self.tokens.len();
            embedding.write_at(&[*token], position, row)?;
            self.tokens.push(*token);
        }
        self.steps
            .step_into(self.x.view(), self.output.view_mut())?;
        let output = self.output.as_slice().expect("made row by row");
        let last = &output[output.len() - width..];
        self.table
            .apply(last, &self.numbers, &mut self.logits, |_| ());
        Ok(())
    }
}

impl<E: Element> Iterator for Generator<'_, E> {
    type Item = Result<usize, Error>;

    fn next(&mut self) -> Option<Result<usize, Error>> {
        let Self {
            sampling,
            logits,
            tokens,
            stream,
            ..
        } = self;
        let drawn = sampling.draw(logits, tokens, stream);
        Some(drawn.and_then(|token| self.read(&[token]).map(|()| token)))
    }
}
