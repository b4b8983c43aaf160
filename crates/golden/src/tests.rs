//! Small cases written here, right and wrong: whatever is wrong with a file has to be found.

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

    /// Checks the message of a file that was not run, or of both its runs.
    fn fails_with(&self, message: &str) {
        assert_eq!(fault_of(&self.report()).to_string(), message);
    }

    fn passes(&self) {
        let report = self.report();
        assert_eq!([report.passed(), report.failed()], [2, 0], "{report}");
    }
}

fn report_of(bytes: &[u8]) -> GoldenReport {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("case.safetensors"), bytes).unwrap();
    check_directory(dir.path()).unwrap()
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
        let message = format!("lacks `{name}`");
        draft().lacking(name).fails_with(&message);
    }
    let none = draft().lacking("out.magnitude").lacking("out.log_norm_sq");
    none.fails_with("lacks `out.*`");
    draft().with("gradients", "x y").fails_with("lacks `in.y`");
    let other = Draft::new("gat_kernel").tensor("out.alpha", &[1], &[1.0]);
    other.fails_with("lacks `out.output`");

    let extra = |name, message| draft().tensor(name, &[1], &[1.0]).fails_with(message);
    extra(
        "in.y",
        "holds `in.y`, which is no input of this case with these parameters",
    );
    extra(
        "grad.y",
        "holds `grad.y`, which the metadata's `gradients` does not list",
    );
    extra(
        "x",
        "holds `x`, whose name does not begin with in., out. or grad.",
    );
    extra(
        "out.norm",
        "asks for `out.norm`, which this case does not have; check the name",
    );
    let unlisted = draft().without("gradients").lacking("grad.x");
    unlisted.fails_with("holds `cotangent`, but the metadata lists no `gradients`");

    let shaped = |name, shape: &[usize], message: &str| {
        let data = vec![1.0; shape.iter().product()];
        draft().tensor(name, shape, &data).fails_with(message);
    };
    shaped(
        "grad.x",
        &[2],
        "`grad.x` has shape [2]; it should have shape [1, 2]",
    );
    shaped(
        "cotangent",
        &[2],
        "`cotangent` has shape [2]; it should have shape [1]",
    );
    let message =
        "our number of elements of `out.log_norm_sq` is 1, and that of shape [2] was expected";
    shaped("out.log_norm_sq", &[2], message);
    let flat = draft().tensor("grad.x", &[2], &[0.0; 2]);
    let flat = flat.tensor("in.x", &[2], &[3.0, -4.0]);
    flat.fails_with("`in.x` has shape [2]; it should have 2 axes");
    let nan = draft().tensor("out.magnitude", &[1], &[f64::NAN]);
    nan.fails_with("`out.magnitude` holds NaN; it should hold only finite numbers");
    let lengths = Draft::new("sinusoidal_positions").with("d", "2");
    let lengths = lengths.tensor("in.positions", &[1], &[1.0]);
    let lengths = lengths.tensor("out.encoding", &[1, 2], &[0.0; 2]);
    lengths.fails_with("`in.positions` is stored as F64; it should be stored as I64");
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
            let named = format!("the entry `{key}` is {state}; it should be ");
            assert!(message.starts_with(&named), "{message}");
        };
        of(Draft::magnitude().with(key, word), &format!("`{word}`"));
        of(Draft::magnitude().without(key), "missing");
    }
    Draft::magnitude()
        .without("case")
        .fails_with("the entry `case` is missing; it should be given");
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
    let report = check_directory(dir.path()).unwrap();
    assert_eq!([report.passed(), report.failed()], [2, 1], "{report}");
}

#[test]
fn a_directory_without_cases_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let empty = check_directory(dir.path());
    assert!(matches!(empty, Err(Error::NoCases { .. })));
    let missing = check_directory(&dir.path().join("missing"));
    assert!(matches!(missing, Err(Error::Directory { .. })));
}

/// An input that lacks leading axes is repeated along them, and its gradient is the sum over its copies.
#[test]
fn one_factor_serves_every_latent_dimension() {
    // Rows (1, 0) and (0.6, 0.8) once normalised.
    let factor = [1.0, 0.0, 0.75, 1.0];
    let x = [1.0, 2.0, 0.6 - 0.8, 1.2 + 0.4];
    // Along the second row, the latent dimensions add up to (1 - 2, -1 - 0.5), of which (0.8, -0.6) / 1.25 times its
    // part along that direction is left.
    let along = (0.6 * 1.5 - 0.8) / 1.25;
    let draft = Draft::new("mikan_posterior")
        .tensor("in.mu", &[1, 2, 2], &[0.0; 4])
        .tensor("in.log_sigma", &[1, 2, 2], &[0.0; 4])
        .tensor("in.factor", &[2, 2], &factor)
        .tensor("in.eps", &[1, 2, 1, 2], &[1.0, 2.0, -1.0, 0.5])
        .tensor("out.x", &[1, 2, 1, 2], &x)
        .tensor("out.z", &[1, 2, 1, 2], &x)
        .with("gradients", "factor")
        .with("cotangent_of", "z")
        .tensor("cotangent", &[1, 2, 1, 2], &[1.0, 0.0, 1.0, -1.0])
        .tensor(
            "grad.factor",
            &[2, 2],
            &[0.0, 0.0, 0.8 * along, -0.6 * along],
        );
    draft.passes();
    let three = draft
        .tensor("in.factor", &[3, 2, 2], &[1.0; 12])
        .lacking("grad.factor");
    let three = three.without("gradients").lacking("cotangent");
    three.fails_with(
        "`in.factor` has shape [3, 2, 2]; it should have leading axes that fit 2 matrices",
    );
}

/// Outputs of the mechanism itself, and of attention in each form.
#[test]
fn attention_is_computed_in_every_form() {
    for (name, double, single) in [
        ("attention-softmax-causal", 1 + 2, 1 + 2),
        ("attention-ikan-p1-lengths", 3, 2),
        ("attention-performer-positive-matrix", 2, 2),
        ("attention-performer-positive-causal", 3, 3),
        ("quadratic_vs_linear-nonstationary-lengths", 2, 2),
    ] {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
        let bytes = fs::read(cases.join(name).with_extension("safetensors")).unwrap();
        let (file, kind) = open(&bytes, name).unwrap();
        assert_eq!(ways(&file, kind.double), double, "{name}");
        assert_eq!(ways(&file, kind.single), single, "{name}");
    }
}

/// The number of ways in which the output was computed.
fn ways<T: Real>(file: &CaseFile, compute: Function<T>) -> usize {
    let case = Case::new(file);
    compute(&case).unwrap();
    case.results.borrow()["out.output"].len()
}
