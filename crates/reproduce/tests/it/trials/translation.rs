//! Translators.

use bochner_datasets::{ParallelText, Reversal, TranslationData};
use bochner_numerics::Seed;
use bochner_report::{Scale, Settings, Unit};
use bochner_reproduce::suite::Source;
use bochner_reproduce::suites::TRANSLATION;
use bochner_reproduce::trial::translation::{CUT, IN_PLACE, Place, Trace, TranslationSettings};
use bochner_reproduce::trial::{Findings, Moment};

/// The Transformer's unit with other settings.
fn unit(change: impl Fn(&mut TranslationSettings)) -> Unit {
    let plan = crate::suites::plan(&TRANSLATION, Scale::Smoke);
    let unit = plan.claimed("reverse", "Transformer").unwrap().units[0].clone();
    let mut settings = unit.settings.read().unwrap();
    change(&mut settings);
    Unit {
        settings: Settings::of(&settings),
        ..unit
    }
}

fn look(data: &TranslationData, unit: &Unit, moment: Moment) -> Findings {
    let trial = data.start(unit).unwrap();
    trial.findings(moment, &|| false).unwrap()
}

#[test]
fn cross_attention_is_that_of_the_targets_to_the_sources() {
    let letters = Reversal {
        letters: 7,
        lengths: [4, 6],
        pairs: [40, 10, 10],
    };
    let data = letters.draw(Seed::new(3)).unwrap();
    let mut changed = data.clone();
    let targets = changed.validation.target.iter_mut();
    targets.for_each(|line| *line = line.chars().rev().collect());
    let traces = [&data, &changed].map(|data| {
        let found = look(data, &unit(|_| {}), Moment::First).artefacts;
        Place::ALL.map(|place| found.get::<Trace>(&place.trace(0)).unwrap())
    });
    let [[encoder, cross], [encoder_again, other]] = traces;
    assert_eq!(encoder, encoder_again);
    // Other targets have other queries, but the keys are those of the sources.
    assert_ne!(cross.magnitude, other.magnitude);
    assert_eq!(cross.key_magnitude, other.key_magnitude);
}

/// Pairs of lines of so many words; a word is a token.
fn text(lengths: &[(usize, usize)]) -> ParallelText {
    let line = |words: usize| vec!["a"; words].join(" ");
    ParallelText {
        source: lengths.iter().map(|pair| line(pair.0)).collect(),
        target: lengths.iter().map(|pair| line(pair.1)).collect(),
        dropped: Vec::new(),
    }
}

fn data(train: &[(usize, usize)], others: &[(usize, usize)]) -> TranslationData {
    TranslationData {
        train: text(train),
        validation: text(others),
        test: text(others),
        others: Vec::new(),
        provenance: Vec::new(),
    }
}

#[test]
fn pairs_beyond_a_length_or_a_ratio_of_lengths_are_left_out() {
    let trained_on = |pair, ratio| {
        let data = data(&[(2, 2), pair], &[(2, 2)]);
        let bound = |settings: &mut TranslationSettings| {
            (settings.longest, settings.length_ratio) = (7, ratio);
        };
        data.start(&unit(bound)).unwrap().rows()[0] - 1
    };
    for (source, target, within) in [(3, 2, 1), (2, 3, 1), (5, 3, 0), (3, 5, 0)] {
        assert_eq!(trained_on((source, target), None), 1);
        assert_eq!(trained_on((source, target), Some(1.5)), within);
    }
    // A target has one mark.
    assert_eq!(trained_on((7, 6), Some(1.5)), 1);
    assert_eq!(trained_on((7, 7), Some(1.5)), 0);
}

#[test]
fn a_side_is_cut_to_the_positions_and_a_target_keeps_one_for_its_mark() {
    for (source, target, was_cut) in [(5, 4, 0.0), (6, 4, 2.0), (5, 5, 2.0), (1, 9, 2.0)] {
        let data = data(&[(2, 2)], &[(source, target)]);
        let short = unit(|settings| settings.positions = 5);
        // The pair is in validation and test.
        let found = look(&data, &short, Moment::Last).measures;
        assert_eq!(found[CUT], was_cut, "{source} {target}");
    }
}

#[test]
fn tokens_count_where_they_stand_and_a_line_with_its_longer_side() {
    let data = data(
        &[(2, 2), (3, 3), (4, 4)].repeat(8),
        &[(2, 3), (5, 2), (3, 3)],
    );
    let unit = unit(|_| {});
    let mut trial = data.start(&unit).unwrap();
    for _ in 0..60 {
        trial.model_mut().epoch().unwrap();
    }
    let found = trial.findings(Moment::OfV, &|| false).unwrap();
    let lines = |name: &str| found.artefacts.get::<Vec<String>>(name).unwrap();
    let (mut right, mut all) = (0, 0);
    for (line, reference) in lines("translations").iter().zip(lines("references")) {
        let [line, reference] = [line, &reference].map(|line| line.split(' ').collect::<Vec<_>>());
        let longer = line.len().max(reference.len());
        let is_right = |&at: &usize| {
            line.get(at)
                .is_some_and(|word| reference.get(at) == Some(word))
        };
        right += (0..longer).filter(is_right).count();
        all += longer;
    }
    assert!(0 < right && right < all, "{right} of {all}");
    assert_eq!(found.measures[IN_PLACE], right as f64 / all as f64);
}
