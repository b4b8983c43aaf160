//! Rules of the sources that no lint checks.

use super::{formulas, settings, voice};
use crate::cargo::root;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// A file longer than this holds more than one concept.
const LONGEST: usize = 500;

/// Folders whose files are one suite or one read-out each, and are shorter.
const SHORTER: [(&str, usize); 2] = [
    ("crates/reproduce/src/suites", 400),
    ("crates/interpret/src", 300),
];

/// The one crate that may allow unsafe code, which the compiler denies the others.
const UNSAFE: &str = "numerics";

/// Crates whose one error is the `ArgumentError` of numerics.
const WITHOUT_ERRORS: [&str; 2] = ["numerics", "ops"];

pub(super) fn breaches() -> Result<Vec<String>, Box<dyn Error>> {
    let mut breaches = Vec::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let directory = entry?.path();
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        breaches.extend(missing(&name, &directory));
        for file in rust_files(&directory)? {
            let text = fs::read_to_string(&file)?;
            let file = file.strip_prefix(root()).unwrap_or(&file);
            let mut found = in_file(&name, file, &text);
            found.extend(formulas::breaches(&text));
            found.extend(settings::breaches(&name, &text));
            found.extend(voice::breaches(&text));
            let shown = file.display();
            breaches.extend(found.into_iter().map(|breach| format!("{shown}{breach}")));
        }
    }
    for file in rust_files(&root().join("xtask"))? {
        let found = voice::breaches(&fs::read_to_string(&file)?);
        let shown = file.strip_prefix(root()).unwrap_or(&file).display();
        breaches.extend(found.into_iter().map(|breach| format!("{shown}{breach}")));
    }
    breaches.sort();
    Ok(breaches)
}

/// Every crate has the same face.
fn missing(name: &str, directory: &Path) -> Vec<String> {
    ["src/lib.rs", "src/error.rs"]
        .into_iter()
        .filter(|file| !(file.ends_with("error.rs") && WITHOUT_ERRORS.contains(&name)))
        .filter(|file| !directory.join(file).is_file())
        .map(|file| format!("{name} has no {file}"))
        .collect()
}

fn rust_files(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

fn in_file(name: &str, file: &Path, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let (lines, longest) = (text.lines().count(), longest(file));
    if lines > longest {
        breaches.push(format!(": {lines} lines; at most {longest}"));
    }
    let is_face = file.ends_with("src/lib.rs");
    for (number, line) in text.lines().enumerate() {
        if name != UNSAFE && line.contains("unsafe_code") {
            breaches.push(format!(":{}: allows unsafe code", number + 1));
        }
        if is_face && is_wildcard(line) {
            breaches.push(format!(":{}: re-exports what it does not name", number + 1));
        }
    }
    breaches
}

/// The largest number of lines of a file. Tests of suites have a folder of their own, and may be as long as other
/// files.
fn longest(file: &Path) -> usize {
    let shorter = SHORTER.iter().find(|(folder, _)| file.starts_with(folder));
    match shorter {
        Some((folder, longest)) if !file.starts_with(Path::new(folder).join("tests")) => *longest,
        _ => LONGEST,
    }
}

fn is_wildcard(line: &str) -> bool {
    line.trim().starts_with("pub use ") && line.contains('*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_unsafe_code_and_length_are_found() {
        let face = Path::new("crates/nn/src/lib.rs");
        assert_eq!(in_file("nn", face, "pub use layers::*;").len(), 1);
        assert!(in_file("nn", face, "pub use layers::Linear;").is_empty());
        let allowing = "#[allow(unsafe_code)]";
        assert_eq!(in_file("nn", face, allowing), [":1: allows unsafe code"]);
        assert!(in_file("numerics", face, allowing).is_empty());
        let long = "\n".repeat(LONGEST + 1);
        assert_eq!(in_file("nn", face, &long), [": 501 lines; at most 500"]);
        let lines = "\n".repeat(401);
        for (file, longest) in [
            ("reproduce/src/suites/causal.rs", Some(400)),
            ("reproduce/src/suites/tests/nodes.rs", None),
            ("reproduce/src/runner.rs", None),
            ("interpret/src/depth/network.rs", Some(300)),
        ] {
            let found = in_file("reproduce", &Path::new("crates").join(file), &lines);
            let breach = longest.map(|longest| format!(": 401 lines; at most {longest}"));
            assert_eq!(found, Vec::from_iter(breach), "{file}");
        }
    }
}
