//! The golden cases kept with this crate, all of them, in every precision they allow.

use bochner_datasets::{DataStore, Policy};
use bochner_golden::{self as golden, GoldenReport, Verdict};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn cases() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases")
}

fn check_directory(dir: &Path) -> GoldenReport {
    golden::check_directory(dir, &DataStore::new(Policy::Offline)).unwrap()
}

static REPORT: LazyLock<GoldenReport> = LazyLock::new(|| check_directory(&cases()));

#[test]
fn every_case_passes() {
    let report = &*REPORT;
    println!("{report}");
    assert_eq!([report.failed(), report.not_served()], [0, 0]);
    let cases: BTreeSet<_> = report.rows().iter().map(|row| &row.name).collect();
    assert_eq!(cases.len(), 367 + 50);
}

/// A case passes only because its tensors agree: with any one of them off, it fails.
#[test]
fn every_tensor_of_every_case_is_compared() {
    let dir = cases();
    let served = REPORT
        .rows()
        .iter()
        .filter(|row| matches!(row.verdict, Verdict::Passed(_)) && row.dtype == Some("f64"));
    for row in served {
        let file = format!("{}.safetensors", row.name);
        let original = Case::read(&fs::read(dir.join(&file)).unwrap());
        for tensor in original.compared() {
            let mutants = tempfile::tempdir().unwrap();
            fs::write(mutants.path().join(&file), original.with_one_off(tensor)).unwrap();
            let report = check_directory(mutants.path());
            assert_eq!(report.passed(), 0, "{file}, {tensor}:\n{report}");
        }
    }
}

struct Case {
    metadata: HashMap<String, String>,
    tensors: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>,
}

impl Case {
    fn read(bytes: &[u8]) -> Self {
        let (_, header) = SafeTensors::read_metadata(bytes).unwrap();
        let tensors = SafeTensors::deserialize(bytes).unwrap();
        let owned = tensors.iter().map(|(name, view)| {
            let parts = (view.dtype(), view.shape().to_vec(), view.data().to_vec());
            (name.to_owned(), parts)
        });
        Self {
            metadata: header.metadata().clone().unwrap(),
            tensors: owned.collect(),
        }
    }

    fn compared(&self) -> impl Iterator<Item = &str> {
        let names = self.tensors.keys().map(String::as_str);
        names.filter(|name| name.starts_with("out.") || name.starts_with("grad."))
    }

    /// The file's bytes with the last element of one tensor moved by a twentieth of the largest, or by one.
    fn with_one_off(&self, tensor: &str) -> Vec<u8> {
        let moved = |dtype: Dtype, data: &[u8]| {
            if dtype == Dtype::I64 {
                let mut next = data.to_vec();
                let last = next.last_chunk_mut::<8>().unwrap();
                *last = i64::from_le_bytes(*last).wrapping_add(1).to_le_bytes();
                return next;
            }
            let mut x: Vec<f64> = data
                .chunks_exact(8)
                .map(|word| f64::from_le_bytes(word.try_into().unwrap()))
                .collect();
            let largest = x.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            *x.last_mut().unwrap() += 0.05 * (largest + 0.01);
            x.iter().flat_map(|x| x.to_le_bytes()).collect()
        };
        let changed = self.tensors.iter().map(|(name, (dtype, shape, data))| {
            let data: Vec<u8> = if name == tensor {
                moved(*dtype, data)
            } else {
                data.clone()
            };
            (name, *dtype, shape.clone(), data)
        });
        let changed: Vec<_> = changed.collect();
        let views = changed.iter().map(|(name, dtype, shape, data)| {
            let view = TensorView::new(*dtype, shape.clone(), data).unwrap();
            (*name, view)
        });
        safetensors::serialize(views, Some(self.metadata.clone())).unwrap()
    }
}
