//! Every type that is written down reads back as it was, with defaults for what is left out, and refuses
//! what its constructor refuses.

use crate::layer::setting::{graph, kinds, with_everything};
use bochner_graph::{
    Bias, EdgeKernel, FanOut, Graph, GraphAttentionConfig, GraphConvolutionConfig, Merge, Residual,
};
use bochner_ops::Activation;
use bochner_spectral::{Direct, Implicit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(written: &T) {
    let text = serde_json::to_string(written).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), written);
}

fn refused<T: DeserializeOwned + Debug>(text: &str, start: &str) {
    let error = serde_json::from_str::<T>(text).unwrap_err().to_string();
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn of_graphs() {
    survives(&graph());
    let bipartite = Graph::bipartite(2, 3, [(2, 0), (0, 1), (2, 0)]).unwrap();
    let text = serde_json::to_string(&bipartite).unwrap();
    assert_eq!(
        text,
        r#"{"targets":2,"sources":3,"edges":[[2,0],[0,1],[2,0]]}"#
    );
    refused::<Graph>(&text.replace("[0,1]", "[3,1]"), "edge 1 has source 3");
    refused::<Graph>(r#"{"targets": 2}"#, "missing field `sources`");
}

#[test]
fn of_attention() {
    for config in kinds() {
        survives(&with_everything(config));
    }
    let few = r#"{"inputs": 3, "heads": 2, "width": 4, "kind": "classic"}"#;
    let read = |text: &str| serde_json::from_str::<GraphAttentionConfig>(text).unwrap();
    assert_eq!(read(few), GraphAttentionConfig::gat(3, 2, 4));
    let more = few.replace('}', r#", "activation": "elu"}"#);
    assert_eq!(read(&more).activation, Activation::Elu);
    for (right, wrong, start) in [
        ("\"inputs\": 3", "\"inputs\": 0", "`inputs` is 0"),
        ("\"heads\": 2", "\"heads\": 0", "`heads` is 0"),
        ("\"width\": 4", "\"width\": 0", "`width` is 0"),
        (
            "\"width\": 4",
            "\"width\": 9223372036854775808",
            "`elements of the largest weight` is 5",
        ),
        ("}", ", \"source-inputs\": 0}", "`source_inputs` is 0"),
        ("}", ", \"slope\": 1.5}", "`slope` is 1.5"),
        ("}", ", \"input-dropout\": 1}", "`input_dropout` is 1"),
        ("}", ", \"value-dropout\": -0.1}", "`value_dropout` is -0.1"),
        (
            "}",
            ", \"coefficient-dropout\": 2}",
            "`coefficient_dropout` is 2",
        ),
        ("}", ", \"weight\": 2}", "unknown field `weight`"),
    ] {
        refused::<GraphAttentionConfig>(&few.replace(right, wrong), start);
    }
}

#[test]
fn of_kernels() {
    let read = |text: &str| serde_json::from_str::<EdgeKernel>(text).unwrap();
    assert_eq!(
        read(r#"{"mechanism": "ikan-direct"}"#),
        Direct::default().into()
    );
    assert_eq!(
        read(r#"{"mechanism": "mikan"}"#),
        Implicit::default().into()
    );
    let text = r#"{"mechanism": "mikan", "p": 1.5, "points": 8, "copula": "free", "beta": 0.3}"#;
    for kernel in [EdgeKernel::Softmax, EdgeKernel::RbfOnly, read(text)] {
        survives(&kernel);
    }
    for without in [EdgeKernel::Softmax, EdgeKernel::RbfOnly] {
        let error = without.with_p(1.5).unwrap_err().to_string();
        assert!(error.contains("spectral points"), "{error}");
    }
    assert!(EdgeKernel::from(Direct::default()).with_p(-1.0).is_err());
    for (mechanism, setting, start) in [
        ("ikan-direct", r#""p": -1"#, "`p` is -1"),
        ("ikan-direct", r#""floor": 2"#, "`floor` is 2"),
        ("ikan-direct", r#""points": 0"#, "`points` is 0"),
        (
            "ikan-direct",
            r#""preset": "released""#,
            "the released preset along",
        ),
        ("ikan-direct", r#""draws": 2"#, "unknown field `draws`"),
        ("softmax", r#""p": 2"#, "unknown field `p`"),
        ("rbf-only", r#""floor": 0.1"#, "unknown field `floor`"),
        ("mikan", r#""beta": -0.1"#, "`beta` is -0.1"),
        ("mikan", r#""prior-std": 0"#, "`prior_std` is 0"),
        (
            "mikan",
            r#""preset": "released""#,
            "the released preset along",
        ),
        (
            "mikan",
            r#""posterior": "unconditional""#,
            "an amortised copula with",
        ),
    ] {
        let text = format!(r#"{{"mechanism": "{mechanism}", {setting}}}"#);
        refused::<EdgeKernel>(&text, start);
    }
}

#[test]
fn of_convolutions() {
    let text = r#"{"inputs": 5, "outputs": 3, "input-dropout": 0.4, "bias": "none"}"#;
    survives(&serde_json::from_str::<GraphConvolutionConfig>(text).unwrap());
    for (right, wrong, start) in [
        ("5", "0", "`inputs` is 0"),
        ("3", "0", "`outputs` is 0"),
        ("0.4", "1", "`input_dropout` is 1"),
    ] {
        refused::<GraphConvolutionConfig>(&text.replace(right, wrong), start);
    }
}

/// Lists of names have nothing to check.
#[test]
fn of_names() {
    [Merge::Concatenate, Merge::Average]
        .iter()
        .for_each(survives);
    [Bias::Learned, Bias::None].iter().for_each(survives);
    [Residual::None, Residual::Added].iter().for_each(survives);
    [FanOut::All, FanOut::AtMost(3)].iter().for_each(survives);
}
