//! Mechanisms by the names of tables.

use bochner_attention::Mikan;
use bochner_attention::{Preset, Variant};
use bochner_reproduce::mechanisms::{
    EIGHT_HEADS, LINEAR_TIME, OF_OTHER_PAPERS, PRIMAL_PARAMETERS, TRANSFORMER, in_decoder,
    mechanism,
};

#[test]
fn every_name_is_that_of_its_mechanism() {
    let names = [
        "RBF-only",
        "Expsin",
        "Linear",
        "IKA-S",
        "IKA-NS",
        "IKAN",
        "IKAN-direct",
        "MIKAN",
    ];
    for name in names.into_iter().chain(OF_OTHER_PAPERS) {
        // The norm of a stationary or non-stationary kernel without one of its own is 2.
        let p = if name.starts_with("IKA-") { 2.0 } else { 3.0 };
        let variant = mechanism(name, Preset::Paper, Some(p), 8);
        assert_eq!(variant.name(), name.to_lowercase());
    }
    for (name, own) in [
        (TRANSFORMER, "softmax"),
        (EIGHT_HEADS, "softmax"),
        (PRIMAL_PARAMETERS, "primal"),
    ] {
        let variant = mechanism(name, Preset::Paper, None, 8);
        assert_eq!(variant.name(), own);
    }
    let of = |name| mechanism(name, Preset::Paper, None, 8).card().symmetry;
    assert!(of("Primal").sees_order() && !of(PRIMAL_PARAMETERS).sees_order());
}

#[test]
#[should_panic(expected = "no mechanism is called Transformer-XL")]
fn a_name_that_begins_like_another_is_refused() {
    mechanism("Transformer-XL", Preset::Paper, None, 8);
}

#[test]
fn every_mechanism_has_a_form_that_a_decoder_can_have() {
    for name in [
        "Transformer",
        "IKAN",
        "IKAN-direct",
        LINEAR_TIME,
        "MIKAN",
        "Performer",
    ] {
        let own = mechanism(name, Preset::Paper, Some(1.5), 8);
        let card = in_decoder(&own).card();
        assert!(card.causal.is_yes() && card.cross.is_yes(), "{name}");
        assert_eq!(card.name, own.card().name);
    }
    let mikan = mechanism("MIKAN", Preset::Paper, Some(1.5), 8);
    assert!(!mikan.card().causal.is_yes());
}

#[test]
fn every_step_adds_one_thing() {
    let of = |name| match mechanism(name, Preset::Paper, Some(3.0), 8) {
        Variant::Mikan(mikan) => mikan,
        other => panic!("{other:?}"),
    };
    let (s, ns, ikan, mikan) = (of("IKA-S"), of("IKA-NS"), of("IKAN"), of("MIKAN"));
    assert_ne!(s, ns);
    let stationarity = ns.stationarity;
    assert_eq!(Mikan { stationarity, ..s }, ns);
    let p = ikan.p;
    assert_eq!(Mikan { p, ..ns }, ikan);
    assert_ne!(ikan, mikan);
    let copula = mikan.copula;
    assert_eq!(Mikan { copula, ..ikan }, mikan);
}
