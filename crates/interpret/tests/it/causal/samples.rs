//! Correlations of samples.

use bochner_interpret::{
    CausalStructure, Correlations, Error, FisherTest, FisherZ, Independence, ValueCovariance,
};
use bochner_numerics::check::{largest, random};
use ndarray::{Array2, Axis, array, s};

fn of(x: &Array2<f64>) -> Result<Correlations, Error> {
    Correlations::of_samples(x.view())
}

#[test]
fn samples_have_the_covariance_of_the_books() {
    let x: Array2<f64> = random((4, 9), "x") + 3.0;
    let got = of(&x).unwrap();
    let means = x.mean_axis(Axis(1)).unwrap().insert_axis(Axis(1));
    let centred = &x - &means;
    let want = centred.dot(&centred.t()) / 8.0;
    assert!(largest(&(got.covariance() - &want)) < 1e-14);
    // A divisor of n, the error to be made here, would be seen.
    assert!(largest(&(got.covariance() - want * 8.0 / 9.0)) > 1e-2);
    assert_eq!(got.samples(), Some(9));
    // Attention that passes every value on is the longer way to these numbers.
    let eye = Array2::eye(4);
    let values = ValueCovariance::OfValues(x.view());
    let attended = Correlations::of_attention(eye.view(), values).unwrap();
    assert!(largest(&(attended.covariance() - got.covariance())) < 1e-14);
    assert_eq!(attended.samples(), Some(9));
    let white =
        Correlations::of_attention(random((4, 4), "a").view(), ValueCovariance::<f64>::Identity);
    assert_eq!(white.unwrap().samples(), None);
}

#[test]
fn units_change_no_correlation() {
    let x: Array2<f64> = random((3, 20), "x");
    let want = of(&x).unwrap().correlation();
    let units = array![[1e-30], [1.0], [1e20]];
    let got = of(&(&x * &units)).unwrap().correlation();
    assert!(largest(&(got - &want)) < 1e-13);
    // Seen from far away, the numbers have fewer digits left.
    let got = of(&(&x + 1e8)).unwrap().correlation();
    assert!(largest(&(got - want)) < 1e-6);
}

#[test]
fn samples_that_say_nothing_have_typed_errors() {
    let x: Array2<f64> = random((4, 9), "x");
    for samples in [0, 1] {
        let refused = of(&x.slice(s![.., ..samples]).to_owned());
        assert!(matches!(
            refused,
            Err(Error::TooFewSamples { least: 2, .. })
        ));
    }
    let refused = of(&x.slice(s![..2, ..]).to_owned());
    assert!(matches!(refused, Err(Error::TooFewTokens { tokens: 2 })));
    let refused = of(&x.slice(s![.., ..4]).to_owned());
    assert!(matches!(
        refused,
        Err(Error::FewerSamplesThanVariables {
            variables: 4,
            samples: 4
        })
    ));
    // In binary the mean of many numbers 0.1 is another number.
    let many: Array2<f64> = random((4, 9_999), "x");
    for (x, constant) in [(&x, 0.0), (&x, -7e9), (&many, 0.1)] {
        let mut flat = x.clone();
        flat.row_mut(2).fill(constant);
        let refused = of(&flat);
        assert!(
            matches!(refused, Err(Error::LowVariance { token: 2, .. })),
            "{constant}"
        );
    }
    let mut nearly = x.mapv(|x| x as f32);
    nearly.row_mut(2).fill(0.1);
    nearly[[2, 5]] = 0.1_f32.next_up();
    let refused = Correlations::of_samples(nearly.view());
    assert!(matches!(refused, Err(Error::LowVariance { token: 2, .. })));
    for wrong in [f64::NAN, f64::INFINITY] {
        let mut broken = x.clone();
        broken[[1, 2]] = wrong;
        let error = of(&broken).unwrap_err().to_string();
        assert!(
            error.starts_with("`x` is ") && error.contains("at [1, 2]"),
            "{error}"
        );
    }
}

/// A table with a row for each sample is refused at once, in a few words that say what to do.
#[test]
fn samples_given_as_rows_are_recognised() {
    let table: Array2<f64> = random((10_000, 5), "x");
    let error = of(&table).unwrap_err();
    assert!(matches!(
        error,
        Error::FewerSamplesThanVariables {
            variables: 10_000,
            samples: 5
        }
    ));
    let message = error.to_string();
    assert!(message.contains("give the transpose"), "{message}");
    assert!(message.len() < 300, "{message}");
    assert!(of(&table.reversed_axes()).is_ok());
}

/// Variables that repeat others are named, a few of many, and not taken for uniform attention.
#[test]
fn exact_multiples_are_named() {
    let one: Array2<f64> = random((1, 60), "x");
    let multiples = |count: usize| {
        let factors = Array2::from_shape_fn((count, 1), |(i, _)| (i + 1) as f64);
        of(&factors.dot(&one)).unwrap_err()
    };
    let Error::RankDeficient { dependent, .. } = multiples(3) else {
        panic!("of full rank")
    };
    assert_eq!(dependent, [1, 2]);
    let message = multiples(40).to_string();
    assert!(message.contains("and 31 others repeat"), "{message}");
    assert!(!message.contains("uniform"), "{message}");
}

#[test]
fn the_test_of_samples_knows_how_many_there_are() {
    let x: Array2<f64> = random((3, 12), "x");
    let correlations = of(&x).unwrap();
    let own = FisherZ::of_samples(&correlations, 0.05).unwrap();
    let given = FisherZ::new(&correlations, 12, 0.05).unwrap();
    for pair in [[0, 1], [0, 2], [1, 2]] {
        let [i, j] = pair;
        assert_eq!(
            own.independent(i, j, &[]).unwrap(),
            given.independent(i, j, &[]).unwrap()
        );
    }
    assert!(CausalStructure::find(&own, None).is_ok());
    // Samples that hang together count for fewer, but none for more.
    assert!(FisherZ::new(&correlations, 6, 0.05).is_ok());
    let error = FisherZ::new(&correlations, 13, 0.05).unwrap_err();
    assert!(matches!(error, Error::Argument(_)));
    assert_eq!(
        error.to_string(),
        "`samples` is 13, but must be at most 12, the samples there are"
    );
    let white =
        Correlations::of_attention(random((3, 3), "a").view(), ValueCovariance::<f64>::Identity);
    let refused = FisherZ::of_samples(&white.unwrap(), 0.05).unwrap_err();
    assert!(matches!(refused, Error::NoSamples));
    // A smaller `largest` is no remedy where two nodes alone are too many for the samples.
    let error = |samples, given| {
        FisherTest::new(0.5, samples, given)
            .unwrap_err()
            .to_string()
    };
    assert!(!error(0, 0).contains("`largest`") && error(5, 2).contains("`largest`"));
}
