//! The serialised form of a copula.

use bochner_copula::{GaussianCopula, Lattice};
use ndarray::{Array3, Axis, array};

fn three() -> GaussianCopula {
    let r = array![[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.0]];
    GaussianCopula::from_correlation(r.view()).unwrap()
}

#[test]
fn what_is_written_and_read_again_is_equal() {
    let random = Array3::from_shape_fn((1, 9, 9), |(_, m, k)| (m * 7 + k * 3) as f64 % 5.0 - 1.5);
    let strict = bochner_copula::heads::free(random.view())
        .unwrap()
        .index_axis_move(Axis(0), 0);
    for copula in [three(), GaussianCopula::from_factor(strict.view()).unwrap()] {
        let text = serde_json::to_string(&copula).unwrap();
        assert_eq!(
            serde_json::from_str::<GaussianCopula>(&text).unwrap(),
            copula
        );
    }
}

#[test]
fn what_is_read_is_checked() {
    let read = |text: &str| {
        serde_json::from_str::<GaussianCopula>(text)
            .unwrap_err()
            .to_string()
    };
    let ok = serde_json::from_str::<GaussianCopula>(r#"{"factor": [[1.0], [0.6, 0.8]]}"#);
    assert_eq!(ok.unwrap().correlation()[[0, 1]], 0.6);
    assert!(read(r#"{"factor": [[1.0], [0.6, -0.8]]}"#).contains("must be above 0"));
    assert!(read(r#"{"factor": [[1.0], [3.0]]}"#).contains("row 1 of factor"));
    for norm in [r#"[[1.0], [1e308, 1.0]]"#, r#"[[3.0], [0.5, 0.8]]"#] {
        let said = read(&format!(r#"{{"factor": {norm}}}"#));
        assert!(said.contains("the norm of row"), "{said}");
    }
    assert!(read(r#"{"factor": []}"#).contains("no elements"));
    assert!(read(r#"{"factor": [[1.0]], "extra": 1}"#).contains("extra"));
    let lattice = |text: &str| serde_json::from_str::<Lattice>(text);
    let refused = |text: &str| lattice(text).unwrap_err().to_string();
    assert!(refused(r#"{"points": 0}"#).starts_with("`points` is 0"));
    assert!(refused(r#"{"shifts": 1}"#).starts_with("`shifts` is 1"));
    assert_eq!(lattice("{}").unwrap(), Lattice::default());
}
