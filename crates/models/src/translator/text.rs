//! A translator of lines: a model together with the subwords that its tokens are of, in one file.

use super::search::Packed;
use super::{Task, Trainer, Translation, Translator, TranslatorConfig};
use crate::Error;
use crate::saved::{Kind, Read};
use crate::training;
use bochner_attention::Pass;
use bochner_numerics::Seed;
use bochner_text::{BeamConfig, Language, Marks, Subwords, Vocabulary, detokenise, is_blank};
use dfdx::tensor::Cpu;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A translator of lines of text: the model, the subwords that its tokens are of, and the settings of its search.
///
/// One file holds all of it, a [`Checkpoint`](bochner_nn::Checkpoint) without an optimiser. A file is written beside its
/// place and moved into it, so that a translator that is there already stays whole until the new one is.
///
/// A line is translated as it stands: it has to be tokenised, and in lower case, if the lines of the training were.
/// Words of the translation are joined from their pieces, and come out in the form of the training too, or as text
/// [without the spaces of tokens](Self::with_detokenisation).
///
/// What a mechanism draws in evaluation, such as the spectral points of [`Mikan`](bochner_attention::Mikan), it draws
/// from the seed for each line by the line's place among those that are translated together. With such a mechanism a line
/// may be translated otherwise alone than among others, or with a wider beam, which makes smaller batches; the same lines
/// in the same order are translated alike by the same search. See [`Translator::translate`].
///
/// The first translation copies and packs the model's weights for all later ones. Many lines in one call take far less
/// time than each in a call of its own.
///
/// ```
/// use bochner_attention::Softmax;
/// use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
/// use bochner_models::translator::{Pair, Task, TextTranslator, Trainer, TrainingConfig, TranslatorConfig};
/// use bochner_numerics::Seed;
/// use bochner_text::{BatchConfig, Marks, SubwordConfig, Subwords, TokenCounts};
///
/// let german = ["ein hund schläft", "zwei hunde schlafen"];
/// let english = ["a dog is asleep", "two dogs are asleep"];
/// let words = TokenCounts::of_words(german.into_iter().chain(english));
/// let subwords = Subwords::learn(&words, &SubwordConfig::default())?.subwords;
/// let vocabulary = subwords.vocabulary(Marks::StartAndEnd)?;
/// let pairs = Pair::of_lines([&german, &english], &subwords, &vocabulary)?;
/// let task = Task::new(pairs, BatchConfig::default())?;
///
/// let (attention, norm) = (Softmax::default().into(), NormPlacement::Pre);
/// let layer = EncoderLayerConfig { width: 16, heads: 2, hidden: 32, attention, dropout: 0.0, norm, ..Default::default() };
/// let encoder = EncoderConfig::new(1, layer);
/// let config = TranslatorConfig::transformer(&vocabulary, 30, encoder, Softmax::default().into())?;
/// let training = TrainingConfig { learning_rate: 0.01, ..Default::default() };
/// let mut trainer = Trainer::new(&config, &training, task, Seed::new(1))?;
/// for _ in 0..40 {
///     trainer.epoch()?;
/// }
///
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("translator.safetensors");
/// trainer.text_translator(subwords)?.save(&path)?;
/// let translator = TextTranslator::load(&path)?;
/// assert_eq!(translator.translate("zwei hunde schlafen")?, "two dogs are asleep");
/// # Ok::<(), bochner_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TextTranslator {
    model: Translator<f32>,
    subwords: Subwords,
    /// The vocabulary of the subwords.
    vocabulary: Vocabulary,
    search: BeamConfig,
    seed: Seed,
    /// The language whose rules make text of translations.
    detokenisation: Option<Language>,
    /// The model's weights as its searches read them, once there has been one.
    packed: OnceLock<Arc<Packed<f32>>>,
}

/// A translation of a line, in an n-best list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoredLine {
    /// The translation.
    pub line: String,
    /// The logarithm of its probability; 0 for a blank line, which is not searched.
    pub log_prob: f64,
    /// The score that it was ranked by: see [`BeamConfig::score`].
    pub score: f64,
}

/// The file of a translator.
const FILE: Kind = Kind {
    name: "text-translator",
    what: "translator of lines",
    writer: "TextTranslator",
    trained_as: <Task as training::Task>::MODEL,
    method: "text_translator",
};

/// The contents of the file besides the model.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    subwords: Subwords,
    search: BeamConfig,
    seed: Seed,
    /// Files of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detokenisation: Option<Language>,
}

impl TextTranslator {
    /// A translator whose tokens are the subwords' [vocabulary](Subwords::vocabulary) with marks. Mechanisms that draw
    /// something in evaluation draw it from the seed.
    ///
    /// Its search has the default settings, up to the longest translation that the model has positions for.
    ///
    /// # Errors
    /// The errors of [`TranslatorConfig::expect`], for the subwords of another model.
    pub fn new(model: Translator<f32>, subwords: Subwords, seed: Seed) -> Result<Self, Error> {
        Ok(Self {
            vocabulary: vocabulary(&subwords, model.config())?,
            search: model.search(),
            model,
            subwords,
            seed,
            detokenisation: None,
            packed: OnceLock::new(),
        })
    }

    /// The translator with other settings of its search. The default ones may be for longer translations than the model
    /// has positions for: take those that are not to change from [`search`](Self::search), as
    /// `BeamConfig { beam: 5, ..translator.search().clone() }`.
    ///
    /// # Errors
    /// [`Error::Text`] for a beam of 0 and the like; [`Error::Argument`] for a longest translation that has more tokens
    /// than the model has positions.
    pub fn with_search(self, search: BeamConfig) -> Result<Self, Error> {
        let advice = "to change another setting, start from `..translator.search().clone()`";
        self.model.searches(&search, advice)?;
        Ok(Self { search, ..self })
    }

    /// The translator whose translations are [detokenised](detokenise()) by the rules of a language; `None`, as it is
    /// made, leaves them in the form of the training.
    pub fn with_detokenisation(self, language: Option<Language>) -> Self {
        Self {
            detokenisation: language,
            ..self
        }
    }

    /// The language whose rules make text of translations.
    pub fn detokenisation(&self) -> Option<Language> {
        self.detokenisation
    }

    /// The model.
    pub fn model(&self) -> &Translator<f32> {
        &self.model
    }

    /// The subwords.
    pub fn subwords(&self) -> &Subwords {
        &self.subwords
    }

    /// The seed of the mechanisms' draws in evaluation.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The settings of the search.
    pub fn search(&self) -> &BeamConfig {
        &self.search
    }

    /// The translation of a line.
    ///
    /// # Errors
    /// The errors of [`translate_all`](Self::translate_all), of the call and of the line.
    pub fn translate(&self, line: &str) -> Result<String, Error> {
        self.translate_all([line])?.remove(0)
    }

    /// The translation of each line. Blank lines, of white space or characters without width alone, are not searched: their
    /// translations are empty. A word of letters that the training did not have is an unknown token, and its translation
    /// whatever the model makes of it.
    ///
    /// A line that cannot be translated has its own error in its place, and the others their translations:
    /// [`Error::TooLong`] if it has more tokens than the model has positions; [`Error::Overflow`], or the error of a
    /// mechanism, where the numbers overflow.
    ///
    /// # Errors
    /// [`Error::Attention`] for parameters that do not fit the mechanism.
    pub fn translate_all<'a>(
        &self,
        lines: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Result<String, Error>>, Error> {
        let lists = self.n_best(lines)?.into_iter();
        Ok(lists
            .map(|list| list.map(|mut list| list.swap_remove(0).line))
            .collect())
    }

    /// The n-best list of each line: the translations that the search finds, at most as many as its beam is wide, with their
    /// scores, the best one first, which is that of [`translate_all`](Self::translate_all). A blank line has one translation,
    /// the empty line.
    ///
    /// # Errors
    /// The errors of [`translate_all`](Self::translate_all).
    pub fn n_best<'a>(
        &self,
        lines: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Result<Vec<ScoredLine>, Error>>, Error> {
        // Subwords are cut at spaces alone: other white space would be an unknown word.
        let lines = lines.into_iter().map(|line| match is_blank(line) {
            true => "",
            false => line,
        });
        let pieces = self.subwords.encode_all(lines).into_iter();
        let mut sources: Vec<_> = pieces.map(|line| self.vocabulary.encode(line)).collect();
        let blank: Vec<bool> = sources.iter().map(Vec::is_empty).collect();
        // A model makes something up of nothing.
        sources.retain(|source| !source.is_empty());
        let pass = Pass::Evaluation { seed: self.seed };
        let found = (self.model).n_best_packed(self.packed()?, &sources, &self.search, pass)?;
        let mut found = found.into_iter();
        let lists = blank.into_iter().map(|is_blank| match is_blank {
            true => Ok(vec![ScoredLine::default()]),
            false => {
                let list = found.next().expect("one for each line that is searched")?;
                list.into_iter().map(|found| self.line(found)).collect()
            }
        });
        Ok(lists.collect())
    }

    /// The line of a translation.
    fn line(&self, found: Translation) -> Result<ScoredLine, Error> {
        let line = Subwords::decode(&self.vocabulary.decode(&found.tokens)?);
        Ok(ScoredLine {
            line: match self.detokenisation {
                Some(language) => detokenise(&line, language),
                None => line,
            },
            log_prob: found.log_prob,
            score: found.score,
        })
    }

    fn packed(&self) -> Result<&Packed<f32>, Error> {
        if let Some(packed) = self.packed.get() {
            return Ok(packed);
        }
        let packed = Arc::new(self.model.packed()?);
        Ok(self.packed.get_or_init(|| packed))
    }

    /// Writes the translator to a file; a file that was there before is replaced when the new one is whole.
    ///
    /// # Errors
    /// [`Error::Nn`] if the file cannot be written, or for a parameter that is NaN or infinite; a file that was there
    /// before stays as it is.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let written = Written {
            subwords: self.subwords.clone(),
            search: self.search.clone(),
            seed: self.seed,
            detokenisation: self.detokenisation,
        };
        let model = (&self.model, self.model.step);
        FILE.write(path.as_ref(), model, self.model.config(), &written)
    }

    /// Reads a translator from its file. It translates as the one that was saved.
    ///
    /// # Errors
    /// [`Error::Nn`] if the file cannot be read, is cut off or damaged, or holds parameters of other shapes than its
    /// settings; [`Error::TrainingRun`] for a checkpoint of a [`Trainer`], [`Error::OtherContents`] for one of something
    /// else; the errors of [`TranslatorConfig::expect`] for subwords of another model.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let saved: Read<TranslatorConfig, Written> = FILE.read(path.as_ref())?;
        // A model of another vocabulary's size is not even built.
        vocabulary(&saved.parts.subwords, &saved.config)?;
        let seed = saved.parts.seed;
        let mut model = Translator::try_new(&Cpu::default(), &saved.config, seed)?;
        let step = saved.restore(&mut model)?;
        model.go_to_step(step);
        let translator = Self::new(model, saved.parts.subwords, seed)?;
        let translator = translator.with_detokenisation(saved.parts.detokenisation);
        translator.with_search(saved.parts.search)
    }
}

/// The vocabulary of the subwords, if a model with these settings was made for it.
fn vocabulary(subwords: &Subwords, config: &TranslatorConfig) -> Result<Vocabulary, Error> {
    let vocabulary = subwords.vocabulary(Marks::StartAndEnd)?;
    config.expect(&vocabulary)?;
    Ok(vocabulary)
}

impl Trainer {
    /// The model as it stands with the subwords that its pairs were made of: a translator of lines that draws in
    /// evaluation what the trainer draws.
    ///
    /// After [`fit`](Self::fit) the model is that of the last epoch; [`use_best`](Self::use_best) first makes it that of
    /// the best one.
    ///
    /// # Errors
    /// The errors of [`TextTranslator::new`].
    pub fn text_translator(&self, subwords: Subwords) -> Result<TextTranslator, Error> {
        TextTranslator::new(self.model().clone(), subwords, self.evaluation_seed())
    }
}
