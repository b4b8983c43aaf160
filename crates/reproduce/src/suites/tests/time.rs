//! Functional time.

use super::*;
use crate::trial::events::{Clock, EventSettings};

#[test]
fn models_differ_in_features_and_clocks_alone() {
    for scale in SCALES {
        let plan = plan(&TIME, scale);
        for set in plan.sets() {
            let of = |model| {
                let settings = plan.claimed(set, model).unwrap().settings();
                settings.read::<EventSettings>().unwrap()
            };
            let bochner = of("Bochner");
            for model in TIME.card().models {
                let own = of(model.name);
                let features: usize = own.time.iter().map(|sense| sense.width()).sum();
                let expected = if model.name == "no time" {
                    0..=0
                } else {
                    15..=17
                };
                assert!(expected.contains(&features), "{}: {features}", model.name);
                let (time, clock) = (bochner.time.clone(), bochner.clock);
                assert_eq!(EventSettings { time, clock, ..own }, bochner);
            }
            let clock = Clock::Shuffled;
            assert_eq!(EventSettings { clock, ..bochner }, of("shuffled times"));
        }
    }
}

#[test]
fn a_gain_that_shuffled_times_have_too_is_no_gain_of_times() {
    let plan = plan(&TIME, Scale::Desk);
    let judged = |shuffled: f64| {
        let results = results(&TIME, &plan, |arm, unit| {
            let gain = match arm.model {
                "no time" => 0.0,
                "positions" => 0.01,
                "shuffled times" => shuffled,
                _ => 0.03,
            };
            Some(0.4 + gain + 0.001 * noise(arm, unit))
        });
        verdicts(&TIME, &plan, &results)
    };
    assert_eq!(judged(0.0), [(); 4].map(|()| Verdict::Reproduced));
    let planted = judged(0.03);
    for place in [0, 3] {
        assert!(planted[place] == Verdict::Undecided, "{planted:?}");
    }
    assert_eq!(planted[1..3], [Verdict::Reproduced, Verdict::Reproduced]);
}
