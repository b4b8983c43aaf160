//! Attention is computed in every form that it has.

use crate::case::Case;
use crate::case_file::CaseFile;
use crate::cases;
use bochner_numerics::Real;
use std::fs;
use std::path::Path;

/// Outputs of the mechanism itself, in each form, and of a decoder in each form.
#[test]
fn attention_is_computed_in_every_form() {
    for (name, double, single) in [
        ("attention-softmax-matrix", 1 + 2, 1 + 2),
        ("attention-softmax-causal", 1 + 2 + 2, 1 + 2 + 2),
        ("attention-ikan-p1-lengths", 3, 2),
        ("attention-ikan-stationary-causal", 3 + 3, 2 + 2),
        ("attention-performer-positive-matrix", 2, 2),
        ("attention-performer-positive-causal", 3 + 3, 3 + 3),
        ("quadratic_vs_linear-nonstationary-lengths", 2, 2),
        ("quadratic_vs_linear-stationary-causal-decode", 2 + 2, 2 + 2),
    ] {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
        let bytes = fs::read(cases.join(name).with_extension("safetensors")).unwrap();
        let file = CaseFile::parse(&bytes).unwrap();
        let kind = cases::find(&file).unwrap().unwrap();
        assert_eq!(ways(&file, kind.double), double, "{name}");
        assert_eq!(ways(&file, kind.single), single, "{name}");
    }
}

/// The number of ways in which the output was computed.
fn ways<T: Real>(file: &CaseFile, compute: cases::Function<T>) -> usize {
    let case = Case::new(file);
    assert!(compute(&case).is_ok());
    case.ways("output")
}
