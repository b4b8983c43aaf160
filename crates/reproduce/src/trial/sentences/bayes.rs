//! Multinomial naive Bayes on words and pairs of words: what any model of sentences must be compared with.

use super::Corpus;
use crate::Trial;
use crate::trial::model::{AnyError, Training};
use crate::trial::{Evaluation, read_settings, sizes, split_of};
use bochner_datasets::Split;
use bochner_models::training::EpochReport;
use bochner_report::Unit;
use bochner_report::suite::Direction;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// The settings of naive Bayes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BayesSettings {
    /// The number that is added to every count.
    pub alpha: f64,
    /// Passes over the training rows: one counts them all.
    pub epochs: usize,
}

impl BayesSettings {
    /// The model's name in tables and rows.
    pub const MODEL: &str = "naive Bayes";
    /// The control of Table 2.
    pub const CONTROL: Self = Self {
        alpha: 1.0,
        epochs: 1,
    };
}

/// Sets up naive Bayes on uni- and bigrams.
///
/// $$ \log p(c \mid x) = \log\frac{n_c}{n} + \sum_{w \in x} \log\frac{n_{cw} + \alpha}{\sum_v (n_{cv} + \alpha)} +
/// \dots $$
///
/// where $n_{cw}$ is how often the word or pair $w$ occurs in the training sentences of class $c$; what occurs in none
/// is passed over.
pub(super) fn naive_bayes<'a>(unit: &Unit, corpus: &'a Corpus) -> Result<NaiveBayes<'a>, AnyError> {
    let settings: BayesSettings = read_settings(unit)?;
    let split = split_of(unit, &corpus.splits)?;
    Ok(NaiveBayes {
        corpus,
        split,
        alpha: settings.alpha,
        counts: HashMap::new(),
        epochs: 0,
    })
}

pub(super) struct NaiveBayes<'a> {
    corpus: &'a Corpus,
    split: &'a Split,
    alpha: f64,
    /// The number of times that a word or a pair occurs in each class.
    counts: HashMap<Gram<'a>, Vec<f64>>,
    epochs: usize,
}

/// A word, or a pair of words that follow each other.
type Gram<'a> = (&'a str, Option<&'a str>);

fn grams(words: &[String]) -> impl Iterator<Item = Gram<'_>> {
    let pairs = words.windows(2).map(|pair| (&*pair[0], Some(&*pair[1])));
    words.iter().map(|word| (&**word, None)).chain(pairs)
}

impl<'a> NaiveBayes<'a> {
    fn count(&mut self) {
        let (corpus, classes) = (self.corpus, self.corpus.classes);
        self.counts.clear();
        for &row in &self.split.train {
            for gram in grams(&corpus.words[row]) {
                let counts = self
                    .counts
                    .entry(gram)
                    .or_insert_with(|| vec![0.0; classes]);
                counts[corpus.labels[row]] += 1.0;
            }
        }
    }

    /// The classes that are found for some rows.
    fn classify(&self, rows: &[usize]) -> Vec<usize> {
        let classes = self.corpus.classes;
        let mut totals = vec![self.alpha * self.counts.len() as f64; classes];
        // Counts are whole numbers, so that their order does not change the sums.
        for counts in self.counts.values() {
            totals
                .iter_mut()
                .zip(counts)
                .for_each(|(total, count)| *total += count);
        }
        let train = self.corpus.labels(&self.split.train);
        let prior = |class| {
            train.iter().filter(|&&label| label == class).count() as f64 / train.len() as f64
        };
        let priors: Vec<f64> = (0..classes).map(prior).collect();
        let score = |row: usize, class: usize| {
            let seen = grams(&self.corpus.words[row]).filter_map(|gram| self.counts.get(&gram));
            let terms = seen.map(|counts| ((counts[class] + self.alpha) / totals[class]).ln());
            priors[class].ln() + terms.sum::<f64>()
        };
        let class = |&row: &usize| {
            let scores: Vec<f64> = (0..classes).map(|class| score(row, class)).collect();
            Direction::Larger.best(&scores).unwrap_or(0)
        };
        rows.iter().map(class).collect()
    }

    fn accuracy(&self, rows: &[usize]) -> f64 {
        self.corpus.accuracy(rows, &self.classify(rows))
    }
}

impl Training for NaiveBayes<'_> {
    fn epoch(&mut self) -> Result<EpochReport, AnyError> {
        self.count();
        self.epochs += 1;
        let wrong = 1.0 - self.accuracy(&self.split.train);
        Ok(EpochReport {
            loss: wrong,
            squared_error: wrong,
            ..EpochReport::default()
        })
    }

    fn epochs_done(&self) -> usize {
        self.epochs
    }

    fn parameters(&self) -> usize {
        (self.counts.len() + 1) * self.corpus.classes
    }

    fn save(&self, path: &Path) -> Result<(), AnyError> {
        Ok(std::fs::write(path, self.epochs.to_string())?)
    }

    /// Counts again: a file needs the number of epochs alone.
    fn resume(&mut self, path: &Path) -> Result<(), AnyError> {
        self.epochs = std::fs::read_to_string(path)?.parse()?;
        self.count();
        Ok(())
    }
}

impl Trial for NaiveBayes<'_> {
    fn model(&self) -> &dyn Training {
        self
    }

    fn model_mut(&mut self) -> &mut dyn Training {
        self
    }

    fn rows(&self) -> [usize; 3] {
        sizes(self.split)
    }

    fn evaluate(&self) -> Result<Evaluation, AnyError> {
        let validation = &self.split.validation;
        Ok(Evaluation {
            validation: (!validation.is_empty()).then(|| self.accuracy(validation)),
            test: self.accuracy(&self.split.test),
            ..Evaluation::default()
        })
    }
}
