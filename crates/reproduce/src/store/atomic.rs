//! Files that exist whole or not at all.

use crate::Error;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Marks the names of files that are not in their place yet. A model that is written there may have a file of its own
/// beside it, whose name goes on.
const UNFINISHED: &str = ".unfinished";

/// The ending of this process's unfinished files. Two machines may have processes of one number, so that the time is in
/// it.
static OWN: LazyLock<String> = LazyLock::new(|| {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = since.map_or(0, |since| since.as_nanos());
    format!("{UNFINISHED}-{}-{nanoseconds}", std::process::id())
});

/// Returns the path that a file is written to before it is renamed into its place; other processes have others.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(&*OWN);
    name.into()
}

/// Writes a file so that a reader sees the old content or the new, never a part.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let unfinished = beside(path);
    write_synced(&unfinished, bytes).map_err(|error| {
        // A part of a file on a full disk only takes space from the others.
        let _ = fs::remove_file(&unfinished);
        Error::io("write", path)(error)
    })?;
    put_in_place(&unfinished, path)
}

/// Renames a file that another writer wrote to [`beside`] into its place.
pub(crate) fn put_in_place(unfinished: &Path, path: &Path) -> Result<(), Error> {
    File::open(unfinished)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(unfinished, path))
        .and_then(|()| sync_parent(path))
        .map_err(Error::io("write", path))
}

/// Removes the unfinished files of a directory and those below.
pub(crate) fn clean(directory: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::io("read", directory))? {
        let entry = entry.map_err(Error::io("read", directory))?;
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            clean(&path)?;
        } else if entry.file_name().to_string_lossy().contains(UNFINISHED) {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Removes a file that may be gone already.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A rename survives a power cut once the directory is on disk, too.
#[cfg(unix)]
fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

#[cfg(not(unix))]
fn sync_parent(_: &Path) -> io::Result<()> {
    Ok(())
}
