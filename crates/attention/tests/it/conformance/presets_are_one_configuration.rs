use crate::conformance::common::*;
use bochner_attention::{Copula, IkanDirect, Mask, Mikan, Pass, Posterior, Stationarity, Variant};
use bochner_numerics::Seed;

fn output(mikan: Mikan, seed: u64) -> ndarray::Array4<f64> {
    let case = Case::<f64>::of(Mikan { points: 4, ..mikan }.into());
    let seed = Seed::new(seed);
    case.output(
        &Example::new(5, 6),
        &Mask::none(),
        &Pass::Evaluation { seed },
    )
}

#[test]
fn a_name_is_what_the_settings_make_of_it() {
    let p = |p, mikan| Mikan { p, ..mikan };
    let copula = Copula::Independent;
    let stationarity = Stationarity::Stationary;
    for (name, mikan) in [
        ("ika-s", Mikan::ika_s()),
        ("ika-ns", Mikan::ika_ns()),
        ("ikan", p(1.8, Mikan::ika_ns())),
        ("ikan", p(1.8, Mikan::ika_s())),
        ("ika-ns", p(2.0, Mikan::ikan())),
        (
            "mikan",
            Mikan {
                stationarity,
                ..Mikan::default()
            },
        ),
        (
            "ika-ns",
            Mikan {
                copula,
                ..Mikan::default()
            },
        ),
    ] {
        assert_eq!(Variant::from(mikan).name(), name);
    }
}

/// Two sets of points that coincide are one: the second network adds nothing.
#[test]
fn equal_networks_make_the_kernel_stationary() {
    let case = |mikan| Case::<f64>::of(Mikan { points: 4, ..mikan }.into());
    let (stationary, mut two) = (case(Mikan::ika_s()), case(Mikan::ika_ns()));
    two.parameters.clone_from(&stationary.parameters);
    let specs = stationary.mechanism().parameters(size());
    let density = specs
        .iter()
        .filter(|spec| spec.name.starts_with("density1"));
    let count: usize = density.map(|spec| spec.count()).sum();
    let own = two.parameters.len() - count..;
    two.parameters.extend_from_within(own);
    let (example, mask) = (Example::new(5, 6), Mask::none());
    assert_close(
        &two.output(&example, &mask, &EVALUATION),
        &stationary.output(&example, &mask, &EVALUATION),
        "w1 = w2",
    );
}

/// Points that are parameters are one set of a stationary kernel, and two sets of another.
#[test]
fn equal_points_make_the_kernel_stationary() {
    let case = |stationarity| {
        let direct = IkanDirect {
            points: 4,
            stationarity,
            ..IkanDirect::default()
        };
        Case::<f64>::of(direct.into())
    };
    let stationary = case(Stationarity::Stationary);
    let mut two = case(Stationarity::Nonstationary);
    two.parameters = stationary.parameters.repeat(2);
    let (example, mask) = (Example::new(5, 6), Mask::none());
    assert_close(
        &two.output(&example, &mask, &EVALUATION),
        &stationary.output(&example, &mask, &EVALUATION),
        "w1 = w2",
    );
}

#[test]
fn only_evaluation_averages_over_draws() {
    let (example, mask) = (Example::new(5, 6), Mask::none());
    let output = |draws, pass: &Pass| {
        let mikan = Mikan {
            points: 4,
            draws,
            ..Mikan::ikan()
        };
        Case::<f64>::of(mikan.into()).output(&example, &mask, pass)
    };
    assert_eq!(output(3, &TRAINING), output(1, &TRAINING));
    assert_ne!(output(3, &EVALUATION), output(1, &EVALUATION));
}

/// The spread over seeds falls as the root of the number of draws.
#[test]
fn more_draws_lie_closer_together() {
    for posterior in [Posterior::Inferred, Posterior::Unconditional] {
        let of = |draws| Mikan {
            posterior,
            draws,
            ..Mikan::ikan()
        };
        let spread = |draws| {
            let pairs = (0..20).map(|seed| {
                let apart = output(of(draws), 2 * seed) - output(of(draws), 2 * seed + 1);
                apart.mapv(|x| x * x).sum()
            });
            pairs.sum::<f64>().sqrt()
        };
        let ratio = spread(1) / spread(64);
        assert!((5.0..13.0).contains(&ratio), "{posterior:?}: {ratio}");
    }
}
