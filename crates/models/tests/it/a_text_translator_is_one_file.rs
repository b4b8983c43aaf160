//! A translator of lines is saved and loaded as one file: it translates as before, and one of another vocabulary is refused.

use crate::common::{ikan, layer, place};
use bochner_attention::{Performer, Softmax, Variant, mechanism::Redraw};
use bochner_models::Error;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::translator::{
    Pair, ScoredLine, Task, TextTranslator, Trainer, TrainingConfig, Translator, TranslatorConfig,
};
use bochner_nn::{Checkpoint, Parameters, Progress};
use bochner_numerics::Seed;
use bochner_text::{
    BatchConfig, BeamConfig, Language, Marks, SourceBound, SubwordConfig, Subwords, TokenCounts,
};
use dfdx::tensor::Cpu;
use std::fs;
use std::path::Path;

const SOURCE: [&str; 4] = ["der hund", "ein hund", "der hase", "ein hase läuft"];
const TARGET: [&str; 4] = ["the dog", "a dog", "the hare", "a hare runs"];
const LONGEST: usize = 12;

fn subwords(merges: usize) -> Subwords {
    let words = TokenCounts::of_words(SOURCE.into_iter().chain(TARGET));
    let config = SubwordConfig {
        merges,
        ..SubwordConfig::default()
    };
    Subwords::learn(&words, &config).unwrap().subwords
}

fn config(width: usize, attention: Variant) -> TranslatorConfig {
    let layer = EncoderLayerConfig {
        width,
        ..layer(attention.clone(), NormPlacement::Pre, 0.0)
    };
    let encoder = EncoderConfig::new(1, layer);
    let vocabulary = subwords(8).vocabulary(Marks::StartAndEnd).unwrap();
    TranslatorConfig::transformer(&vocabulary, LONGEST, encoder, attention).unwrap()
}

fn trainer(attention: Variant) -> Trainer {
    let subwords = subwords(8);
    let vocabulary = subwords.vocabulary(Marks::StartAndEnd).unwrap();
    let pairs = Pair::of_lines([&SOURCE, &TARGET], &subwords, &vocabulary).unwrap();
    let task = Task::new(pairs, BatchConfig::default()).unwrap();
    let training = TrainingConfig {
        learning_rate: 0.01,
        ..TrainingConfig::default()
    };
    Trainer::new(&config(8, attention), &training, task, Seed::new(5)).unwrap()
}

#[test]
fn pairs_are_of_lines() {
    let subwords = subwords(8);
    let vocabulary = subwords.vocabulary(Marks::StartAndEnd).unwrap();
    let pairs = Pair::of_lines([&SOURCE, &TARGET], &subwords, &vocabulary).unwrap();
    assert_eq!(pairs.len(), 4);
    let target = vocabulary.encode(subwords.encode(TARGET[3]));
    assert_eq!(pairs[3].target, target);
    let uneven = Pair::of_lines([&SOURCE[..], &TARGET[1..]], &subwords, &vocabulary);
    assert!(uneven.is_err());
}

fn trained(attention: Variant) -> TextTranslator {
    after(7, trainer(attention))
}

/// The translator of a trainer after so many more epochs.
fn after(epochs: usize, mut trainer: Trainer) -> TextTranslator {
    for _ in 0..epochs {
        trainer.epoch().unwrap();
    }
    trainer.text_translator(subwords(8)).unwrap()
}

fn softmax() -> Variant {
    Softmax::default().into()
}

fn lines(translator: &TextTranslator) -> Vec<String> {
    let found = translator.translate_all(SOURCE).unwrap();
    found.into_iter().map(Result::unwrap).collect()
}

#[test]
fn what_is_loaded_translates_as_what_was_trained() {
    // The frequencies of the last step are not those of the first.
    let performer = Performer {
        redraw: Redraw::Every { steps: 3 },
        ..Performer::default()
    };
    for attention in [softmax(), ikan(), performer.into()] {
        let mut trainer = trainer(attention);
        for _ in 0..7 {
            trainer.epoch().unwrap();
        }
        let search = BeamConfig {
            beam: 3,
            max_length: 9,
            source_bound: Some(SourceBound {
                per_token: 1.0,
                more: 3,
            }),
            ..BeamConfig::default()
        };
        let translator = trainer.text_translator(subwords(8)).unwrap();
        let translator = translator.with_search(search.clone()).unwrap();
        let (_directory, path) = place();
        translator.save(&path).unwrap();
        let loaded = TextTranslator::load(&path).unwrap();
        assert_eq!(
            (loaded.search(), loaded.subwords()),
            (&search, translator.subwords())
        );

        let sources: Vec<_> = trainer
            .task()
            .pairs()
            .iter()
            .map(|pair| pair.source.clone())
            .collect();
        let expected = trainer.translate(&sources, &search).unwrap();
        let pass = bochner_attention::Pass::Evaluation {
            seed: loaded.seed(),
        };
        let found = loaded.model().translate(&sources, &search, pass).unwrap();
        for (found, expected) in found.into_iter().zip(expected) {
            assert_eq!(found.unwrap(), expected.unwrap());
        }
        assert_eq!(lines(&loaded), lines(&translator));
        let lists = loaded.n_best(SOURCE).unwrap();
        for (list, line) in lists.into_iter().zip(lines(&loaded)) {
            let list = list.unwrap();
            assert_eq!(list[0].line, line);
            assert!(list.is_sorted_by(|a, b| a.score >= b.score));
            let score = |found: &ScoredLine| found.log_prob <= found.score && found.score < 0.0;
            assert!(list.iter().all(score), "{list:?}");
        }
        let blank = loaded.n_best(["\u{200b}"]).unwrap().remove(0).unwrap();
        assert_eq!(blank, [ScoredLine::default()]);

        let again = path.with_extension("again");
        loaded.save(&again).unwrap();
        assert_eq!(fs::read(again).unwrap(), fs::read(path).unwrap());
    }
}

/// Also once it was saved, and not in files of older versions, which do not speak of it.
#[test]
fn translations_are_detokenised_if_wished() {
    let source = ["ein hund .", "zwei hunde ."];
    let target = ["it &apos;s a dog .", "it &apos;s two dogs ."];
    let words = TokenCounts::of_words(source.into_iter().chain(target));
    let subwords = Subwords::learn(&words, &SubwordConfig::default()).unwrap();
    let subwords = subwords.subwords;
    let vocabulary = subwords.vocabulary(Marks::StartAndEnd).unwrap();
    let pairs = Pair::of_lines([&source, &target], &subwords, &vocabulary).unwrap();
    let task = Task::new(pairs, BatchConfig::default()).unwrap();
    let encoder = config(16, softmax()).encoder;
    let config = TranslatorConfig::transformer(&vocabulary, 20, encoder, softmax()).unwrap();
    let training = TrainingConfig {
        learning_rate: 0.01,
        ..TrainingConfig::default()
    };
    let mut trainer = Trainer::new(&config, &training, task, Seed::new(5)).unwrap();
    for _ in 0..60 {
        trainer.epoch().unwrap();
    }
    let tokens = trainer.text_translator(subwords).unwrap();
    let (_directory, path) = place();
    tokens.save(&path).unwrap();
    assert!(!String::from_utf8_lossy(&fs::read(&path).unwrap()).contains("detokenisation"));
    assert_eq!(TextTranslator::load(&path).unwrap().detokenisation(), None);

    let text = tokens.clone().with_detokenisation(Some(Language::English));
    text.save(&path).unwrap();
    for (translator, expected) in [
        (&tokens, target[1]),
        (&text, "it's two dogs."),
        (&TextTranslator::load(&path).unwrap(), "it's two dogs."),
    ] {
        assert_eq!(translator.translate(source[1]).unwrap(), expected);
    }
}

#[test]
fn lines_keep_their_places_whatever_becomes_of_the_others() {
    let translator = after(60, trainer(softmax()));
    let long = ["der hund"; LONGEST].join(" ");
    let found = translator
        .translate_all(["der hund", &long, "", "  ", "ein hase"])
        .unwrap();
    let [first, too_long, empty, blank, last] = <[_; 5]>::try_from(found).unwrap();
    assert!(matches!(
        too_long,
        Err(Error::TooLong {
            longest: LONGEST,
            ..
        })
    ));
    assert_eq!([empty.unwrap(), blank.unwrap()], ["", ""]);
    let (first, last) = (first.unwrap(), last.unwrap());
    assert_ne!(first, last);
    for (found, line) in [(first, "der hund"), (last, "ein hase")] {
        assert_eq!(found, translator.translate(line).unwrap());
    }
    assert!(matches!(
        translator.translate(&long),
        Err(Error::TooLong { .. })
    ));
    assert!(translator.translate_all([]).unwrap().is_empty());
}

/// The only token that a translation may have is its end.
#[test]
fn the_settings_of_the_search_are_obeyed() {
    let translator = after(60, trainer(softmax()));
    assert_ne!(translator.translate("ein hase").unwrap(), "");
    let search = BeamConfig {
        max_length: 1,
        ..translator.search().clone()
    };
    let short = translator.with_search(search).unwrap();
    assert_eq!(short.translate("ein hase").unwrap(), "");
}

/// No search of this model finds a probability.
#[test]
fn blank_lines_are_not_searched() {
    let mut model = trained(softmax()).model().clone();
    model.for_each_mut("", &mut |_, parameter| {
        parameter.write(&vec![f32::NAN; parameter.len()]);
    });
    let translator = TextTranslator::new(model, subwords(8), Seed::new(1)).unwrap();
    let found = translator
        .translate_all(["", "ein hase", " \t\u{a0}"])
        .unwrap();
    let [empty, line, blank] = <[_; 3]>::try_from(found).unwrap();
    assert_eq!([empty.unwrap(), blank.unwrap()], ["", ""]);
    assert!(matches!(line, Err(Error::Attention(_))));
    assert_eq!(translator.translate("").unwrap(), "");
}

#[test]
fn searches_that_cannot_be_are_refused() {
    let with = |beam, max_length| {
        let search = BeamConfig {
            beam,
            max_length,
            ..BeamConfig::default()
        };
        trained(softmax()).with_search(search).map(|_| ())
    };
    assert!(with(1, LONGEST).is_ok());
    assert!(matches!(with(0, LONGEST), Err(Error::Text(_))));
    let long = with(1, LONGEST + 1).unwrap_err().to_string();
    assert!(
        long.starts_with("`max_length` is 13, but must be at most 12"),
        "{long}"
    );
    assert!(long.contains("`..translator.search().clone()`"), "{long}");
    // What the message advises.
    let translator = trained(softmax());
    let search = BeamConfig {
        beam: 2,
        ..translator.search().clone()
    };
    assert!(translator.with_search(search).is_ok());
}

/// Writes a file as `TextTranslator::save` does, of parts that need not fit.
fn write(path: &Path, config: &TranslatorConfig, model: &Translator<f32>, subwords: &Subwords) {
    let extra = serde_json::json!({
        "subwords": subwords, "search": BeamConfig { max_length: LONGEST, ..BeamConfig::default() }, "seed": Seed::new(1),
    });
    let progress = Progress {
        extra,
        ..Progress::default()
    };
    let description = serde_json::json!({ "text-translator": config }).to_string();
    let checkpoint = Checkpoint::of(description, model).with_progress(progress);
    checkpoint.write(path).unwrap();
}

#[test]
fn a_vocabulary_of_another_model_is_refused() {
    let own = config(8, softmax());
    let model = Translator::try_new(&Cpu::default(), &own, Seed::new(1)).unwrap();
    let made = |subwords| TextTranslator::new(model.clone(), subwords, Seed::new(1)).map(|_| ());
    assert!(made(subwords(8)).is_ok());
    let another = |made: Result<(), Error>| match made {
        Err(Error::Text(error)) => {
            assert!(matches!(
                error,
                bochner_text::Error::AnotherVocabulary { .. }
            ));
        }
        other => panic!("{other:?}"),
    };
    another(made(subwords(5)));

    let (_directory, path) = place();
    write(&path, &own, &model, &subwords(8));
    assert!(TextTranslator::load(&path).is_ok());
    write(&path, &own, &model, &subwords(5));
    another(TextTranslator::load(&path).map(|_| ()));

    // Settings that do not know their vocabulary know its size, and its marks.
    for (change, message) in [
        ((|_| ()) as fn(&mut TranslatorConfig), ""),
        (|config| config.tokens += 1, "`the vocabulary` has length"),
        (|config| config.start = 1, "`start` is 1"),
        (|config| config.end = 5, "`end` is 5"),
    ] {
        let mut config = TranslatorConfig {
            vocabulary: None,
            ..own.clone()
        };
        change(&mut config);
        let model = Translator::try_new(&Cpu::default(), &config, Seed::new(1)).unwrap();
        let made = TextTranslator::new(model, subwords(8), Seed::new(1));
        let said = made.err().map(|error| error.to_string());
        assert!(
            said.clone().unwrap_or_default().starts_with(message),
            "{said:?}"
        );
        assert_eq!(said.is_none(), message.is_empty());
    }
}
