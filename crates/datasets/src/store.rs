//! The store of data files, which are looked for in a given directory, the crate itself, the user's cache and the
//! network.

use crate::download::{Tool, download};
use crate::manifest::{Entry, entries, fetch_command};
use crate::provenance::{FileProvenance, Origin, Stored};
use crate::{Error, embedded};
use serde::{Deserialize, Serialize};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Finds pinned files, compares them with their pins and hands out their bytes.
///
/// Each file is looked for, in this order,
///
/// 1. in the directory given with [`DataStore::with_directory`],
/// 2. in the crate (the index lists of the regression sets only),
/// 3. in the user's cache, `$XDG_CACHE_HOME/bochner` or `~/.cache/bochner`,
/// 4. on the network, with [`Policy::Download`]: `curl`, or `wget` where there is no `curl`,
///    fetches the pinned address into the cache.
///
/// A file with wrong bytes in the given directory is an error: it is neither replaced nor passed over.
/// A wrong file in the cache is an error with [`Policy::Offline`] and fetched again with
/// [`Policy::Download`].
///
/// ```
/// use bochner_datasets::{DataStore, Error, Policy, manifest};
///
/// let cache = std::env::temp_dir().join("bochner-nothing-here");
/// let store = DataStore::new(Policy::Offline).with_cache(cache);
/// let error = store.fetch(manifest::entry("housing/housing.data")?).unwrap_err();
/// let Error::Unavailable { command: Some(command), .. } = error else { panic!() };
/// assert!(command.starts_with("curl"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DataStore {
    directory: Option<PathBuf>,
    cache: Option<PathBuf>,
    policy: Policy,
    tools: &'static [Tool],
}

/// The permission to download files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Use the files that are on this machine.
    Offline,
    /// Fetch missing files.
    Download,
}

impl DataStore {
    /// A store that looks in the crate and in the user's cache.
    pub fn new(policy: Policy) -> Self {
        Self {
            directory: None,
            cache: cache_of(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME")),
            policy,
            tools: Tool::ALL,
        }
    }

    /// Makes the store look in `directory` first.
    ///
    /// # Errors
    /// [`Error::NotADirectory`].
    pub fn with_directory(self, directory: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = directory.into();
        if !path.is_dir() {
            return Err(Error::NotADirectory { path });
        }
        Ok(Self {
            directory: Some(path),
            ..self
        })
    }

    /// Replaces the user's cache by another directory, which is created when something is downloaded.
    pub fn with_cache(self, cache: impl Into<PathBuf>) -> Self {
        Self {
            cache: Some(cache.into()),
            ..self
        }
    }

    /// The verified bytes of a pinned file.
    ///
    /// # Errors
    /// [`Error::Checksum`], [`Error::Unavailable`], [`Error::Io`].
    pub fn fetch(&self, entry: &Entry) -> Result<Stored, Error> {
        if let Some(stored) = self.fetch_given(entry)? {
            return Ok(stored);
        }
        if let Some(stored) = in_crate(entry)? {
            return Ok(stored);
        }
        let mut tried = Vec::new();
        if let Some(directory) = &self.directory {
            tried.push(not_there(&entry.path_in(directory)));
        }
        if let Some(stored) = self.in_cache(entry, &mut tried)? {
            return Ok(stored);
        }
        if let Some(stored) = self.on_network(entry, &mut tried)? {
            return Ok(stored);
        }
        Err(self.unavailable(entry, tried))
    }

    /// Reads a pinned file with `parse`, which is given the place and the bytes. Bytes that do not match
    /// the pin are never parsed.
    ///
    /// # Errors
    /// The errors of [`DataStore::fetch`] and of `parse`.
    pub fn load<T>(
        &self,
        entry: &Entry,
        parse: impl Fn(&str, &[u8]) -> Result<T, Error>,
    ) -> Result<(T, FileProvenance), Error> {
        let stored = self.fetch(entry)?;
        let value = parse(&stored.place, &stored.bytes)?;
        Ok((value, FileProvenance::of(entry, &stored)))
    }

    /// The verified bytes of a pinned file in the given directory; `None` if it is not there.
    pub(crate) fn fetch_given(&self, entry: &Entry) -> Result<Option<Stored>, Error> {
        match &self.directory {
            Some(directory) => read(entry, directory, Origin::Directory),
            None => Ok(None),
        }
    }

    fn in_cache(&self, entry: &Entry, tried: &mut Vec<String>) -> Result<Option<Stored>, Error> {
        let Some(cache) = &self.cache else {
            tried.push("no cache: neither XDG_CACHE_HOME nor HOME is an absolute path".to_owned());
            return Ok(None);
        };
        match read(entry, cache, Origin::Cache) {
            Ok(None) => tried.push(not_there(&entry.path_in(cache))),
            Err(error @ Error::Checksum { .. })
                if self.policy == Policy::Download && entry.url.is_some() =>
            {
                tried.push(error.to_string());
            }
            outcome => return outcome,
        }
        Ok(None)
    }

    fn on_network(&self, entry: &Entry, tried: &mut Vec<String>) -> Result<Option<Stored>, Error> {
        let (Some(cache), Policy::Download) = (&self.cache, self.policy) else {
            return Ok(None);
        };
        let target = entry.path_in(cache);
        let bytes = download(entry, &target, self.tools, tried)?;
        Ok(bytes.map(|bytes| Stored {
            bytes: bytes.into(),
            place: target.display().to_string(),
            origin: Origin::Download,
        }))
    }

    fn unavailable(&self, entry: &Entry, mut tried: Vec<String>) -> Error {
        if self.policy == Policy::Offline {
            tried.push("downloads are off".to_owned());
        }
        let into = self.directory.as_ref().or(self.cache.as_ref());
        let into = into.map_or(Path::new("."), PathBuf::as_path);
        let others = self.missing_beside(entry).map(|other| other as &Entry);
        let all = || fetch_command([entry].into_iter().chain(others), into);
        Error::Unavailable {
            file: entry.file.clone(),
            set: entry.set.clone(),
            tried,
            command: entry.url.as_ref().and_then(|_| all()),
        }
    }

    /// The other files of a file's data set that are missing in all places searched.
    fn missing_beside(&self, entry: &Entry) -> impl Iterator<Item = &'static Entry> {
        let others = entries().iter();
        let others = others.filter(|other| other.set == entry.set && other.file != entry.file);
        others.filter(|other| {
            let mut places = [&self.directory, &self.cache].into_iter().flatten();
            embedded::find(&other.file).is_none()
                && !places.any(|place| other.path_in(place).is_file())
        })
    }
}

/// The verified bytes of a file below a directory; `None` if it is not there.
fn read(entry: &Entry, directory: &Path, origin: Origin) -> Result<Option<Stored>, Error> {
    let path = entry.path_in(directory);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(Error::io(&path))?,
    };
    let place = path.display().to_string();
    entry.verify(&place, &bytes)?;
    Ok(Some(Stored {
        bytes: bytes.into(),
        place,
        origin,
    }))
}

fn not_there(path: &Path) -> String {
    format!("{}: not there", path.display())
}

fn in_crate(entry: &Entry) -> Result<Option<Stored>, Error> {
    let Some(bytes) = embedded::find(&entry.file) else {
        return Ok(None);
    };
    let place = format!("{} (embedded)", entry.file);
    entry.verify(&place, bytes)?;
    Ok(Some(Stored {
        bytes: bytes.into(),
        place,
        origin: Origin::Embedded,
    }))
}

/// The cache by the XDG rule, by which relative and empty paths count as not set.
fn cache_of(xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
    let base = absolute(xdg).or_else(|| absolute(home).map(|home| home.join(".cache")));
    base.map(|base| base.join("bochner"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const GOOD: &[u8] = b"1,2\n";

    fn folder(content: Option<&[u8]>) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("toy")).unwrap();
        if let Some(bytes) = content {
            fs::write(folder.path().join("toy/a.csv"), bytes).unwrap();
        }
        folder
    }

    fn store(directory: &TempDir, cache: &TempDir) -> DataStore {
        DataStore::new(Policy::Offline)
            .with_cache(cache.path())
            .with_directory(directory.path())
            .unwrap()
    }

    #[test]
    fn the_given_directory_comes_before_the_cache() {
        let (directory, cache) = (folder(Some(GOOD)), folder(Some(GOOD)));
        let both = store(&directory, &cache);
        assert_eq!(
            both.fetch(&Entry::toy(GOOD)).unwrap().origin,
            Origin::Directory
        );
        fs::remove_file(directory.path().join("toy/a.csv")).unwrap();
        assert_eq!(both.fetch(&Entry::toy(GOOD)).unwrap().origin, Origin::Cache);
    }

    #[test]
    fn a_wrong_file_in_the_given_directory_is_neither_passed_over_nor_touched() {
        let (directory, cache) = (folder(Some(b"1,3\n")), folder(Some(GOOD)));
        let error = store(&directory, &cache)
            .fetch(&Entry::toy(GOOD))
            .unwrap_err();
        let Error::Checksum { place, .. } = &error else {
            panic!("{error}");
        };
        let path = directory.path().join("toy/a.csv");
        assert_eq!(place, &path.display().to_string());
        assert_eq!(fs::read(path).unwrap(), b"1,3\n");
    }

    #[test]
    fn bytes_that_do_not_match_their_pin_are_never_parsed() {
        let (good, bad) = (folder(Some(GOOD)), folder(Some(b"1,x\n")));
        let parse = |_: &str, bytes: &[u8]| -> Result<(), Error> {
            assert_eq!(bytes, GOOD);
            Ok(())
        };
        let load = |directory, cache| store(directory, cache).load(&Entry::toy(GOOD), parse);
        assert!(load(&good, &bad).is_ok());
        for refused in [load(&bad, &good), load(&folder(None), &bad)] {
            assert!(matches!(refused, Err(Error::Checksum { .. })));
        }
    }

    #[test]
    fn what_is_nowhere_is_named_with_its_command() {
        let (directory, cache) = (folder(None), folder(None));
        let error = store(&directory, &cache)
            .fetch(&Entry::toy(GOOD))
            .unwrap_err();
        let path = directory.path().join("toy/a.csv").display().to_string();
        let Error::Unavailable {
            set,
            tried,
            command,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((set.as_str(), tried.len()), ("toy", 3));
        let command = command.as_ref().unwrap();
        assert!(command.ends_with(&format!("--output '{path}' 'https://example.org/a.csv'")));
        assert!(error.to_string().contains(command));
    }

    #[test]
    fn one_command_fetches_all_that_is_missing_of_a_set() {
        let (directory, cache) = (folder(None), folder(None));
        for (place, file) in [
            (&directory, "cora/ind.cora.tx"),
            (&cache, "cora/ind.cora.y"),
        ] {
            let path = place.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        let first = crate::manifest::entry("cora/ind.cora.graph").unwrap();
        let error = store(&directory, &cache).fetch(first).unwrap_err();
        let Error::Unavailable { command, .. } = error else {
            panic!("{error}");
        };
        let command = command.unwrap();
        assert_eq!(command.matches("curl").count(), 1);
        let names = command.split(" --output '").skip(1);
        let names = names.map(|rest| rest.split('\'').next().unwrap().rsplit('.').next().unwrap());
        let names: Vec<&str> = names.collect();
        assert_eq!(names, ["graph", "allx", "ally", "index", "ty", "x"]);
        assert_eq!(command.matches(" 'https://").count(), names.len());
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let error = DataStore::new(Policy::Offline).with_directory("/no/such/place");
        assert!(matches!(error, Err(Error::NotADirectory { .. })));
    }

    #[test]
    fn a_wrong_file_in_the_cache_is_fetched_again_only_if_allowed() {
        let (directory, cache) = (folder(None), folder(Some(b"1,3\n")));
        let offline = store(&directory, &cache);
        let refused = offline.fetch(&Entry::toy(GOOD));
        assert!(matches!(refused, Err(Error::Checksum { .. })));
        let online = DataStore {
            policy: Policy::Download,
            tools: &[],
            ..offline
        };
        let Err(Error::Unavailable { tried, .. }) = online.fetch(&Entry::toy(GOOD)) else {
            panic!("no tool, no file");
        };
        assert!(tried[1].contains("is not the pinned"));
    }

    #[test]
    fn relative_cache_paths_count_as_not_set() {
        let home = || Some(OsString::from("/home/a"));
        let of = |xdg: &str| cache_of(Some(xdg.into()), home()).unwrap();
        assert_eq!(of("/c"), Path::new("/c/bochner"));
        assert_eq!(of("c"), Path::new("/home/a/.cache/bochner"));
        assert_eq!(of(""), Path::new("/home/a/.cache/bochner"));
        assert_eq!(cache_of(None, None), None);
    }
}
