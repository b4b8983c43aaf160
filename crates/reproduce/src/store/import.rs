//! Rows of another output directory, taken over where they answer a planned unit.

use super::{Store, atomic, line, read_json};
use crate::Error;
use bochner_models::RESULTS;
use bochner_report::row::{Artefacts, Row};
use bochner_report::suite::Card;
use bochner_report::{Unit, Versions};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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
    /// name the file. [`Error::NewerResult`] for a row of a newer suite or arithmetic than this program's.
    pub(crate) fn read(directories: &[PathBuf], card: &Card) -> Result<Self, Error> {
        let mut imports = Self::default();
        for root in directories {
            let units = root.join("units");
            if !units.is_dir() {
                return Err(Error::NoResults { path: root.clone() });
            }
            for path in json_files(&units.join(card.name))? {
                let Some(row) = read_json::<Row>(&path)? else {
                    continue;
                };
                if row.id != row.unit.id() {
                    let found = row.unit.id();
                    return Err(Error::ForeignResult { path, found });
                }
                refuse_newer(&path, &row.unit, card)?;
                imports.rows.insert(row.id.clone(), (root.clone(), row));
            }
        }
        Ok(imports)
    }

    /// Takes over the row of a unit with its artefacts, if there is one and the store has none. Weights and checkpoints
    /// that the store keeps for the unit are removed, since they are of another run.
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
        if let Some(artefacts) = read_json::<Artefacts>(&root.join(name))? {
            atomic::write(&store.path_of("artefacts", unit), &line(&artefacts))?;
        }
        store.discard_weights(unit)?;
        // The row makes the unit finished, so that it comes last.
        atomic::write(&store.path_of("units", unit), &line(&row))?;
        self.taken += 1;
        store.clear(unit)
    }

    /// The rows that no unit has taken, each with the reason, where these are the units of the run.
    pub(crate) fn left_out(&self, planned: &[Unit]) -> Vec<(String, String)> {
        let reason = |row: &Row| {
            let name = row.unit.name();
            match planned.iter().find(|unit| unit.name() == name) {
                Some(unit) => difference(&row.unit, unit),
                None => "this run has no unit of this scale, set, model, split and seed".to_owned(),
            }
        };
        let rows = self.rows.values();
        rows.map(|(_, row)| (row.id.clone(), reason(row))).collect()
    }
}

/// The files of a directory that end in `.json`, in the order of their names; none if it does not exist.
fn json_files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory).map_err(Error::io("read", directory))?;
    let paths = entries.map(|entry| Ok(entry.map_err(Error::io("read", directory))?.path()));
    let mut paths = paths.collect::<Result<Vec<PathBuf>, Error>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    Ok(paths)
}

fn refuse_newer(path: &Path, unit: &Unit, card: &Card) -> Result<(), Error> {
    let Some(versions) = &unit.versions else {
        return Ok(());
    };
    for (what, found, known) in [
        ("suite", versions.suite, card.version),
        ("arithmetic", versions.results, RESULTS),
    ] {
        if found > known {
            return Err(Error::NewerResult {
                path: path.to_owned(),
                what,
                found,
                known,
            });
        }
    }
    Ok(())
}

/// The parts of a description in which a row of the same name differs from a unit of today.
fn difference(row: &Unit, unit: &Unit) -> String {
    let mut differences = match (&row.versions, &unit.versions) {
        (None, Some(_)) => vec!["it was written before descriptions had versions".to_owned()],
        (Some(old), Some(new)) => of_versions(old, new),
        _ => Vec::new(),
    };
    let fields = |unit: &Unit| {
        unit.settings
            .read::<Map<String, Value>>()
            .unwrap_or_default()
    };
    let (old, new) = (fields(row), fields(unit));
    let all = old
        .keys()
        .chain(new.keys().filter(|name| !old.contains_key(*name)));
    differences.extend(
        all.filter(|name| old.get(*name) != new.get(*name))
            .map(|name| {
                let [old, new] = [&old, &new].map(|fields| {
                    let value = fields.get(name);
                    value.map_or_else(|| "absent".to_owned(), Value::to_string)
                });
                format!("its {name} is {old}, here {new}")
            }),
    );
    differences.join("; ")
}

fn of_versions(old: &Versions, new: &Versions) -> Vec<String> {
    let mut differences = Vec::new();
    for (what, old, new) in [
        ("suite", old.suite, new.suite),
        ("arithmetic", old.results, new.results),
    ] {
        if old != new {
            differences.push(format!("its {what} has version {old}, here {new}"));
        }
    }
    for (what, is_equal) in [
        (
            "default settings of the models",
            old.defaults == new.defaults,
        ),
        ("data files", old.data == new.data),
    ] {
        if !is_equal {
            differences.push(format!("its {what} are others"));
        }
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::suites::REGRESSION;

    fn unit() -> Unit {
        let versions = Some(Versions {
            suite: REGRESSION.card.version,
            results: RESULTS,
            defaults: "d".into(),
            data: None,
        });
        Unit {
            versions,
            ..fixtures::unit()
        }
    }

    /// An output directory with the row of a unit.
    fn written(unit: &Unit) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let artefacts = Artefacts::default().with("number", &0.5);
        store.record(&fixtures::row(unit, 0.3), &artefacts).unwrap();
        directory
    }

    fn read(other: &Path) -> Result<Imports, Error> {
        Imports::read(&[other.to_owned()], REGRESSION.card)
    }

    #[test]
    fn a_unit_of_the_same_description_is_finished_and_its_weights_are_gone() {
        let (unit, directory) = (unit(), tempfile::tempdir().unwrap());
        let other = written(&unit);
        let store = Store::open(directory.path()).unwrap();
        let save = |path: &Path| fs::write(path, "model").map_err(Error::io("write", path));
        store.keep_weights(&unit, "v", save).unwrap();
        let mut imports = read(other.path()).unwrap();
        imports.take(&unit, &store).unwrap();
        assert_eq!(imports.taken, 1);
        assert_eq!(store.row(&unit).unwrap(), Some(fixtures::row(&unit, 0.3)));
        let number: Option<f64> = store.artefacts(&unit).unwrap().unwrap().get("number");
        assert_eq!(number, Some(0.5));
        assert!(!store.weights(&unit, "v").exists());
        assert!(imports.left_out(&[unit]).is_empty());
    }

    #[test]
    fn a_row_of_another_description_is_left_out_with_the_reason() {
        let mut settings = unit().settings;
        settings.set_epochs(61);
        let older = Unit {
            versions: None,
            ..unit()
        };
        let elsewhere = Unit { seed: 7, ..unit() };
        let longer = Unit { settings, ..unit() };
        for (row, reason) in [
            (older, "it was written before descriptions had versions"),
            (
                elsewhere,
                "this run has no unit of this scale, set, model, split and seed",
            ),
            (longer, "its epochs is 61, here 60"),
        ] {
            let imports = read(written(&row).path()).unwrap();
            assert_eq!(imports.left_out(&[unit()]), [(row.id(), reason.to_owned())]);
        }
    }

    #[test]
    fn newer_damaged_and_missing_rows_are_refused_with_their_file() {
        let mut newer = unit();
        newer.versions.as_mut().unwrap().results = RESULTS + 1;
        let error = read(written(&newer).path()).unwrap_err();
        let is_newer = matches!(error, Error::NewerResult { what: "arithmetic", found, .. } if found == RESULTS + 1);
        assert!(is_newer, "{error}");

        let other = written(&unit());
        let file = format!("units/regression/{}.json", unit().id());
        let file = other.path().join(file);
        fs::write(&file, "{\"id\":\n7}").unwrap();
        let error = read(other.path()).unwrap_err().to_string();
        let is_named = error.contains(file.to_str().unwrap()) && error.contains("line 2");
        assert!(is_named, "{error}");

        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(read(empty.path()), Err(Error::NoResults { .. })));
    }
}
