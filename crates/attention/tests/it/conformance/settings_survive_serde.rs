use bochner_attention::conformance::Conformance;
use bochner_attention::{Blocks, Expsin, Form, IkanDirect, Mask, Mikan, Variant};
use ndarray::Array2;

#[test]
fn variants() {
    for variant in Variant::examples() {
        let text = serde_json::to_string(&variant).unwrap();
        let back: Variant = serde_json::from_str(&text).unwrap();
        assert_eq!(back, variant, "{text}");
    }
    assert!(serde_json::from_str::<Variant>(r#"{"mechanism":"Nothing"}"#).is_err());
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
    let one: Variant = serde_json::from_str(r#"{"mechanism":"IkanDirect","points":3}"#).unwrap();
    let want = IkanDirect {
        points: 3,
        ..IkanDirect::default()
    };
    assert_eq!(one, want.into());
    for text in [
        r#"{"mechanism":"IkanDirect","point":3}"#,
        r#"{"mechanism":"Softmax","p":1.0}"#,
    ] {
        assert!(serde_json::from_str::<Variant>(text).is_err(), "{text}");
    }
}

#[test]
fn masks() {
    for (_, mask) in crate::conformance::common::masks(3, 4) {
        let text = serde_json::to_string(&mask).unwrap();
        assert_eq!(serde_json::from_str::<Mask>(&text).unwrap(), mask);
    }
    let mask = Mask::none()
        .with_query_lengths(vec![2])
        .with_matrix(Array2::from_elem((1, 1), true).view());
    let text = serde_json::to_string(&mask).unwrap();
    assert_eq!(serde_json::from_str::<Mask>(&text).unwrap(), mask);
}

#[test]
fn forms() {
    for (form, text) in [
        (Form::Automatic, r#""automatic""#),
        (Form::Quadratic, r#""quadratic""#),
        (Form::LinearTime, r#""linear_time""#),
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
