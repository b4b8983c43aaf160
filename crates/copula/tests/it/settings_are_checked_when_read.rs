//! Every settings type reads back as it was written, and refuses what its functions refuse.

use bochner_copula::ndarray::array;
use bochner_copula::{GaussianCopula, Lattice};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn survives<S: Serialize + DeserializeOwned + PartialEq + Debug>(settings: &S) {
    let text = serde_json::to_string(settings).unwrap();
    assert_eq!(&serde_json::from_str::<S>(&text).unwrap(), settings);
}

fn refused<S: DeserializeOwned + Debug>(text: &str, start: &str) {
    let error = serde_json::from_str::<S>(text).unwrap_err().to_string();
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn of_every_type() {
    survives(&Lattice {
        points: 7,
        shifts: 3,
    });
    refused::<Lattice>(r#"{"points": 0}"#, "`points` is 0");
    refused::<Lattice>(r#"{"shifts": 1}"#, "`shifts` is 1");

    let factor = array![[1.0, 0.0], [0.6, 0.8]];
    survives(&GaussianCopula::from_factor(factor.view()).unwrap());
    refused::<GaussianCopula>(
        r#"{"factor":[[1.0],[1e308,1.0]]}"#,
        "`the norm of row 1 of factor` is 1e308",
    );
    refused::<GaussianCopula>(
        r#"{"factor":[[3.0],[0.6,0.8]]}"#,
        "`the norm of row 0 of factor` is 3",
    );
}
