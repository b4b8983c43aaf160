use crate::conformance::common::*;
use bochner_attention::{Copula, IkanDirect, Mask, Mikan, Stationarity, Variant};

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
