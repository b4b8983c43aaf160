//! Processes that write to one directory: the shards of one run, and the locks between them.

use crate::{Error, Shard};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directory of the locks, inside that of the results.
const LOCKS: &str = ".locks";

/// The pause between two looks at a lock that another process holds.
const PAUSE: Duration = Duration::from_millis(50);

/// A place among the processes that write to a directory, which is given up when the process ends, however it ends.
///
/// | file of `.locks` | held by |
/// |---|---|
/// | `door` | a process that looks who is there |
/// | `shard-<i>-of-<n>` | the shard, while it runs; the file holds the run's description |
/// | `unit-<id>` | the shard that runs a unit which every shard needs |
/// | `report` | a shard that writes the reports |
#[derive(Debug)]
pub(super) struct Place {
    locks: PathBuf,
    shard: Shard,
    _held: Option<File>,
}

/// A lock that is given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _held: Option<File>,
}

impl Place {
    /// Takes a shard's place in a directory. `alone` is called if no other process is there.
    ///
    /// # Errors
    /// [`Error::Locked`] if the shard is running already. [`Error::OtherRun`] if a process is there that is no shard of a
    /// run of this description. [`Error::NoLocks`] for one of several shards on a file system without locks.
    pub(super) fn take(
        root: &Path,
        shard: Shard,
        run: &str,
        alone: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let locks = root.join(LOCKS);
        fs::create_dir_all(&locks).map_err(Error::io("create", &locks))?;
        let place = |held| Self {
            locks: locks.clone(),
            shard,
            _held: held,
        };
        let door = open(&locks.join("door"))?;
        match door.lock() {
            Ok(()) => {}
            Err(error) if error.kind() != ErrorKind::Unsupported => {
                return Err(Error::io("lock", &locks)(error));
            }
            Err(_) if shard.is_one_of_several() => {
                return Err(Error::NoLocks { path: root.into() });
            }
            Err(_) => {
                // The user must keep runs apart.
                alone()?;
                return Ok(place(None));
            }
        }
        let mut is_alone = true;
        for entry in fs::read_dir(&locks).map_err(Error::io("read", &locks))? {
            let path = entry.map_err(Error::io("read", &locks))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("shard-") && is_held(&path)? {
                is_alone = false;
                let running = fs::read_to_string(&path).unwrap_or_default();
                refuse_unless_shards_of_one(root, &running, shard, run)?;
            }
        }
        if is_alone {
            alone()?;
            for entry in fs::read_dir(&locks).map_err(Error::io("read", &locks))? {
                let path = entry.map_err(Error::io("read", &locks))?.path();
                if !path.ends_with("door") {
                    fs::remove_file(&path).map_err(Error::io("remove", &path))?;
                }
            }
        }
        let path = locks.join(format!("shard-{}", shard.to_string().replace('/', "-of-")));
        let mut held = open(&path)?;
        held.lock().map_err(Error::io("lock", &path))?;
        let written = held.set_len(0);
        let written = written.and_then(|()| held.write_all(described(shard, run).as_bytes()));
        written.map_err(Error::io("write", &path))?;
        Ok(place(Some(held)))
    }

    /// Waits for a unit that another shard may be running; `None` if `is_over` comes true before.
    pub(super) fn unit(&self, id: &str, is_over: impl Fn() -> bool) -> Result<Option<Turn>, Error> {
        self.turn(&format!("unit-{id}"), is_over)
    }

    /// Waits for the reports that another shard may be writing.
    pub(super) fn report(&self) -> Result<Turn, Error> {
        let turn = self.turn("report", || false)?;
        Ok(turn.expect("it waits without end"))
    }

    fn turn(&self, name: &str, is_over: impl Fn() -> bool) -> Result<Option<Turn>, Error> {
        if !self.shard.is_one_of_several() {
            return Ok(Some(Turn { _held: None }));
        }
        let path = self.locks.join(name);
        let file = open(&path)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Turn { _held: Some(file) })),
                Err(TryLockError::WouldBlock) if is_over() => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(source)) => return Err(Error::io("lock", &path)(source)),
            }
        }
    }
}

/// A shard and its run, as one line.
fn described(shard: Shard, run: &str) -> String {
    format!("shard {shard} of {run}")
}

/// Opens a file of a lock for reading and writing, which network file systems ask for.
fn open(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(path).map_err(Error::io("write", path))
}

fn is_held(path: &Path) -> Result<bool, Error> {
    match open(path)?.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(Error::io("lock", path)(source)),
    }
}

fn refuse_unless_shards_of_one(
    root: &Path,
    running: &str,
    shard: Shard,
    run: &str,
) -> Result<(), Error> {
    let given = described(shard, run);
    if running == given {
        return Err(Error::Locked { path: root.into() });
    }
    let count = |described: &str| {
        let (shard, run) = described.split_once(" of ")?;
        Some((shard.split_once('/')?.1.to_owned(), run.to_owned()))
    };
    match count(running) == count(&given) {
        true => Ok(()),
        false => Err(Error::OtherRun {
            path: root.into(),
            running: running.to_owned(),
            given,
        }),
    }
}
