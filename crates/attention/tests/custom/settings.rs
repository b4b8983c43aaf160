//! Settings are read as they are written, and names that cannot be are refused.

use super::mechanisms::{Decay, RationalQuadratic, Sink, SoftCap};
use super::{register_all, variants};
use bochner_attention::engine::conformance::{agree, check};
use bochner_attention::engine::{Kind, Number, Pair, Raw, Score, numerics::Real};
use bochner_attention::mechanism::{CustomMechanism, Pass, ScoreMechanism, Streams, trial};
use bochner_attention::{
    Bias, Cat, Error, Mask, Settings, Softmax, Variant, find, register, registry,
};
use bochner_numerics::{DropoutMask, Seed};
use ndarray::Array4;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Named<const N: usize>;

impl<const N: usize> Score for Named<N> {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn parameters(&self) -> usize {
        if N == NINE { 9 } else { 0 }
    }

    fn score<V: Number>(&self, raw: V, _: Pair<V>, _: &[V]) -> V {
        raw
    }
}

/// The number of the name whose score learns too many numbers.
const NINE: usize = 4;

impl<const N: usize> ScoreMechanism for Named<N> {
    const NAME: &'static str = ["named", "/named", "test/", "test/soft-cap", "test/nine"][N];
}

#[test]
fn nine_learnt_numbers_are_refused_before_a_pass() {
    let error = trial::<f64>(&Named::<NINE>.into()).err().unwrap();
    assert!(
        error.to_string().contains("at most 8 numbers a head"),
        "{error}"
    );
}

#[test]
fn are_read_as_they_are_written() {
    register_all().unwrap();
    for variant in variants() {
        let text = serde_json::to_string(&variant).unwrap();
        assert_eq!(
            serde_json::from_str::<Variant>(&text).unwrap(),
            variant,
            "{text}"
        );
        let value = serde_json::to_value(&variant).unwrap();
        assert_eq!(
            serde_json::from_value::<Variant>(value).unwrap(),
            variant,
            "{text}"
        );
        let other = serde_json::to_string(&Variant::from(Softmax::default())).unwrap();
        assert_ne!(serde_json::from_str::<Variant>(&other).unwrap(), variant);
    }
    let capped = Variant::from(SoftCap { cap: 1.5 });
    let text = r#"{"test/soft-cap":{"cap":1.5}}"#;
    assert_eq!(serde_json::to_string(&capped).unwrap(), text);
    assert_ne!(capped, SoftCap { cap: 2.5 }.into());
    let Variant::Custom(settings) = capped else {
        panic!("a mechanism of another crate");
    };
    assert_eq!(settings.downcast_ref(), Some(&SoftCap { cap: 1.5 }));
    assert_eq!(settings.downcast_ref::<RationalQuadratic>(), None);
}

#[test]
fn are_checked_when_they_are_read() {
    register_all().unwrap();
    for (what, text) in [
        ("cap", r#"{"test/soft-cap":{"cap":0.0}}"#),
        ("cup", r#"{"test/soft-cap":{"cup":1.0}}"#),
        ("beside", r#"{"test/soft-cap":{},"cap":1.0}"#),
        ("wide", r#"{"test/soft-cap":{"cap":"wide"}}"#),
    ] {
        let error = serde_json::from_str::<Variant>(text)
            .unwrap_err()
            .to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn an_unknown_name_lists_those_there_are() {
    register_all().unwrap();
    let all = variants();
    let custom: Vec<_> = all.iter().map(Variant::name).collect();
    for (text, known) in [
        (r#"{"test/nothing":{}}"#, &custom[..]),
        (r#"{"mechanism":"nothing"}"#, &[]),
        (r#"{"mechanism":"test/nothing"}"#, &custom[..]),
    ] {
        let error = serde_json::from_str::<Variant>(text)
            .unwrap_err()
            .to_string();
        let known = known.iter().chain(&["softmax", "performer"]);
        known.for_each(|name| assert!(error.contains(name), "{name} in {error}"));
    }
    // A name of another crate behind `mechanism` is told its own form.
    let error = serde_json::from_str::<Variant>(r#"{"mechanism":"test/soft-cap"}"#);
    let error = error.unwrap_err().to_string();
    assert!(error.contains(r#"{"test/soft-cap": {}}"#), "{error}");
}

#[test]
fn names_are_found_after_registration() {
    register_all().unwrap();
    for variant in variants() {
        let found = find(variant.name()).unwrap();
        assert_eq!(found.name(), variant.name());
        assert!(registry().contains(&found));
    }
    assert_eq!(find("test/soft-cap"), Some(SoftCap::default().into()));
}

#[test]
fn names_that_cannot_be_are_refused() {
    register_all().unwrap();
    fn refused<M: CustomMechanism>() -> Error {
        register::<M>().unwrap_err()
    }
    for error in [
        refused::<Named<0>>(),
        refused::<Named<1>>(),
        refused::<Named<2>>(),
    ] {
        assert!(matches!(error, Error::MechanismName { .. }), "{error}");
    }
    let error = refused::<Named<3>>();
    assert!(
        matches!(
            error,
            Error::RegisteredTwice {
                name: "test/soft-cap"
            }
        ),
        "{error}"
    );
    // Registering a type a second time is no error.
    register::<SoftCap>().unwrap();
    assert_eq!(find("test/soft-cap"), Some(SoftCap::default().into()));
}

/// Settings with what belongs to a call: a mask, dropout, a bias.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Overruling(usize);

impl Score for Overruling {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn score<V: Number>(&self, raw: V, _: Pair<V>, _: &[V]) -> V {
        raw
    }
}

impl ScoreMechanism for Overruling {
    const NAME: &'static str = "test/overruling";

    fn with_settings<T: Real>(&self, mut settings: Settings<T>) -> Settings<T> {
        match self.0 {
            0 => settings.mask = Mask::causal(),
            1 => settings.dropout = DropoutMask::new(0.5, Seed::new(1)).ok(),
            _ => settings.bias = Some(Bias::alibi()),
        }
        settings
    }
}

#[test]
fn what_comes_with_a_call_is_not_overruled() {
    let (x, bias, mask) = (Array4::ones((1, 2, 3, 4)), Bias::alibi(), Mask::none());
    let inputs = Streams::new([x.view(), x.view(), x.view()], &mask);
    for (n, bias) in [(0, None), (1, None), (2, Some(&bias))] {
        let variant = Variant::from(Overruling(n));
        let forward = |bias| {
            let mechanism = variant.mechanism::<f64>();
            mechanism.forward(&inputs.with_bias(bias), &[], &Pass::evaluation())
        };
        let error = forward(bias).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        // A bias without another one is fine.
        assert_eq!(forward(None).is_ok(), n == 2);
    }
}

#[test]
fn mechanisms_keep_the_promises_of_the_engine() {
    // One of each kind: the engine's own tests have the kernels of the others.
    for variant in [RationalQuadratic {}.into(), Sink {}.into(), Decay {}.into()] {
        let trials = (
            trial::<f64>(&variant).unwrap(),
            trial::<f32>(&variant).unwrap(),
        );
        let result = check(&trials.0).and_then(|()| agree(&trials.0, &trials.1));
        result.unwrap_or_else(|failure| panic!("{variant:?}: {failure}"));
    }
    let error = trial::<f64>(&Cat::default().into()).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}
