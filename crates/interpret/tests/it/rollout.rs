//! The rollout of attention.

use bochner_interpret::{Error, attention_rollout, kept_queries};
use ndarray::{Array2, Array4, Axis, s};

/// Rows of probabilities, of two examples with three heads and four tokens, which differ between layers.
fn weights(layer: usize) -> Array4<f64> {
    let mut a = Array4::from_shape_fn((2, 3, 4, 4), |(b, m, i, j)| {
        ((1 + layer + 11 * b + 3 * m + 7 * i + 5 * j) as f64)
            .sin()
            .abs()
    });
    let sums = a.sum_axis(Axis(3)).insert_axis(Axis(3));
    a /= &sums;
    a
}

/// The rollout of layers that are kept in arrays.
fn rollout(layers: &[Array4<f64>], lengths: [usize; 2]) -> Result<Array4<f64>, Error> {
    let views: Vec<_> = layers.iter().map(|layer| layer.view()).collect();
    attention_rollout(&views, kept_queries(&lengths, 4)?.view())
}

#[test]
fn later_layers_stand_on_the_left() {
    let layers = [0, 1, 2].map(weights);
    let rollout = rollout(&layers, [4, 4]).unwrap();
    assert_eq!(rollout.dim(), (2, 3, 4, 4));
    for b in 0..2 {
        let of = |l: usize| {
            let mean = layers[l].index_axis(Axis(0), b).mean_axis(Axis(0)).unwrap();
            0.5 * (mean + Array2::<f64>::eye(4))
        };
        let want = of(2).dot(&of(1)).dot(&of(0));
        let got = rollout.slice(s![b, 2, .., ..]);
        assert!((&got - &want).iter().all(|x| x.abs() < 1e-15));
        let swapped = of(0).dot(&of(1)).dot(&of(2));
        assert!((&got - &swapped).iter().any(|x| x.abs() > 1e-3));
    }
    let sums = rollout.sum_axis(Axis(3));
    assert!(sums.iter().all(|x| (x - 1.0).abs() < 1e-14));
}

/// The mean of three heads as the one head of a layer.
#[test]
fn layers_may_differ_in_their_number_of_heads() {
    let layers = [0, 1].map(weights);
    let want = rollout(&layers, [4, 3]).unwrap();
    for l in 0..2 {
        let mut layers = layers.clone();
        layers[l] = layers[l].mean_axis(Axis(1)).unwrap().insert_axis(Axis(1));
        let got = rollout(&layers, [4, 3]).unwrap();
        assert!((&got - &want).iter().all(|x| x.abs() < 1e-15));
    }
}

#[test]
fn padding_is_left_out() {
    let mut layers = [0, 1].map(weights);
    let short = layers.clone();
    for layer in &mut layers {
        layer.slice_mut(s![1, .., 3, ..]).fill(f64::NAN);
        layer.slice_mut(s![1, .., .., 3]).fill(f64::NAN);
    }
    let got = rollout(&layers, [4, 3]).unwrap();
    let short: Vec<_> = short
        .iter()
        .map(|layer| layer.slice(s![1.., .., ..3, ..3]))
        .collect();
    let kept = kept_queries(&[3], 3).unwrap();
    let want = attention_rollout(&short, kept.view()).unwrap();
    assert_eq!(got.slice(s![1.., .., ..3, ..3]), want);
    assert!(got.slice(s![1, .., 3, ..]).iter().all(|&x| x == 0.0));
    assert!(got.slice(s![1, .., .., 3]).iter().all(|&x| x == 0.0));
    let error = rollout(&layers, [4, 4]).unwrap_err().to_string();
    let said = "`weights[0][[1, 0, 0, 3]]` is NaN, but must be finite and at least 0";
    assert_eq!(error, said);
    let mut wrong = [0, 1].map(weights);
    wrong[1][[0, 2, 3, 1]] = -0.5;
    let error = rollout(&wrong, [4, 4]).unwrap_err().to_string();
    assert!(
        error.starts_with("`weights[1][[0, 2, 3, 1]]` is -0.5"),
        "{error}"
    );
    let nothing = rollout(&layers, [4, 0]).unwrap();
    assert!(nothing.slice(s![1, .., .., ..]).iter().all(|&x| x == 0.0));
}

#[test]
fn layers_that_do_not_fit_are_named() {
    let says = |layers: &[Array4<f64>]| rollout(layers, [4, 4]).unwrap_err().to_string();
    assert!(says(&[]).starts_with("`layers of weights`"));
    let one = weights(0).slice(s![..1, .., .., ..]).to_owned();
    assert!(says(&[weights(0), one]).starts_with("`weights[1]`"));
    let wide = weights(0).slice(s![.., .., ..3, ..]).to_owned();
    assert!(says(&[wide]).starts_with("`weights[0]`"));
    let small = weights(0).slice(s![.., .., ..3, ..3]).to_owned();
    assert!(says(&[small]).starts_with("`queries`"));
    let huge = Array4::from_elem((2, 1, 4, 4), 1e300);
    assert!(says(&[huge.clone(), huge]).starts_with("`products of the layers`"));
}

#[test]
fn padding_may_stand_among_the_tokens() {
    let layers = [0, 1].map(weights);
    let tokens = [0, 2, 3];
    let kept = Array2::from_shape_fn((2, 4), |(_, t)| tokens.contains(&t));
    let between = |a: &Array4<f64>| a.select(Axis(2), &tokens).select(Axis(3), &tokens);
    let without = layers.each_ref().map(between);
    let all = Array2::from_elem((2, 3), true);
    let got = attention_rollout(&layers.each_ref().map(|layer| layer.view()), kept.view());
    let want = attention_rollout(&without.each_ref().map(|layer| layer.view()), all.view());
    let got = got.unwrap();
    assert_eq!(between(&got), want.unwrap());
    assert!(got.slice(s![.., .., 1, ..]).iter().all(|&x| x == 0.0));
    assert!(got.slice(s![.., .., .., 1]).iter().all(|&x| x == 0.0));
}
