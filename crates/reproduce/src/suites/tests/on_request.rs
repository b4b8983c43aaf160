//! Models that run only where they are asked for by name.

use super::*;
use crate::mechanisms::{OF_OTHER_PAPERS, PRIMAL_PARAMETERS};

fn with(suite: &'static dyn Suite, scale: Scale, on_request: OnRequest) -> Plan {
    let sets = suite.card().asked(scale, &[]);
    let frame = Frame {
        on_request,
        ..frame(scale)
    };
    Plan::new(suite, &sets, frame, Choices::Dearest)
}

#[test]
fn they_are_planned_only_then_and_change_no_other_unit() {
    for suite in [&CLASSIFICATION as &dyn Suite, &REGRESSION] {
        for scale in SCALES {
            let usual = with(suite, scale, OnRequest::LeftOut);
            let all = with(suite, scale, OnRequest::Included);
            let (others, same): (Vec<Arm>, Vec<Arm>) =
                (all.arms.iter().cloned()).partition(|arm| suite.card().is_on_request(arm.model));
            assert_eq!(same, usual.arms, "{}", suite.card().name);
            for set in usual.sets() {
                let models: Vec<&str> = others
                    .iter()
                    .filter(|arm| arm.set == set)
                    .map(|arm| arm.model)
                    .collect();
                let of_words = suite.card().name == "classification";
                let has_order = of_words || ["CO2", "Passenger"].contains(&set);
                let mut want = match has_order {
                    true => OF_OTHER_PAPERS.to_vec(),
                    false => vec!["Performer", "bipolar"],
                };
                if !of_words {
                    want.push(PRIMAL_PARAMETERS);
                }
                assert_eq!(models, want, "{set}");
            }
            assert!(others.iter().all(|arm| arm.role == Role::Compared));
        }
    }
}

#[test]
fn mechanisms_that_see_the_order_of_rows_are_refused_where_rows_have_none() {
    let card = REGRESSION.card();
    for set in card.sets {
        for model in OF_OTHER_PAPERS.into_iter().chain([PRIMAL_PARAMETERS]) {
            let refused = REGRESSION.admits(set, model).is_err();
            let sees_order = ["CAT", "Primal"].contains(&model);
            let is_series = ["CO2", "Passenger"].contains(&set.title);
            assert_eq!(
                refused,
                sees_order && !is_series,
                "{model} on {}",
                set.title
            );
        }
    }
    let housing = card.set("Housing").unwrap();
    let said = REGRESSION.admits(housing, "CAT").unwrap_err().to_string();
    assert!(
        said.starts_with("cat sees the order of rows, and the rows of housing have none"),
        "{said}"
    );
}
