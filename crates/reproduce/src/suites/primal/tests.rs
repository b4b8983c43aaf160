//! The model that is trained, and what is seen of it.

use super::*;

#[test]
fn the_gradients_are_those_of_the_objective() {
    let (mut case, layer) = (Case::new(2, 0), layer(0.1));
    let centres = case.normal(CLASSES, WIDTH, 0.5);
    let parameters = start(&mut case, &layer).unwrap();
    let batch = batch(&mut case, &centres);
    let found = pass(&layer, &parameters, &batch).unwrap().gradients;
    for part in 0..4 {
        let place = parameters[part].len() / 3;
        let at = |step: f64| {
            let mut moved = parameters.clone();
            moved[part][place] += step;
            pass(&layer, &moved, &batch).unwrap().loss
        };
        let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
        let error = (slope - found[part][place]).abs();
        assert!(
            error < 1e-6 * slope.abs().max(1e-3),
            "{part}: {slope} {}",
            found[part][place]
        );
    }
}

/// The loss alone makes the difference of two models.
#[test]
fn models_start_alike_and_part_with_the_weight_of_the_loss() {
    let [[without, ends], [with, other_ends]] = [0.0, 1.0].map(|eta| train(0, eta, 2).unwrap());
    assert_eq!(without[..3], with[..3]);
    assert!(without[3] < with[3], "{without:?} {with:?}");
    assert_ne!(ends[1], other_ends[1]);
}

/// The kernel matrix is that of directions: how long a token is does not count.
#[test]
fn singular_values_are_those_of_directions() {
    let (mut case, layer) = (Case::new(2, 0), layer(0.1));
    let centres = case.normal(CLASSES, WIDTH, 0.5);
    let parameters = start(&mut case, &layer).unwrap();
    let (x, classes) = batch(&mut case, &centres);
    let mut longer = x.clone();
    for mut token in longer.rows_mut().into_iter().step_by(3) {
        token *= 4.0;
    }
    let [one, other] =
        [x, longer].map(|x| look(&layer, &parameters, &(x, classes.clone())).unwrap());
    for what in [1, 2] {
        let apart = (one[what] - other[what]).abs();
        assert!(apart < 1e-9, "{what}: {one:?} {other:?}");
    }
}
