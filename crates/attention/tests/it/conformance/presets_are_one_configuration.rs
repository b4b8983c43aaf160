//! A preset is its settings: the name follows from them.

use bochner_attention::{Copula, Mikan, Stationarity, Variant};

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
