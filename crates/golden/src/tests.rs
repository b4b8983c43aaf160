//! Small cases written here, right and wrong: whatever is wrong with a file has to be found.

mod forms;
mod ranks;

use super::*;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::collections::{BTreeMap, HashMap};

/// A case to be written.
#[derive(Clone)]
struct Draft {
    metadata: BTreeMap<&'static str, String>,
    tensors: BTreeMap<&'static str, (Vec<usize>, Vec<f64>)>,
}

impl Draft {
    fn new(case: &str) -> Self {
        let metadata = [
            ("format", "bochner-golden-1"),
            ("case", case),
            ("name", "case"),
            ("f32", "yes"),
        ];
        Self {
            metadata: metadata.map(|(key, word)| (key, word.to_owned())).into(),
            tensors: BTreeMap::new(),
        }
    }

    /// `|(3, -4)|_1^2 / (2 sqrt 2)`, with its gradient.
    fn magnitude() -> Self {
        let slope = 7.0 / 2.0_f64.sqrt();
        Self::new("magnitude")
            .with("p", "1.0")
            .with("log", "yes")
            .with("gradients", "x")
            .with("cotangent_of", "magnitude")
            .tensor("in.x", &[1, 2], &[3.0, -4.0])
            .tensor("out.magnitude", &[1], &[49.0 / 8.0_f64.sqrt()])
            .tensor("out.log_norm_sq", &[1], &[49.0_f64.ln()])
            .tensor("cotangent", &[1], &[2.0])
            .tensor("grad.x", &[1, 2], &[2.0 * slope, -2.0 * slope])
    }

    fn with(mut self, key: &'static str, word: &str) -> Self {
        self.metadata.insert(key, word.to_owned());
        self
    }

    fn without(mut self, key: &str) -> Self {
        self.metadata.remove(key);
        self
    }

    fn tensor(mut self, name: &'static str, shape: &[usize], data: &[f64]) -> Self {
        self.tensors.insert(name, (shape.to_vec(), data.to_vec()));
        self
    }

    fn lacking(mut self, name: &str) -> Self {
        self.tensors.remove(name);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let raw = self.tensors.iter().map(|(name, (shape, data))| {
            let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
            (*name, shape.clone(), bytes)
        });
        let raw: Vec<_> = raw.collect();
        let views = raw.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F64, shape.clone(), bytes).unwrap();
            (*name, view)
        });
        let metadata = self.metadata.iter();
        let metadata: HashMap<String, String> = metadata
            .map(|(key, word)| ((*key).to_owned(), word.clone()))
            .collect();
        safetensors::serialize(views, Some(metadata)).unwrap()
    }

    fn report(&self) -> GoldenReport {
        report_of(&self.bytes())
    }

    /// The one fault of a file that was not run, or of both its runs.
    fn fault(&self) -> Fault {
        fault_of(&self.report())
    }
}

fn report_of(bytes: &[u8]) -> GoldenReport {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("case.safetensors"), bytes).unwrap();
    check_directory(dir.path()).unwrap()
}

fn fault_of(report: &GoldenReport) -> Fault {
    assert_eq!(report.passed(), 0);
    match &report.rows()[0].verdict {
        Verdict::Faulty(error @ Error::Case { file, fault }) => {
            assert!(file.ends_with("case.safetensors"));
            assert!(error.to_string().contains("case.safetensors"));
            fault.clone()
        }
        other => panic!("{other:?}"),
    }
}

fn worst(report: &GoldenReport) -> Vec<&str> {
    let exceeded = report.rows().iter().filter_map(|row| match &row.verdict {
        Verdict::Exceeded(worst) => Some(worst.tensor.as_str()),
        _ => None,
    });
    exceeded.collect()
}

#[test]
fn a_right_case_passes_in_both_precisions() {
    let report = Draft::magnitude().report();
    assert_eq!([report.passed(), report.failed()], [2, 0], "{report}");
    let dtypes: Vec<_> = report.rows().iter().map(|row| row.dtype).collect();
    assert_eq!(dtypes, [Some("f64"), Some("f32")]);
    let table = report.to_string();
    assert!(table.ends_with("golden: 2 passed, 0 failed, 0 not served"));
    let only = Draft::magnitude().with("f32", "no").report();
    assert_eq!(only.rows().len(), 1);
}

#[test]
fn a_wrong_output_or_gradient_is_caught_in_each_precision() {
    let value = 49.0 / 8.0_f64.sqrt();
    let slightly = Draft::magnitude().tensor("out.magnitude", &[1], &[value * (1.0 + 1e-8)]);
    let report = slightly.report();
    assert_eq!([report.passed(), report.failed()], [1, 1], "{report}");
    assert_eq!(worst(&report), ["out.magnitude"]);
    assert!(report.to_string().contains("FAILED"));

    let clearly = Draft::magnitude().tensor("grad.x", &[1, 2], &[10.0, -9.0]);
    assert_eq!(worst(&clearly.report()), ["grad.x", "grad.x"]);
}

#[test]
fn a_nan_in_our_result_fails() {
    let draft = Draft::magnitude().tensor("in.x", &[1, 2], &[f64::NAN, 1.0]);
    let report = draft.report();
    assert_eq!([report.passed(), report.failed()], [0, 2], "{report}");
    assert!(worst(&report).len() == 2);
    let Verdict::Exceeded(worst) = &report.rows()[0].verdict else {
        panic!("{report}");
    };
    assert!(worst.error.is_nan() && worst.ratio() == f64::INFINITY);
}

#[test]
fn tensors_that_should_be_there_are_missed() {
    let missing = |tensor: &str| Fault::MissingTensor {
        tensor: tensor.to_owned(),
    };
    for name in [
        "in.x",
        "grad.x",
        "cotangent",
        "out.magnitude",
        "out.log_norm_sq",
    ] {
        assert_eq!(Draft::magnitude().lacking(name).fault(), missing(name));
    }
    let none = Draft::magnitude().lacking("out.magnitude");
    assert_eq!(none.lacking("out.log_norm_sq").fault(), missing("out.*"));
    let listed = Draft::magnitude().with("gradients", "x y").fault();
    assert_eq!(listed, missing("in.y"));
}

#[test]
fn tensors_that_should_not_be_there_are_named() {
    let extra = |name| Draft::magnitude().tensor(name, &[1], &[1.0]).fault();
    for name in ["in.y", "grad.y", "input.x", "x"] {
        let fault = extra(name);
        assert!(
            matches!(&fault, Fault::UnexpectedTensor { tensor, .. } if tensor == name),
            "{fault}"
        );
    }
    let fault = extra("out.norm");
    assert!(matches!(fault, Fault::NotComputed { tensor } if tensor == "out.norm"));
    let unlisted = Draft::magnitude().without("gradients").fault();
    assert!(matches!(unlisted, Fault::UnexpectedTensor { .. }));
}

#[test]
fn wrong_shapes_are_named() {
    let shape_of = |name, shape: &[usize]| {
        let data = vec![1.0; shape.iter().product()];
        Draft::magnitude().tensor(name, shape, &data).fault()
    };
    assert!(matches!(shape_of("grad.x", &[2]), Fault::Shape { tensor, .. } if tensor == "grad.x"));
    assert!(matches!(shape_of("cotangent", &[2]), Fault::Shape { .. }));
    let fault = shape_of("out.log_norm_sq", &[1, 1]);
    assert!(matches!(fault, Fault::ResultShape { got, .. } if got == [1]));
    let flat = Draft::magnitude().tensor("in.x", &[2], &[3.0, -4.0]);
    let flat = flat.tensor("grad.x", &[2], &[0.0, 0.0]).fault();
    assert!(matches!(flat, Fault::Shape { tensor, .. } if tensor == "in.x"));
}

#[test]
fn wrong_entries_are_named() {
    let wrong = [
        ("format", "bochner-golden-2"),
        ("name", "another"),
        ("f32", "maybe"),
        ("p", "one"),
        ("p", "inf"),
        ("log", "perhaps"),
        ("cotangent_of", "log_norm_sq"),
    ];
    for (key, word) in wrong {
        let fault = Draft::magnitude().with(key, word).fault();
        assert!(matches!(&fault, Fault::Entry { key: k, got, .. } if k == key && got == word));
        let fault = Draft::magnitude().without(key).fault();
        assert!(matches!(&fault, Fault::MissingEntry { key: k, .. } if k == key));
    }
    let refused = Draft::magnitude().with("p", "-1").fault();
    assert!(matches!(refused, Fault::Refused { .. }));
}

#[test]
fn kinds_that_no_function_computes_are_counted_and_do_not_fail() {
    // What other kinds hold is theirs: outputs may be integers there.
    let kind = Draft::magnitude()
        .with("case", "unheard-of")
        .lacking("grad.x");
    let variant = Draft::new("attention").with("variant", "unheard-of");
    for (draft, name) in [(kind, "unheard-of"), (variant, "attention")] {
        let report = draft.report();
        let counts = [report.passed(), report.failed(), report.not_served()];
        assert_eq!(counts, [0, 0, 1], "{report}");
        let line = format!("case  -     not served: no function computes `{name}`");
        assert!(report.to_string().contains(&line), "{report}");
    }
    let nameless = Draft::magnitude().without("case").fault();
    assert!(matches!(nameless, Fault::MissingEntry { key, .. } if key == "case"));
}

#[test]
fn expected_values_must_be_finite() {
    let fault = Draft::magnitude().tensor("out.magnitude", &[1], &[f64::NAN]);
    assert!(matches!(fault.fault(), Fault::Element { tensor, .. } if tensor == "out.magnitude"));
}

#[test]
fn damaged_files_are_named_and_do_not_stop_the_others() {
    let bytes = Draft::magnitude().bytes();
    for damaged in [&bytes[..bytes.len() - 1], &bytes[..5], b"{}"] {
        let fault = fault_of(&report_of(damaged));
        assert!(matches!(fault, Fault::NotSafetensors { .. }));
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.safetensors"), b"nothing").unwrap();
    fs::write(dir.path().join("case.safetensors"), &bytes).unwrap();
    fs::write(dir.path().join("README.md"), "not a case").unwrap();
    let report = check_directory(dir.path()).unwrap();
    assert_eq!([report.passed(), report.failed()], [2, 1], "{report}");
}

#[test]
fn a_case_lacks_none_of_its_outputs() {
    let draft = Draft::magnitude().with("case", "gat_kernel");
    let draft = draft.without("gradients").lacking("grad.x");
    let fault = draft.lacking("cotangent").fault();
    assert!(matches!(fault, Fault::MissingTensor { tensor } if tensor == "out.output"));
}

#[test]
fn a_directory_without_cases_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let empty = check_directory(dir.path());
    assert!(matches!(empty, Err(Error::NoCases { .. })));
    let missing = check_directory(&dir.path().join("missing"));
    assert!(matches!(missing, Err(Error::Directory { .. })));
}
