//! Small cases written here, right and wrong: whatever is wrong with a file has to be found.

use bochner_datasets::{DataStore, Policy};
use bochner_golden::{Error, Fault, GoldenReport, Verdict, check_directory};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

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

    /// Checks the message of a file that was not run, or of both its runs.
    fn fails_with(&self, message: &str) {
        assert_eq!(fault_of(&self.report()).to_string(), message);
    }
}

fn offline(dir: &Path) -> Result<GoldenReport, Error> {
    check_directory(dir, &DataStore::new(Policy::Offline))
}

fn report_of(bytes: &[u8]) -> GoldenReport {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("case.safetensors"), bytes).unwrap();
    offline(dir.path()).unwrap()
}

fn fault_of(report: &GoldenReport) -> &Fault {
    assert_eq!(report.passed(), 0);
    match &report.rows()[0].verdict {
        Verdict::Faulty(fault) => fault,
        other => panic!("{other:?}"),
    }
}

/// The names of the tensors that are farthest outside their bounds.
fn exceeded(report: &GoldenReport) -> Vec<&str> {
    let exceeded = report.rows().iter().filter_map(|row| match &row.verdict {
        Verdict::Exceeded(worst) => Some(worst.tensor.as_str()),
        _ => None,
    });
    exceeded.collect()
}

#[test]
fn a_right_case_passes_in_both_precisions() {
    let report = Draft::magnitude().report();
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
    assert_eq!(exceeded(&report), ["out.magnitude"]);
    assert!(report.to_string().contains("FAILED"));

    let clearly = Draft::magnitude().tensor("grad.x", &[1, 2], &[10.0, -9.0]);
    assert_eq!(exceeded(&clearly.report()), ["grad.x", "grad.x"]);
}

#[test]
fn a_nan_in_our_result_fails() {
    let draft = Draft::magnitude().tensor("in.x", &[1, 2], &[f64::NAN, 1.0]);
    let report = draft.report();
    assert_eq!(exceeded(&report).len(), 2);
    let Verdict::Exceeded(worst) = &report.rows()[0].verdict else {
        panic!("{report}");
    };
    assert!(worst.error.is_nan() && worst.ratio() == f64::INFINITY);
}

#[test]
fn wrong_tensors_are_named() {
    let draft = Draft::magnitude;
    for name in [
        "in.x",
        "grad.x",
        "cotangent",
        "out.magnitude",
        "out.log_norm_sq",
    ] {
        let message = format!("`{name}` is missing; it should be given");
        draft().lacking(name).fails_with(&message);
    }
    let ones = |name, shape: &[usize]| {
        let data = vec![1.0; shape.iter().product()];
        draft().tensor(name, shape, &data)
    };
    let lengths = Draft::new("sinusoidal_positions")
        .with("d", "2")
        .tensor("in.positions", &[1], &[1.0])
        .tensor("out.encoding", &[1, 2], &[0.0; 2]);
    #[rustfmt::skip]
    let wrong = [
        (draft().lacking("out.magnitude").lacking("out.log_norm_sq"), "`out.*` is missing; it should be given"),
        (draft().with("gradients", "x y"), "`in.y` is missing; it should be given"),
        (Draft::new("gat_kernel").tensor("out.alpha", &[1], &[1.0]), "`out.output` is missing; it should be given"),
        (ones("in.y", &[1]), "`in.y` is given; it should be an input of this case with these parameters"),
        (ones("grad.y", &[1]), "`grad.y` is given; it should be listed in the metadata's `gradients`, or absent"),
        (ones("x", &[1]), "`x` is given; it should be called in., out. or grad. and more"),
        (ones("out.norm", &[1]), "`out.norm` is expected; it should be a result of this case; check the name"),
        (draft().without("gradients").lacking("grad.x"),
         "`cotangent` is given; it should be absent, since the metadata lists no `gradients`"),
        (ones("grad.x", &[2]), "`grad.x` is of shape [2]; it should be of shape [1, 2]"),
        (ones("cotangent", &[2]), "`cotangent` is of shape [2]; it should be of shape [1]"),
        (ones("out.log_norm_sq", &[2]), "`out.log_norm_sq` is of shape [2]; it should be of 1 elements by our code"),
        (ones("grad.x", &[2]).tensor("in.x", &[2], &[3.0, -4.0]), "`in.x` is of shape [2]; it should be one with 2 axes"),
        (draft().tensor("out.magnitude", &[1], &[f64::NAN]),
         "`out.magnitude` is an array with NaN; it should be one of only finite numbers"),
        (lengths, "`in.positions` is stored as F64; it should be stored as I64"),
    ];
    for (draft, message) in wrong {
        draft.fails_with(message);
    }
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
        let of = |draft: Draft, state: &str| {
            let message = fault_of(&draft.report()).to_string();
            let named = format!("`{key}` is {state}; it should be ");
            assert!(message.starts_with(&named), "{message}");
        };
        of(Draft::magnitude().with(key, word), &format!("`{word}`"));
        of(Draft::magnitude().without(key), "missing");
    }
    Draft::magnitude()
        .without("case")
        .fails_with("`case` is missing; it should be given");
    let refused = Draft::magnitude().with("p", "-1").report();
    assert!(matches!(fault_of(&refused), Fault::Refused { .. }));
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
}

#[test]
fn damaged_files_are_named_and_do_not_stop_the_others() {
    let bytes = Draft::magnitude().bytes();
    for damaged in [&bytes[..bytes.len() - 1], &bytes[..5], b"{}"] {
        assert!(matches!(
            fault_of(&report_of(damaged)),
            Fault::Unreadable { .. }
        ));
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.safetensors"), b"nothing").unwrap();
    fs::write(dir.path().join("case.safetensors"), &bytes).unwrap();
    fs::write(dir.path().join("README.md"), "not a case").unwrap();
    let report = offline(dir.path()).unwrap();
    assert_eq!([report.passed(), report.failed()], [2, 1], "{report}");
}

#[test]
fn a_directory_without_cases_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let empty = offline(dir.path());
    assert!(matches!(empty, Err(Error::NoCases { .. })));
    let missing = offline(&dir.path().join("missing"));
    assert!(matches!(missing, Err(Error::Directory { .. })));
}
