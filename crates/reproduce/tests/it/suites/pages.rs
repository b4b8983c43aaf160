//! Texts and pictures of pages beyond the published ones.

use super::*;
use bochner_report::check::{Check, Mark};
use bochner_report::row::{Artefacts, Curve};

/// V-numbers, a text, and whether the page of them at scale desk has it.
type Page = (&'static Suite, fn(&Arm, &Unit) -> f64, &'static str, bool);

const ALARM: &str = "LOOK FOR A LEAK";
const INADEQUATE: &str = "**no: set-up not adequate**";
const FALLS: &str = "the training loss falls";
const EQUAL: &str = "* IKA-NS and IKA-S have equal V-numbers on splits: 2 of 10 on CR, 2 of 10 on TREC, 2 of 5 on SST";

#[rustfmt::skip]
static PAGES: [Page; 9] = [
    (&CLASSIFICATION, |a, _| if (a.model, a.set) == ("MIKAN", "MR") { 0.802 } else { 0.79 }, ALARM, true),
    (&CLASSIFICATION, |a, _| if (a.model, a.set) == ("MIKAN", "MR") { 0.799 } else { 0.79 }, ALARM, false),
    (&CLASSIFICATION, |a, _| if a.set == "SUBJ" { 0.6 } else { 0.93 }, INADEQUATE, true),
    (&CLASSIFICATION, |_, _| 0.93, INADEQUATE, false),
    (&CLASSIFICATION, |a, u| if a.model == "IKA-NS" && u.split >= 2 { 0.93 } else { 0.92 }, EQUAL, true),
    (&TRANSLATION, |_, _| 31.9, INADEQUATE, true),
    (&TRANSLATION, |_, _| 24.9, "badly trained", true),
    // A thinned set is another one than the published.
    (&REGRESSION, |a, u| 0.3 + 0.01 * noise(a, u), "0.018 ±", false),
    (&REGRESSION, |a, u| 0.3 + 0.01 * noise(a, u), "| Passenger | MIKAN (released) |", true),
];

#[test]
fn pages_say_what_is_inadequate_beyond_belief_or_nothing_new() {
    for (suite, value, text, is_said) in PAGES {
        let plan = plan(suite, Scale::Desk);
        let page = report(
            suite,
            &plan,
            &results(suite, &plan, |a, u| Some(value(a, u))),
        );
        assert_eq!(page.contains(text), is_said, "{text}: {page}");
    }
}

#[test]
fn a_loss_that_rises_in_one_epoch_is_seen() {
    let plan = plan(&TRANSLATION, Scale::Smoke);
    for (values, passes) in [
        ([3.0, 2.0, 1.0], true),
        ([3.0, 0.1, 0.11], true),
        ([3.0, 1.0, 2.0], false),
        ([3.0, 3.0, 1.0], false),
        ([3.0, 0.1, 0.2], false),
    ] {
        let curve = Curve {
            epochs: vec![1, 2, 3],
            values: values.to_vec(),
        };
        let falls = |check: &&Check| matches!(check, Check::Run(name, _) if name.contains(FALLS));
        let check = TRANSLATION.checks.iter().find(falls).unwrap();
        let account = Account {
            card: TRANSLATION.card,
            plan: &plan,
            results: &Results::new(TRANSLATION.card.metric.direction),
            claims: &[],
            checks: &[],
            skipped: &[],
            preface: None,
            epochs: None,
            notes: &[],
            artefacts: &|_| Some(Artefacts::default().with("loss", &curve)),
        };
        let passed = matches!(check.run(&account).mark, Mark::Passed(_));
        assert_eq!(passed, passes, "{values:?}");
    }
}
