//! Correlations of attention.

use bochner_interpret::{Correlations, Error, ValueCovariance};
use bochner_numerics::check::{largest, random};
use ndarray::{Array2, Axis, array, s};

const WHITE: ValueCovariance<f64> = ValueCovariance::Identity;

fn of(a: &Array2<f64>) -> Result<Correlations, Error> {
    Correlations::of_attention(a.view(), WHITE)
}

fn assert_close(got: &Array2<f64>, want: &Array2<f64>) {
    let error = largest(&(got - want));
    assert!(error < 1e-12, "{error:e}");
}

#[test]
fn the_three_covariances_of_the_values_are_as_defined() {
    let a: Array2<f64> = random((4, 4), "a");
    let v: Array2<f64> = random((4, 9), "v") + 3.0;
    assert_close(&of(&a).unwrap().covariance(), &a.dot(&a.t()));

    let means = v.mean_axis(Axis(1)).unwrap().insert_axis(Axis(1));
    let centred = &v - &means;
    let of_values = centred.dot(&centred.t()) / 8.0;
    let want = a.dot(&of_values).dot(&a.t());
    for values in [
        ValueCovariance::OfValues(v.view()),
        ValueCovariance::Given(of_values.view()),
    ] {
        let got = Correlations::of_attention(a.view(), values).unwrap();
        assert_close(&got.covariance(), &want);
    }
    // Values that are not centred, the error to be made here, would be seen.
    let raw = a.dot(&(v.dot(&v.t()) / 8.0)).dot(&a.t());
    assert!((raw - want).iter().any(|x| x.abs() > 0.1));
}

#[test]
fn correlations_have_no_scale() {
    let a: Array2<f64> = random((4, 4), "a");
    let scales = array![[1e-3], [2.0], [1e9], [0.5]];
    let scaled = of(&(&a * &scales)).unwrap();
    assert_close(&scaled.correlation(), &of(&a).unwrap().correlation());
    assert!(scaled.correlation().diag().iter().all(|&r| r == 1.0));
}

#[test]
fn tokens_that_are_left_out_still_have_their_effect() {
    let a: Array2<f64> = random((5, 5), "a");
    let all = of(&a).unwrap();
    let three = all.between(&[4, 0, 2]).unwrap();
    assert!((three.covariance()[[0, 2]] - all.covariance()[[4, 2]]).abs() < 1e-14);
    assert!((three.covariance()[[1, 1]] - all.covariance()[[0, 0]]).abs() < 1e-14);
    // Attention cut down to the three tokens would be another model.
    let cut = a.select(Axis(0), &[4, 0, 2]).select(Axis(1), &[4, 0, 2]);
    let cut = of(&cut).unwrap().correlation() - three.correlation();
    assert!(cut.iter().any(|x| x.abs() > 0.1));
    assert!(matches!(
        all.between(&[0, 1, 0]),
        Err(Error::RepeatedNode { node: 0 })
    ));
    assert!(matches!(
        all.between(&[0, 1]),
        Err(Error::TooFewTokens { tokens: 2 })
    ));
    assert!(matches!(all.between(&[0, 1, 5]), Err(Error::Argument(_))));
}

#[test]
fn attention_that_says_nothing_is_refused() {
    let noise = |size: f64| 0.25 + size * random::<f64, _>((4, 4), "noise");
    let refused = of(&noise(1e-5));
    assert!(matches!(refused, Err(Error::NearlyUniform { smallest }) if smallest < 1.0));
    assert!(matches!(of(&noise(0.0)), Err(Error::NearlyUniform { .. })));
    assert!(of(&noise(1e-2)).is_ok());
    // The opposite of what all others say is the same.
    let mut opposite = noise(1e-5);
    opposite.row_mut(2).mapv_inplace(|x| -x);
    assert!(matches!(of(&opposite), Err(Error::NearlyUniform { .. })));
}

#[test]
fn rank_deficient_attention_is_refused_in_either_precision() {
    let left: Array2<f64> = random((5, 3), "left");
    let a = left.dot(&random((3, 5), "right"));
    let refused = of(&a);
    assert!(matches!(
        refused,
        Err(Error::RankDeficient {
            rank: 3,
            tokens: 5,
            ..
        })
    ));
    let single = a.mapv(|x| x as f32);
    let refused = Correlations::of_attention(single.view(), ValueCovariance::Identity);
    assert!(matches!(
        refused,
        Err(Error::RankDeficient {
            rank: 3,
            tokens: 5,
            ..
        })
    ));

    // Three columns of values leave two directions once they are centred.
    let full: Array2<f64> = random((5, 5), "full");
    let values: Array2<f64> = random((5, 3), "values");
    let values = ValueCovariance::OfValues(values.view());
    let refused = Correlations::of_attention(full.view(), values);
    assert!(matches!(
        refused,
        Err(Error::RankDeficient {
            rank: 2,
            tokens: 5,
            ..
        })
    ));
}

/// Tokens that repeat others, or that do not vary, are named, and leaving them out helps.
#[test]
fn what_the_refusals_say_can_be_done() {
    let mut a: Array2<f64> = random((6, 6), "a");
    let sum = &a.row(0) + &a.row(2) * 0.5;
    a.row_mut(3).assign(&sum);
    let copy = a.row(1).to_owned();
    a.row_mut(5).assign(&(copy * 2.0));
    let Err(Error::RankDeficient {
        rank: 4,
        tokens: 6,
        dependent,
    }) = of(&a)
    else {
        panic!("two rows depend on the others");
    };
    assert_eq!(dependent.len(), 2);
    assert!(
        dependent.contains(&5),
        "{dependent:?}: the first of two alike stays"
    );
    let others: Vec<usize> = (0..6).filter(|token| !dependent.contains(token)).collect();
    let kept = Correlations::of_tokens(a.view(), WHITE, &others).unwrap();
    let want = a
        .dot(&a.t())
        .select(Axis(0), &others)
        .select(Axis(1), &others);
    assert_close(&kept.covariance(), &want);

    // The numbers in errors are those of the attention, whatever is asked for.
    let asked = [4, 1, 0, 5, 2];
    let refused = Correlations::of_tokens(a.view(), WHITE, &asked);
    assert!(
        matches!(refused, Err(Error::RankDeficient { rank: 4, tokens: 5, dependent }) if dependent == [5])
    );
    a.row_mut(2).fill(1e-6);
    let refused = Correlations::of_tokens(a.view(), WHITE, &asked);
    assert!(matches!(refused, Err(Error::LowVariance { token: 2, .. })));
    // A row that is left out is not looked at.
    a.row_mut(2).fill(f64::NAN);
    let kept = Correlations::of_tokens(a.view(), WHITE, &[4, 1, 0]).unwrap();
    assert_close(
        &kept.covariance(),
        &want.select(Axis(0), &[3, 1, 0]).select(Axis(1), &[3, 1, 0]),
    );
    let refused = Correlations::of_tokens(a.view(), WHITE, &asked).unwrap_err();
    assert!(
        refused.to_string().starts_with("`a` is NaN at [2, 0]"),
        "{refused}"
    );
}

#[test]
fn some_of_the_tokens_are_the_same_before_and_after() {
    let a: Array2<f64> = random((5, 5), "a");
    let values: Array2<f64> = random((5, 30), "v");
    for values in [
        ValueCovariance::Identity,
        ValueCovariance::OfValues(values.view()),
    ] {
        let all = Correlations::of_attention(a.view(), values).unwrap();
        let after = all.between(&[4, 0, 2]).unwrap();
        let before = Correlations::of_tokens(a.view(), values, &[4, 0, 2]).unwrap();
        assert_close(&before.covariance(), &after.covariance());
        let partial = |of: &Correlations| of.partial(0, 1, &[2]).unwrap();
        assert!((partial(&before) - partial(&after)).abs() < 1e-12);
        assert_eq!(before.samples(), after.samples());
    }
}

/// Three tokens that look at the others alike, among others that do not.
#[test]
fn uniform_tokens_among_others_are_refused_by_themselves() {
    let mut a: Array2<f64> = random((6, 6), "a");
    for token in [1, 2, 4] {
        let row = 0.2 + 1e-5 * random::<f64, _>((6,), &format!("{token}"));
        a.row_mut(token).assign(&row);
    }
    let all = of(&a).unwrap();
    for refused in [
        all.between(&[4, 1, 2]),
        Correlations::of_tokens(a.view(), WHITE, &[4, 1, 2]),
    ] {
        assert!(matches!(refused, Err(Error::NearlyUniform { smallest }) if smallest < 1.0));
    }
    assert!(all.between(&[4, 1, 0]).is_ok());
}

#[test]
fn values_have_no_unit() {
    let a: Array2<f64> = random((4, 4), "a");
    let values: Array2<f64> = random((4, 9), "values");
    let of = |scale: f64| {
        let values = scale * &values;
        let of_values = ValueCovariance::OfValues(values.view());
        Correlations::of_attention(a.view(), of_values).map(|of| of.correlation())
    };
    for scale in [1e-20, 1e20] {
        assert_close(&of(scale).unwrap(), &of(1.0).unwrap());
    }
    assert!(matches!(of(0.0), Err(Error::LowVariance { token: 0, .. })));
}

#[test]
fn bad_input_has_typed_errors() {
    let a: Array2<f64> = random((4, 4), "a");
    let two = a.slice(s![..2, ..2]).to_owned();
    assert!(matches!(of(&two), Err(Error::TooFewTokens { tokens: 2 })));
    assert!(matches!(
        of(&Array2::zeros((0, 0))),
        Err(Error::TooFewTokens { tokens: 0 })
    ));
    let oblong = a.slice(s![.., ..3]).to_owned();
    assert!(matches!(of(&oblong), Err(Error::Argument(_))));
    for wrong in [f64::NAN, f64::INFINITY] {
        let mut broken = a.clone();
        broken[[1, 2]] = wrong;
        assert!(matches!(of(&broken), Err(Error::Argument(_))));
    }
    let mut silent = a.clone();
    silent.row_mut(2).fill(1e-5);
    assert!(matches!(
        of(&silent),
        Err(Error::LowVariance { token: 2, .. })
    ));
    let huge = 1e200 * &a;
    assert!(matches!(of(&huge), Err(Error::Argument(_))));

    let of_values = |values: &Array2<f64>| {
        Correlations::of_attention(a.view(), ValueCovariance::OfValues(values.view()))
    };
    for samples in [0, 1] {
        let refused = of_values(&Array2::zeros((4, samples)));
        assert!(matches!(
            refused,
            Err(Error::TooFewSamples { least: 2, .. })
        ));
    }
    let short: Array2<f64> = random((3, 9), "values");
    assert!(matches!(of_values(&short), Err(Error::Argument(_))));
    let given = |covariance: Array2<f64>| {
        Correlations::of_attention(a.view(), ValueCovariance::Given(covariance.view()))
    };
    let indefinite = Array2::from_diag(&array![1.0, 1.0, -1.0, 1.0]);
    assert!(matches!(given(indefinite), Err(Error::Dense(_))));
    let skew = array![
        [1.0, 0.5, 0.0, 0.0],
        [0.4, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0]
    ];
    assert!(matches!(given(skew), Err(Error::Dense(_))));
    assert!(matches!(given(Array2::eye(3)), Err(Error::Argument(_))));
}
