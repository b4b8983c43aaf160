//! Tests of independence by correlations.

use bochner_interpret::{
    Correlations, Error, FisherTest, FisherZ, Independence, ValueCovariance, ZeroCorrelation,
};
use ndarray::array;

#[test]
fn more_samples_see_weaker_dependence() {
    let a = array![[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let of = Correlations::of_attention(a.view(), ValueCovariance::Identity).unwrap();
    let asked = |samples| FisherZ::new(&of, samples, 0.01).unwrap();
    assert!(asked(64).independent(0, 1, &[]).unwrap());
    assert!(!asked(640).independent(0, 1, &[]).unwrap());
    assert!(asked(640).independent(0, 2, &[1]).unwrap());
    let exact = ZeroCorrelation::new(&of, 1e-9).unwrap();
    assert!(!exact.independent(0, 1, &[]).unwrap() && exact.independent(1, 2, &[0]).unwrap());
}

#[test]
fn settings_outside_their_ranges_are_refused() {
    let a = array![[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let of = Correlations::of_attention(a.view(), ValueCovariance::Identity).unwrap();
    for wrong in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(matches!(
            FisherZ::new(&of, 64, wrong),
            Err(Error::Argument(_))
        ));
        assert!(matches!(
            ZeroCorrelation::new(&of, wrong),
            Err(Error::Argument(_))
        ));
    }
    for samples in [0, 3] {
        let refused = FisherZ::new(&of, samples, 0.05);
        assert!(matches!(refused, Err(Error::TooFewSamples { .. })));
    }
    let four = FisherZ::new(&of, 4, 0.05).unwrap();
    let refused = four.independent(0, 1, &[2]);
    assert!(matches!(
        refused,
        Err(Error::TooFewSamples {
            samples: 4,
            least: 5
        })
    ));
}

#[test]
fn at_the_level_itself_nodes_count_as_dependent() {
    let a = array![[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let of = Correlations::of_attention(a.view(), ValueCovariance::Identity).unwrap();
    let r = of.partial(0, 1, &[]).unwrap();
    let p = FisherTest::new(r, 64, 0).unwrap().p_value;
    let asked = |level| FisherZ::new(&of, 64, level).unwrap().independent(0, 1, &[]);
    assert!(!asked(p).unwrap() && asked(p * (1.0 - 1e-12)).unwrap());
    let exact = |zero| {
        ZeroCorrelation::new(&of, zero)
            .unwrap()
            .independent(0, 1, &[])
    };
    assert!(!exact(r).unwrap() && exact(r * (1.0 + 1e-12)).unwrap());
}
