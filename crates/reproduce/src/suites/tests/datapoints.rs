//! Attention between datapoints: what is planned, and what its claims hold against a model.

use super::*;
use crate::trial::datapoints::{AGREES, CORRUPTED, STILL};

const SETS: [&str; 2] = ["look-up", "add one"];

/// The verdicts on a model with this error on the tables of copies, and these measures.
fn judged(error: f64, measures: [f64; 3]) -> Vec<Verdict> {
    let plan = plan(&DATAPOINTS, Scale::Paper);
    let mut all = results(&DATAPOINTS, &plan, |arm, unit| {
        let error = if arm.model == "NPT" { error } else { 1.0 };
        Some(error + 0.002 * noise(arm, unit))
    });
    let arms = plan.arms.iter().filter(|arm| SETS.contains(&arm.set));
    let rows = arms.flat_map(|arm| {
        let rows = all.of(arm).into_iter().cloned();
        rows.map(move |mut row| {
            let own = [AGREES, STILL, CORRUPTED].into_iter().zip(measures);
            row.measures
                .extend(own.map(|(name, value)| (name.to_owned(), value)));
            row
        })
    });
    let rows: Vec<_> = rows.collect();
    all.extend(rows);
    verdicts(&DATAPOINTS, &plan, &all)
}

#[test]
fn tables_of_rows_have_the_regressor_and_the_processes_beside_them() {
    let plan = plan(&DATAPOINTS, Scale::Desk);
    for set in ["Housing", "Concrete"] {
        for model in ["per row", "NPT", "Transformer", "GP (RBF)", "GP (SM)"] {
            let arm = plan.arms.iter().find(|a| (a.set, a.model) == (set, model));
            let arm = arm.unwrap_or_else(|| panic!("{model} on {set}"));
            assert_eq!(arm.units.len(), 10, "{model} on {set}");
        }
    }
    for set in SETS {
        let arms = plan.arms.iter().filter(|arm| arm.set == set);
        let models: Vec<&str> = arms.map(|arm| arm.model).collect();
        assert_eq!(models, ["per row", "NPT"], "{set}");
    }
}

/// The look-up task and its variant are of one size, so that their arms would not stand side by side.
#[test]
fn a_set_that_is_named_twice_is_planned_once() {
    let sets = DATAPOINTS.card().asked(Scale::Desk, &[]);
    let twice = [&sets[..], &sets[..]].concat();
    let [one, two] =
        [&sets, &twice].map(|sets| Plan::new(&DATAPOINTS, sets, frame(Scale::Desk), Choices::None));
    assert_eq!(one.arms.len(), two.arms.len());
}

/// Three runs cannot show what happens in most of them.
#[test]
fn desk_has_too_few_runs_for_a_majority() {
    let plan = plan(&DATAPOINTS, Scale::Desk);
    let results = results(&DATAPOINTS, &plan, |_, _| Some(0.99));
    let verdict = verdicts(&DATAPOINTS, &plan, &results)[2].to_string();
    assert_eq!(verdict, "not tested: 3 runs cannot show a majority");
}

#[test]
fn a_look_up_counts_if_it_is_right_and_rests_on_the_copy() {
    let places = |verdicts: Vec<Verdict>| -> Vec<usize> {
        let not = |verdict: &Verdict| *verdict != Verdict::Reproduced;
        (0..verdicts.len())
            .filter(|&place| not(&verdicts[place]))
            .collect()
    };
    assert_eq!(places(judged(0.01, [0.98, 0.99, 1.2])), [0; 0]);
    assert_eq!(places(judged(0.06, [0.98, 0.99, 1.2])), [0, 5]);
    assert_eq!(places(judged(0.01, [0.94, 0.99, 1.2])), [2, 6]);
    assert_eq!(places(judged(0.01, [0.98, 0.94, 1.2])), [3, 7]);
    assert_eq!(places(judged(0.01, [0.98, 0.99, 0.4])), [4, 8]);
}
