use crate::conformance::examples::{REFUSED, examples};
use bochner_attention::{Expsin, Form, IkanDirect, Mikan, Variant, engine::Blocks, registry};
use serde::de::DeserializeOwned;

#[test]
fn variants() {
    for variant in examples() {
        let text = serde_json::to_string(&variant).unwrap();
        let back: Variant = serde_json::from_str(&text).unwrap();
        assert_eq!(back, variant, "{text}");
    }
    assert!(serde_json::from_str::<Variant>(r#"{"mechanism":"Nothing"}"#).is_err());
}

/// A preset is its type under other settings: read by its name alone, it would be another mechanism.
#[test]
fn the_name_is_that_of_the_default_in_the_registry() {
    for variant in registry() {
        let name = variant.name();
        let written = serde_json::to_value(&variant).unwrap();
        let is_default = written["mechanism"] == name;
        let read = serde_json::from_str(&format!(r#"{{"mechanism":"{name}"}}"#));
        assert_eq!(read.ok(), is_default.then_some(variant), "{name}");
    }
}

/// A field that is left out has its default, one that is misspelt is refused.
#[test]
fn fields_may_be_left_out_but_not_invented() {
    for default in [
        Variant::from(Mikan::default()),
        IkanDirect::default().into(),
        Expsin::default().into(),
    ] {
        let mut value = serde_json::to_value(&default).unwrap();
        let fields = value.as_object_mut().unwrap();
        fields.retain(|name, _| name == "mechanism");
        let text = value.to_string();
        assert_eq!(
            serde_json::from_str::<Variant>(&text).unwrap(),
            default,
            "{text}"
        );
    }
    let one: Variant = serde_json::from_str(r#"{"mechanism":"ikan-direct","points":3}"#).unwrap();
    let want = IkanDirect {
        points: 3,
        ..IkanDirect::default()
    };
    assert_eq!(one, want.into());
    for text in [
        r#"{"mechanism":"ikan-direct","point":3}"#,
        r#"{"mechanism":"softmax","p":1.0}"#,
    ] {
        assert!(serde_json::from_str::<Variant>(text).is_err(), "{text}");
    }
}

/// Asserts that a text is refused with a message that names what is wrong with it.
pub(crate) fn is_refused<S: DeserializeOwned>(what: &str, text: &str) {
    let error = serde_json::from_str::<S>(text)
        .err()
        .unwrap_or_else(|| panic!("{text} is taken"))
        .to_string();
    // JSON has no numbers that are not finite.
    let has_none = error.contains("null, expected f64");
    assert!(has_none || error.contains(what), "{text}: {error}");
}

#[test]
fn what_a_mechanism_refuses_cannot_be_read() {
    for (what, fields) in REFUSED {
        is_refused::<Variant>(what, &format!("{{{fields}}}"));
    }
    is_refused::<IkanDirect>("floor", r#"{"floor":2.0}"#);
    is_refused::<Blocks>("keys of a block", r#"{"queries":1,"keys":0}"#);
}

#[test]
fn forms() {
    for (form, text) in [
        (Form::Automatic, r#""automatic""#),
        (Form::Pairwise, r#""pairwise""#),
        (Form::LinearTime, r#""linear-time""#),
        (
            Form::Blocked(Blocks {
                queries: 64,
                keys: 256,
            }),
            r#"{"blocked":{"queries":64,"keys":256}}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&form).unwrap(), text);
        assert_eq!(serde_json::from_str::<Form>(text).unwrap(), form);
    }
}
