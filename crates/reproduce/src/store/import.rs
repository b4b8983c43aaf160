//! Rows of another output directory, taken over where they answer a planned unit.

use super::{Store, ids, read_json, read_row};
use crate::Error;
use bochner_report::Unit;
use bochner_report::row::{Artefacts, Row};
use bochner_report::suite::Card;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The rows of one suite in other output directories that no unit has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    /// The rows with their directories, by id.
    rows: BTreeMap<String, (PathBuf, Row)>,
    /// The number of rows taken over.
    pub(crate) taken: usize,
}

impl Imports {
    /// Reads the rows of a suite in the `units` of output directories; nothing is taken yet.
    ///
    /// # Errors
    /// [`Error::NoResults`] for a directory without `units`. [`Error::CorruptResult`] and [`Error::ForeignResult`], which
    /// name the file.
    pub(crate) fn read(directories: &[PathBuf], card: &Card) -> Result<Self, Error> {
        let mut imports = Self::default();
        for root in directories {
            let units = root.join("units");
            if !units.is_dir() {
                return Err(Error::NoResults { path: root.clone() });
            }
            let units = units.join(card.name);
            for id in ids(&units)? {
                let path = units.join(format!("{id}.json"));
                let Some(row) = read_row(&path)? else {
                    continue;
                };
                if row.id != row.unit.id() {
                    let found = row.unit.id();
                    return Err(Error::ForeignResult { path, found });
                }
                imports.rows.insert(row.id.clone(), (root.clone(), row));
            }
        }
        Ok(imports)
    }

    /// Takes over the row of a unit with its artefacts, if there is one and the store has none. A checkpoint that the store
    /// has of the unit is removed, since it is of another run.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::CorruptResult`] for artefacts that cannot be read.
    pub(crate) fn take(&mut self, unit: &Unit, store: &Store) -> Result<(), Error> {
        let Some((root, row)) = self.rows.remove(&unit.id()) else {
            return Ok(());
        };
        if store.row(unit)?.is_some() {
            return Ok(());
        }
        let name = format!("artefacts/{}/{}.json", unit.suite, row.id);
        let artefacts = read_json::<Artefacts>(&root.join(name))?;
        store.record(&row, artefacts.as_ref())?;
        self.taken += 1;
        Ok(())
    }

    /// The rows that no unit has taken, each with the reason, where these are the units of the run.
    pub(crate) fn left_out(&self, planned: &[Unit]) -> Vec<(String, String)> {
        let reason = |row: &Row| {
            let name = row.unit.name();
            let alike = planned.iter().filter(|unit| unit.name() == name);
            let differences = alike.map(|unit| difference(&row.unit, unit));
            let none = "this run has no unit of this scale, set, model, split and seed";
            let nearest = differences.min_by_key(String::len);
            nearest.unwrap_or_else(|| none.to_owned())
        };
        let rows = self.rows.values();
        rows.map(|(_, row)| (row.id.clone(), reason(row))).collect()
    }
}

/// The parts of a description in which a row of the same name differs from a unit of today: settings, and the versions of
/// suite, arithmetic, defaults and data.
fn difference(row: &Unit, unit: &Unit) -> String {
    let fields = |unit: &Unit| -> Map<String, Value> {
        let mut fields: Map<String, Value> = unit.settings.read().unwrap_or_default();
        let versions = serde_json::to_value(&unit.versions).unwrap_or_default();
        let versions = versions.as_object().cloned().unwrap_or_default();
        let versions = versions.into_iter();
        fields.extend(versions.map(|(name, value)| (format!("version of {name}"), value)));
        fields
    };
    let (old, new) = (fields(row), fields(unit));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let names = names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name));
    let text = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_string);
    let each = names.map(|name| {
        let [old, new] = [&old, &new].map(|fields| text(fields.get(name)));
        format!("its {name} is {old}, here {new}")
    });
    each.collect::<Vec<_>>().join("; ")
}
