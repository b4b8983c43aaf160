//! Figures 2 and 5: what is planned, what is judged, and what is refused.

use super::*;
use crate::Preset;
use crate::check::sentences::generated;
use crate::suites::figure2::check_row;
use crate::trial::nodes::heads::{DEVIATION, GROWTH, REJECTED};
use bochner_datasets::sentences::Sentence;
use bochner_datasets::{Protocol, SentenceData, SentenceSet};

#[test]
fn figure_2_rests_on_six_folds_with_three_seeds_each_the_fold_of_the_sentence_first() {
    let plan = plan(&FIGURE_2, Scale::Desk);
    assert_eq!(plan.arms.len(), 3);
    for arm in &plan.arms {
        let runs: Vec<(usize, u64)> = arm
            .units
            .iter()
            .map(|unit| (unit.split, unit.seed))
            .collect();
        let expected = [8, 0, 1, 2, 3, 4].map(|fold| [(fold, 0), (fold, 1), (fold, 2)]);
        assert_eq!(runs, expected.concat());
        let settings: crate::trial::sentences::SentenceSettings = arm.settings().read().unwrap();
        assert_eq!(
            (settings.heads, settings.width, settings.hidden),
            (8, 64, 128)
        );
        assert_eq!((settings.p, settings.points), (Some(1.5), Some(32)));
    }
}

#[test]
fn the_standard_error_of_diversity_is_that_over_all_folds_and_seeds() {
    let plan = plan(&FIGURE_2, Scale::Desk);
    // A difference of .001 with a standard deviation of .003 over 18 pairs is 1.4 standard errors, one of .002 is 2.8.
    let judged = |difference: f64| {
        let mut all = results(&FIGURE_2, &plan, |_, _| Some(0.8));
        let rows = plan.arms.iter().flat_map(|arm| {
            let is_own = (arm.model, arm.preset) == ("MIKAN", Preset::Paper);
            let rows = all.of(arm).into_iter().cloned().enumerate();
            rows.map(move |(place, mut row)| {
                let noise = 0.003 * f64::from(place as u8 % 2) * 2.0 - 0.003;
                let value = 0.2 + if is_own { difference + noise } else { 0.0 };
                row.measures.insert("diversity".into(), value);
                row
            })
        });
        let rows: Vec<_> = rows.collect();
        all.extend(rows);
        verdicts(&FIGURE_2, &plan, &all).remove(0)
    };
    assert_eq!(judged(0.002), Verdict::Reproduced);
    let Verdict::NotReproduced(why) = judged(0.001) else {
        panic!("1.4 standard errors")
    };
    assert!(why.contains("+0.0010 ± 0.0007 over IKAN"), "{why}");
}

/// As many sentences as MR has, of the classes that they have, with a text in the row of the paper's sentence.
fn corpus(text: &str) -> SentenceData {
    let mut sentences = generated(10_662);
    for (row, sentence) in sentences.iter_mut().enumerate() {
        let number = format!(" number{row}");
        sentence.text.extend(number.bytes());
        sentence.label = usize::from(row >= 5_331);
    }
    sentences[627] = Sentence {
        text: text.into(),
        label: 0,
    };
    SentenceData::of_files(SentenceSet::Mr, Protocol::P10, vec![sentences]).unwrap()
}

#[test]
fn another_sentence_in_the_row_of_the_papers_is_refused_with_both_named() {
    let right = corpus("just a kiss is a just a waste . ");
    check_row(&right).unwrap();
    assert!(right.splits[8].test.contains(&627));
    let error = check_row(&corpus("a kiss is just a kiss .")).unwrap_err();
    assert!(matches!(error, Error::OtherSentence { row: 627, .. }));
    let said = error.to_string();
    assert!(
        said.contains("a kiss is just a kiss .") && said.contains("just a waste"),
        "{said}"
    );
}

#[test]
fn figure_5_is_judged_by_the_runs_that_reject_by_a_floor_for_the_start_and_by_deviations() {
    let plan = plan(&FIGURE_5, Scale::Desk);
    let judged = |rejected: u64, growth: f64, ahead: f64| {
        let mut all = results(&FIGURE_5, &plan, |_, _| Some(0.2));
        let rows = plan.arms.iter().flat_map(|arm| {
            all.of(arm).into_iter().cloned().map(move |mut row| {
                let found = f64::from(u8::from(row.unit.seed < rejected));
                let gain = if arm.model == "MIKAN" { ahead } else { 0.0 };
                let noise = 0.001 * (row.unit.seed * arm.model.len() as u64 % 3) as f64;
                row.measures.insert(REJECTED.into(), found);
                row.measures.insert(GROWTH.into(), growth);
                row.measures.insert(DEVIATION.into(), 0.1 + gain + noise);
                row
            })
        });
        let rows: Vec<_> = rows.collect();
        all.extend(rows);
        verdicts(&FIGURE_5, &plan, &all)
    };
    assert_eq!(judged(6, 2.0, 0.01), [const { Verdict::Reproduced }; 3]);
    let not = judged(5, 1.9, -0.01);
    let is_not = |verdict: &Verdict| matches!(verdict, Verdict::NotReproduced(_));
    assert!(not.iter().all(is_not), "{not:?}");
}
