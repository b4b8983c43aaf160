//! Translators: a Transformer with any attention, judged by BLEU.

mod settings;
mod trace;

pub use settings::TranslationSettings;
pub use trace::{Place, Trace};

use super::model::{AnyError, Training};
use super::{Evaluation, Finals, Findings, Moment, read_settings};
use crate::suite::Source;
use crate::{Error, Trial};
use bochner_datasets::{ParallelText, TranslationData};
use bochner_models::training::EpochReport;
use bochner_models::translator::{Pair, Task, Trainer};
use bochner_numerics::Seed;
use bochner_report::Unit;
use bochner_text::{
    BatchConfig, BeamConfig, BleuConfig, BleuStatistics, BootstrapConfig, Counted, Marks,
    SubwordConfig, Subwords, TokenCounts, Tokenisation, Vocabulary, bootstrap, line_statistics,
};
use std::slice;

/// The lower and upper end of the V-number's 95 % interval over resampled test lines.
pub const INTERVAL: [&str; 2] = ["V, low", "V, high"];

/// BLEU of the V-epoch between tokens as they stand in the files.
pub const TOKENISED: &str = "V, tokenised";

/// BLEU of the V-epoch on a second test.
pub const SECOND_TEST: &str = "test 2017";

/// The share of tokens of test lines that stand in their place, in the V-epoch.
pub const IN_PLACE: &str = "tokens in place";

/// Steps of the optimiser in all epochs.
pub const UPDATES: &str = "updates";

/// The loss on the validation part after the last epoch.
pub const LAST_LOSS: &str = "last validation loss";

/// Pairs of validation and test of which a side was cut, since it has more tokens than the model has positions.
pub const CUT: &str = "lines cut";

/// Translations that are kept to be shown.
const SHOWN: usize = 8;

/// Lines of similar length that are translated with one bound on the length.
const TOGETHER: usize = 64;

/// The comparison of lines; the second is for lines that are tokenised already.
pub(crate) fn bleu() -> [BleuConfig; 2] {
    let tokenised = BleuConfig {
        tokenisation: Tokenisation::None,
        ..BleuConfig::default()
    };
    [BleuConfig::default(), tokenised]
}

impl Source for TranslationData {
    fn start<'a>(&'a self, unit: &Unit) -> Result<Box<dyn Trial + 'a>, AnyError> {
        Ok(Box::new(translator(unit, self)?))
    }
}

/// Lines with the numbers of their pieces.
struct Read<'a> {
    text: &'a ParallelText,
    pairs: Vec<Pair>,
    /// The number of them that were cut.
    cut: usize,
}

/// Cuts the sides of a pair to the positions of a model, of which a target's mark takes one. Returns whether there was
/// anything to cut.
fn cut(pair: &mut Pair, positions: usize) -> bool {
    let sides = [
        (&mut pair.source, positions),
        (&mut pair.target, positions - 1),
    ];
    let cut = sides.map(|(side, most)| {
        let is_longer = side.len() > most;
        side.truncate(most);
        is_longer
    });
    cut.contains(&true)
}

struct Translator<'a> {
    trainer: Trainer,
    settings: TranslationSettings,
    seed: Seed,
    vocabulary: Vocabulary,
    train_rows: usize,
    validation: Read<'a>,
    test: Read<'a>,
    others: Vec<(&'static str, Read<'a>)>,
}

fn translator<'a>(unit: &Unit, data: &'a TranslationData) -> Result<Translator<'a>, AnyError> {
    let settings: TranslationSettings = read_settings(unit)?;
    let lines = data.train.source.iter().chain(&data.train.target);
    let words = TokenCounts::of_words(lines.map(String::as_str));
    let config = SubwordConfig {
        merges: settings.merges,
        ..SubwordConfig::default()
    };
    let subwords = Subwords::learn(&words, &config)?.subwords;
    let vocabulary = subwords.vocabulary(Marks::StartAndEnd)?;
    let read = |text: &'a ParallelText| -> Result<Read<'a>, AnyError> {
        let lines: [&[String]; 2] = [&text.source, &text.target];
        let mut pairs = Pair::of_lines(lines, &subwords, &vocabulary)?;
        let cut = pairs.iter_mut().map(|pair| cut(pair, settings.positions));
        let cut = cut.filter(|cut| *cut).count();
        Ok(Read { text, pairs, cut })
    };
    let mut train = read(&data.train)?.pairs;
    train.retain(|pair| settings.admits(pair));
    let batches = BatchConfig {
        tokens: settings.tokens,
        counted: Counted::LastSide,
        ..BatchConfig::default()
    };
    let train_rows = train.len();
    let task = Task::new(train, batches)?.with_label_smoothing(settings.smoothing)?;
    let (config, seed) = (settings.model(&vocabulary)?, Seed::new(unit.seed));
    let trainer = Trainer::new(&config, &settings.training, task, seed)?;
    let others = data.others.iter();
    let others = others.map(|(name, text)| Ok((*name, read(text)?)));
    let others = others.collect::<Result<_, AnyError>>()?;
    Ok(Translator {
        trainer,
        train_rows,
        validation: read(&data.validation)?,
        test: read(&data.test)?,
        others,
        vocabulary,
        seed,
        settings,
    })
}

impl Translator<'_> {
    /// The translations of a part's sources as lines; [`Error::Interrupted`] once `stopped` says so.
    fn translate(
        &self,
        part: &Read<'_>,
        beam: usize,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<String>, AnyError> {
        let mut order: Vec<usize> = (0..part.pairs.len()).collect();
        order.sort_by_key(|&at| part.pairs[at].source.len());
        let mut lines = vec![String::new(); order.len()];
        for batch in order.chunks(TOGETHER) {
            if stopped() {
                return Err(Error::Interrupted.into());
            }
            let sources = batch.iter().map(|&at| part.pairs[at].source.clone());
            let sources: Vec<Vec<usize>> = sources.collect();
            let config = self.search(sources.last().map_or(0, Vec::len), beam);
            let found = self.trainer.translate(&sources, &config)?;
            for (&at, found) in batch.iter().zip(found) {
                lines[at] = Subwords::decode(&self.vocabulary.decode(&found?.tokens)?);
            }
        }
        Ok(lines)
    }

    /// The search for translations of sources that have at most so many tokens.
    fn search(&self, longest: usize, beam: usize) -> BeamConfig {
        BeamConfig {
            beam,
            max_length: (2 * longest + 10).min(self.settings.positions),
            ..BeamConfig::default()
        }
    }

    /// BLEU of the translations of a part that a search makes; see [`translate`](Self::translate).
    fn bleu(
        &self,
        part: &Read<'_>,
        beam: usize,
        stopped: &dyn Fn() -> bool,
    ) -> Result<f64, AnyError> {
        let [config, _] = bleu();
        let lines = self.translate(part, beam, stopped)?;
        score(&lines, part.text, &config)
    }

    /// Returns the findings in the model after the last epoch.
    fn at_last(&self) -> Result<Findings, AnyError> {
        let updates = self.trainer.steps_done() as f64;
        let others = self.others.iter().map(|(_, part)| part);
        let cut = [&self.validation, &self.test].into_iter().chain(others);
        let cut: usize = cut.map(|part| part.cut).sum();
        let own = Findings::of([
            (UPDATES, updates),
            (LAST_LOSS, self.trainer.loss(self.validation.pairs.clone())?),
            (CUT, cut as f64),
        ]);
        Ok(own.and(self.traces(1)?))
    }

    /// The final numbers of the V-epoch, and all translations of the test part.
    fn at_v(&self, stopped: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        let ([config, tokenised], beam) = (bleu(), self.settings.beam);
        let validation = self.bleu(&self.validation, beam, stopped)?;
        let lines = self.translate(&self.test, beam, stopped)?;
        let test = self.test.text;
        let counts = line_statistics(&lines, slice::from_ref(&test.target), &config)?;
        let found = bootstrap(&counts, &config, &BootstrapConfig::default())?;
        let mut measures = vec![
            (INTERVAL[0], found.low),
            (INTERVAL[1], found.high),
            (TOKENISED, score(&lines, test, &tokenised)?),
            (IN_PLACE, in_place(&lines, &test.target)),
        ];
        for &(name, ref part) in &self.others {
            measures.push((name, self.bleu(part, beam, stopped)?));
        }
        let finals = Finals {
            v: Some(found.score),
            validation: Some(validation),
            ..Finals::default()
        };
        let findings = Findings::of(measures)
            .with("counts", &counts)
            .with("sources", &first(&test.source))
            .with("references", &first(&test.target))
            .with("translations", &first(&lines));
        Ok(Findings { finals, ..findings })
    }

    /// The final number of the R-epoch.
    fn at_r(&self, stopped: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        let r = self.bleu(&self.test, self.settings.beam, stopped)?;
        let finals = Finals {
            r: Some(r),
            ..Finals::default()
        };
        Ok(Findings {
            finals,
            ..Findings::default()
        })
    }
}

/// The lines of the report's sample. The others are not kept: they would be the corpus.
fn first(lines: &[String]) -> &[String] {
    &lines[..lines.len().min(SHOWN)]
}

fn score(lines: &[String], text: &ParallelText, config: &BleuConfig) -> Result<f64, AnyError> {
    let lines = line_statistics(lines, slice::from_ref(&text.target), config)?;
    Ok(BleuStatistics::sum(&lines).score(config)?.score)
}

/// The share of tokens that stand where they do in the references; a line counts with its longer side.
fn in_place(lines: &[String], references: &[String]) -> f64 {
    let (mut right, mut all) = (0, 0);
    for (line, reference) in lines.iter().zip(references) {
        let [line, reference] =
            [line, reference].map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        right += line.iter().zip(&reference).filter(|(a, b)| a == b).count();
        all += line.len().max(reference.len());
    }
    right as f64 / all as f64
}

impl Trial for Translator<'_> {
    fn model(&self) -> &dyn Training {
        &self.trainer
    }

    fn model_mut(&mut self) -> &mut dyn Training {
        &mut self.trainer
    }

    fn rows(&self) -> [usize; 3] {
        [
            self.train_rows,
            self.validation.pairs.len(),
            self.test.pairs.len(),
        ]
    }

    fn training_error(&self, report: &EpochReport) -> f64 {
        report.error
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        let greedy = |part| self.bleu(part, 1, &|| false);
        Ok(Evaluation {
            validation: Some(greedy(&self.validation)?),
            validation_loss: Some(self.trainer.loss(self.validation.pairs.clone())?),
            test: greedy(&self.test)?,
            others: Vec::new(),
        })
    }

    fn inspected(&self) -> &'static [Moment] {
        &[Moment::First, Moment::OfR, Moment::OfV]
    }

    fn findings(&self, moment: Moment, stopped: &dyn Fn() -> bool) -> Result<Findings, AnyError> {
        match moment {
            Moment::First => self.traces(0),
            Moment::Last => self.at_last(),
            Moment::OfV => self.at_v(stopped),
            Moment::OfR => self.at_r(stopped),
        }
    }
}
