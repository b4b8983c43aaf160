//! Rows that a trainer did not see are read as its test rows are.

use super::*;
use ndarray::s;

/// The first of the rows, of which 18 are learned from.
fn first(count: usize) -> Task {
    task_of(rows().slice_move(s![..count, ..]), (0..18).collect())
}

fn learning(variant: Variant, task: Task) -> Trainer {
    let (config, training) = (config(variant, 0.0), TrainingConfig::regression());
    Trainer::new(&config, &training, task, Seed::new(5)).unwrap()
}

#[test]
fn new_rows_are_read_as_test_rows_are() {
    for variant in variants() {
        let mut trained = learning(variant.clone(), first(24));
        for _ in 0..5 {
            trained.epoch().unwrap();
        }
        let knowing = |rows| {
            let (config, training) = (config(variant.clone(), 0.0), TrainingConfig::regression());
            let seed = Seed::new(5);
            Trainer::from_model(trained.model(), &config, &training, first(rows), seed).unwrap()
        };
        let want = knowing(24).predict().unwrap();
        for known in [18, 20] {
            let new = rows().slice_move(s![known.., ..]);
            let got = knowing(known).predict_rows(new.view()).unwrap();
            assert_eq!(got, want.slice(s![known..]), "{variant:?}");
        }
    }
}

#[test]
fn rows_asked_for_one_by_one_do_not_see_each_other() {
    for variant in variants() {
        let mut trainer = learning(variant, first(18));
        trainer.epoch().unwrap();
        let new = rows().slice_move(s![18..20, ..]);
        let moved = &new + &arr2(&[[0.0, 0.0], [0.5, -0.5]]);
        let alone = || trainer.predict_rows(new.slice(s![..1, ..])).unwrap()[0];
        let together = |rows: &Array2<f32>| trainer.predict_rows(rows.view()).unwrap()[0];
        let before = alone();
        assert_ne!(together(&new), together(&moved));
        assert_ne!(together(&new), before);
        assert_eq!(alone(), before);
    }
}

#[test]
fn wrong_rows_are_refused_by_type() {
    let trainer = learning(softmax(), first(24));
    let says = |rows: Array2<f32>, named: &str| {
        let said = message(trainer.predict_rows(rows.view()));
        assert!(said.contains(named), "{said}");
    };
    let none = "`new rows` has shape [0, 2] and so no elements";
    says(Array2::zeros((0, 2)), none);
    let wide = "`new rows` has shape [1, 3], but must have [1, 2]";
    says(Array2::zeros((1, 3)), wide);
    for value in [f32::NAN, f32::INFINITY] {
        let mut rows = Array2::zeros((2, 2));
        rows[(1, 0)] = value;
        says(rows, "at [1, 0], but must be finite");
    }
}
