//! The five regression sets, each as scaled inputs, scaled target and ten splits.

pub mod co2;
pub mod concrete;
pub mod housing;
pub mod parkinsons;
pub mod passenger;
mod set;

use set::{Described, Place};
pub use set::{Protocol, RegressionSet, Rows};
pub(crate) use set::{by_name, named};

use crate::folds::deal;
use crate::provenance::FileProvenance;
use crate::splits::{parse_folds, parse_masks};
use crate::store::DataStore;
use crate::{Error, Header, MinMax, Split, Table, TableConfig, manifest};

/// Loads a set with its splits; every column is scaled to $[-1, 1]$ over all rows.
///
/// If only some rows are kept, they keep the scale that they have in the full table.
///
/// | protocol | set | table | splits |
/// |---|---|---|---|
/// | P10 | CO2 | scaled files of the source, in time order | [`deal`] |
/// | P10 | Passenger | embedded series | [`deal`] |
/// | P10 | Housing, Concrete, Parkinsons | raw file | `folds10.txt` |
/// | R90 | CO2, Concrete | scaled files of the source, `train.csv` then `test.csv` | `released_test_mask.csv` |
/// | R90 | Passenger | embedded series | `released_test_mask.csv` |
/// | R90 | Housing, Parkinsons | raw file | `released_test_mask.csv` |
///
/// # Errors
/// The errors of [`DataStore::load`]; [`Error::EmptySplit`] if so few rows are kept that a part of a split
/// is empty; [`Error::UnknownName`] for [`Protocol::Fixed`], which these sets do not have.
///
/// # Numerics
/// The scaled files are taken as they are: their columns were scaled over all rows at the source.
pub fn load(
    set: RegressionSet,
    protocol: Protocol,
    rows: Rows,
    store: &DataStore,
) -> Result<RegressionData, Error> {
    let what = format!("protocol of {set}");
    by_name(what, &Protocol::REGRESSION, Protocol::name, protocol.name())?;
    let mut loader = Loader {
        store,
        provenance: Vec::new(),
    };
    let table = loader.table(set, protocol)?.every(rows.step());
    let splits = loader.splits(set, protocol, rows)?;
    check_parts(set, protocol, rows, &splits)?;
    let (inputs, target) = table.split_target();
    Ok(RegressionData {
        set,
        inputs,
        target,
        splits,
        provenance: loader.provenance,
    })
}

/// A regression set, scaled and split.
#[derive(Clone, Debug, PartialEq)]
pub struct RegressionData {
    /// The name of the set.
    pub set: RegressionSet,
    /// Inputs, shape `[n, d]`.
    pub inputs: Table,
    /// Target, length `n`.
    pub target: Vec<f64>,
    /// The ten splits, as row numbers of `inputs` and `target`.
    pub splits: Vec<Split>,
    /// The files that the set was read from.
    pub provenance: Vec<FileProvenance>,
}

/// Reads files and remembers which ones.
struct Loader<'a> {
    store: &'a DataStore,
    provenance: Vec<FileProvenance>,
}

impl Loader<'_> {
    fn read<T>(
        &mut self,
        set: RegressionSet,
        name: &str,
        parse: impl Fn(&str, &[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let entry = manifest::entry(&format!("{set}/{name}"))?;
        let (value, provenance) = self.store.load(entry, parse)?;
        self.provenance.push(provenance);
        Ok(value)
    }

    /// The full table, scaled, target last, in the row order of the protocol.
    fn table(&mut self, set: RegressionSet, protocol: Protocol) -> Result<Table, Error> {
        let described = set.described();
        let place = match protocol {
            Protocol::R90 => &described.released,
            _ => &described.table,
        };
        let raw = match *place {
            Place::Scaled => return self.scaled(set),
            Place::Raw(file, parse) => self.read(set, file, parse)?,
            Place::Here => {
                self.provenance.extend(passenger::given(self.store)?);
                passenger::table()
            }
        };
        MinMax::fit(&raw).transform(&raw)
    }

    /// The rows of `train.csv`, then those of `test.csv`.
    fn scaled(&mut self, set: RegressionSet) -> Result<Table, Error> {
        let config = TableConfig {
            header: Header::None,
            ..TableConfig::default()
        };
        let columns = set.inputs() + 1;
        let parse = |file: &str, bytes: &[u8]| Table::parse(file, bytes, columns, &config);
        let train = self.read(set, "train.csv", parse)?;
        Ok(train.stack(&self.read(set, "test.csv", parse)?))
    }

    fn splits(
        &mut self,
        set: RegressionSet,
        protocol: Protocol,
        rows: Rows,
    ) -> Result<Vec<Split>, Error> {
        if protocol == Protocol::R90 {
            let masks = self.read(set, "released_test_mask.csv", parse_masks)?;
            return Ok(Split::held_out(&every(&masks, rows)));
        }
        let folds = if set.described().has_published_folds {
            self.read(set, "folds10.txt", parse_folds)?
        } else {
            deal(&vec![0; set.rows()])
        };
        Ok(Split::cross_validation(&every(&folds, rows)))
    }
}

fn every<T: Clone>(items: &[T], rows: Rows) -> Vec<T> {
    items.iter().step_by(rows.step()).cloned().collect()
}

fn check_parts(
    set: RegressionSet,
    protocol: Protocol,
    rows: Rows,
    splits: &[Split],
) -> Result<(), Error> {
    for (split, parts) in splits.iter().enumerate() {
        let mut parts = vec![
            ("train", &parts.train),
            ("test", &parts.test),
            ("validation", &parts.validation),
        ];
        if protocol == Protocol::R90 {
            parts.pop();
        }
        if let Some((part, _)) = parts.into_iter().find(|(_, rows)| rows.is_empty()) {
            return Err(Error::EmptySplit {
                set: set.name(),
                split,
                part,
                every: rows.step(),
            });
        }
    }
    Ok(())
}
