//! BLEU of a corpus and of sentences, as sacrebleu computes it.

mod bootstrap;
mod pcg64;
mod score;
mod statistics;
mod tokenize;

pub use bootstrap::{
    BootstrapConfig, Comparison, Interval, PairedBootstrap, bootstrap, paired_bootstrap,
};
pub use pcg64::Pcg64;
pub use score::BleuScore;
pub use statistics::BleuStatistics;
pub use tokenize::{lowercase, tokenize_13a};
pub(crate) use {statistics::counts, tokenize::is_space};

use crate::Error;
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The settings of BLEU; the defaults are sacrebleu's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct BleuConfig {
    /// The tokenisation of lines; `13a` by default.
    pub tokenisation: Tokenisation,
    /// The treatment of case; [`Case::Mixed`] by default.
    pub case: Case,
    /// The replacement of a precision of zero; `exp` by default.
    pub smoothing: Smoothing,
    /// The orders that the mean runs over; all by default.
    pub orders: Orders,
    /// The largest order of n-grams; 4 by default.
    #[serde(alias = "max_order")]
    pub max_order: usize,
}

/// The tokenisation of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tokenisation {
    /// The rule of WMT's script `mteval-v13a`: see [`tokenize_13a`].
    #[default]
    #[serde(rename = "13a")]
    Wmt13a,
    /// At white space, for lines that are tokenised already.
    #[serde(rename = "none")]
    None,
}

/// The treatment of case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// Case counts.
    #[default]
    Mixed,
    /// Lines are put in lower case first.
    Lower,
}

impl Case {
    /// A line in the case that counts.
    pub(crate) fn apply(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Mixed => Cow::Borrowed(line),
            Self::Lower => Cow::Owned(lowercase(line)),
        }
    }

    /// The word for it in sacrebleu's signatures.
    pub(crate) fn signature(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Lower => "lc",
        }
    }
}

/// The replacement of the precision of an order without a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Smoothing {
    /// $100 / (2^k t)$ for the $k$-th order without a match, of $t$ n-grams.
    #[default]
    Exp,
    /// The number of matches is `value`; sacrebleu's is 0.1.
    Floor {
        /// The number that replaces the matches.
        value: f64,
    },
    /// `value` is added to matches and n-grams of all orders but the first; sacrebleu's is 1.
    AddK {
        /// The number that is added.
        value: f64,
    },
    /// No replacement: the score is 0.
    None,
}

/// The orders that the mean of the logarithms runs over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Orders {
    /// All orders: a corpus without any 4-gram has the score 0.
    #[default]
    All,
    /// Orders that the hypothesis is long enough for; for single sentences.
    Effective,
}

/// The version of sacrebleu whose numbers are computed here.
pub(crate) const SACREBLEU: &str = "2.6.0";

impl Default for BleuConfig {
    fn default() -> Self {
        Self {
            tokenisation: Tokenisation::Wmt13a,
            case: Case::Mixed,
            smoothing: Smoothing::Exp,
            orders: Orders::All,
            max_order: 4,
        }
    }
}

impl BleuConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("max_order", self.max_order)?;
        match self.smoothing {
            Smoothing::Floor { value } | Smoothing::AddK { value } => {
                argument::non_negative("value of smoothing", value)
            }
            Smoothing::Exp | Smoothing::None => Ok(()),
        }
    }

    /// The signature that sacrebleu prints beside a score: which settings it was computed with.
    ///
    /// The largest order of n-grams is not part of it.
    ///
    /// ```
    /// let signature = bochner_text::BleuConfig::default().signature(1);
    /// assert_eq!(signature, "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0");
    /// ```
    pub fn signature(&self, references: usize) -> String {
        let case = self.case.signature();
        let effective = match self.orders {
            Orders::All => "no",
            Orders::Effective => "yes",
        };
        let tokenisation = match self.tokenisation {
            Tokenisation::Wmt13a => "13a",
            Tokenisation::None => "none",
        };
        let smoothing = match self.smoothing {
            Smoothing::Exp => "exp".to_owned(),
            Smoothing::Floor { value } => format!("floor[{value:.2}]"),
            Smoothing::AddK { value } => format!("add-k[{value:.2}]"),
            Smoothing::None => "none".to_owned(),
        };
        format!(
            "nrefs:{references}|case:{case}|eff:{effective}|tok:{tokenisation}|smooth:{smoothing}|version:{SACREBLEU}"
        )
    }
}

bochner_numerics::checked_when_read!(BleuConfig);

/// BLEU of a corpus: hypotheses against one or more streams of references, line by line.
///
/// $$\mathrm{BLEU} = \mathrm{BP} \cdot \exp\Bigl(\frac1N \sum_{n=1}^N \ln p_n\Bigr), \qquad
///   \mathrm{BP} = \min(1, e^{1 - r / c})$$
///
/// *where* $p_n$ is the precision of n-grams over all lines, each clipped by its largest count among the
/// line's references; $c$ the number of tokens in the hypotheses; $r$ that of the references, for each
/// line of the one that is closest in length, the shorter of two equally close.
///
/// ```
/// use bochner_text::{BleuConfig, corpus_bleu};
///
/// let hypotheses = ["the dog bit the man .", "everyone was surprised ."];
/// let references = [vec!["The dog bit the man.", "No one was surprised."]];
/// let bleu = corpus_bleu(&hypotheses, &references, &BleuConfig::default())?;
/// assert!((bleu.score - 60.51).abs() < 0.01, "{}", bleu.score);
/// assert_eq!((bleu.statistics.hypothesis_length, bleu.statistics.reference_length), (10, 11));
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] without hypotheses or references, for streams of another length than the
/// hypotheses', or for a setting out of range.
///
/// # Reference
/// K. Papineni et al., *BLEU: a method for automatic evaluation of machine translation*, 2002; M. Post, *A
/// call for clarity in reporting BLEU scores*, 2018.
pub fn corpus_bleu<H: AsRef<str>, R: AsRef<str>>(
    hypotheses: &[H],
    references: &[Vec<R>],
    config: &BleuConfig,
) -> Result<BleuScore, Error> {
    let lines = line_statistics(hypotheses, references, config)?;
    BleuStatistics::sum(&lines).score(config)
}

/// The statistics of each line, whose sum gives the score of the corpus.
///
/// # Errors
/// Those of [`corpus_bleu`].
pub fn line_statistics<H: AsRef<str>, R: AsRef<str>>(
    hypotheses: &[H],
    references: &[Vec<R>],
    config: &BleuConfig,
) -> Result<Vec<BleuStatistics>, Error> {
    config.validate()?;
    check_streams(hypotheses.len(), references)?;
    let lines = hypotheses.iter().enumerate().map(|(at, hypothesis)| {
        let references = references.iter().map(|stream| stream[at].as_ref());
        BleuStatistics::of_line(hypothesis.as_ref(), references, config)
    });
    Ok(lines.collect())
}

/// Checks that there are hypotheses, and as many references in each stream.
pub(crate) fn check_streams<R>(
    hypotheses: usize,
    references: &[Vec<R>],
) -> Result<(), ArgumentError> {
    argument::not_empty("hypotheses", &[hypotheses])?;
    argument::not_empty("references", &[references.len()])?;
    for (stream, lines) in references.iter().enumerate() {
        let name = format!("references, stream {stream}");
        argument::shape(name, &[hypotheses], &[lines.len()])?;
    }
    Ok(())
}

/// BLEU of one sentence. [`Orders::Effective`], which sacrebleu's function for sentences takes by default, is meant
/// for it: with [`Orders::All`] a sentence without a common 4-gram scores next to nothing.
///
/// ```
/// use bochner_text::{BleuConfig, Orders, sentence_bleu};
///
/// let config = BleuConfig { orders: Orders::Effective, ..Default::default() };
/// let bleu = sentence_bleu("okay", &["okay thanks"], &config)?;
/// assert!((bleu.score - 36.79).abs() < 0.01);
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] without references or for a setting out of range.
pub fn sentence_bleu<R: AsRef<str>>(
    hypothesis: &str,
    references: &[R],
    config: &BleuConfig,
) -> Result<BleuScore, Error> {
    config.validate()?;
    argument::not_empty("references", &[references.len()])?;
    let references = references.iter().map(AsRef::as_ref);
    BleuStatistics::of_line(hypothesis, references, config).score(config)
}
