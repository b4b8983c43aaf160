//! Rules of the sources that no lint checks.

use crate::cargo::root;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A file longer than this holds more than one concept.
const LONGEST: usize = 500;

/// The one crate with unsafe code.
const UNSAFE: &str = "numerics";

/// Crates that print: the others are libraries.
const PRINTING: [&str; 2] = ["benches", "reproduce"];

/// Crates whose functions cannot fail.
const WITHOUT_ERRORS: [&str; 1] = ["numerics"];

const PRINTS: [&str; 5] = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];

pub(super) fn breaches() -> Result<Vec<String>, Box<dyn Error>> {
    let mut breaches = Vec::new();
    let crates = fs::read_dir(root().join("crates"))?.map(|entry| Ok(entry?.path()));
    let directories = crates.chain([Ok(root().join("benches"))]);
    for directory in directories.collect::<io::Result<Vec<_>>>()? {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        breaches.extend(missing(&name, &directory));
        for file in rust_files(&directory)? {
            let text = fs::read_to_string(&file)?;
            let shown = file.strip_prefix(root()).unwrap_or(&file).display();
            let found = in_file(&name, &file, &text);
            breaches.extend(found.into_iter().map(|breach| format!("{shown}{breach}")));
        }
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
    let lines = text.lines().count();
    if lines > LONGEST {
        breaches.push(format!(": {lines} lines; at most {LONGEST}"));
    }
    let is_library = file.components().any(|part| part.as_os_str() == "src");
    let is_face = file.ends_with("src/lib.rs");
    for (number, line) in text.lines().enumerate() {
        let rules = [
            (
                is_library && !PRINTING.contains(&name) && prints(line),
                "prints",
            ),
            (name != UNSAFE && is_unsafe(line), "is unsafe code"),
            (
                is_face && is_wildcard(line),
                "re-exports what it does not name",
            ),
        ];
        let broken = rules.iter().filter(|(broken, _)| *broken);
        breaches.extend(broken.map(|(_, what)| format!(":{}: {what}", number + 1)));
    }
    breaches
}

/// A line without its comment. A string that holds two slashes is cut short, which hides nothing
/// these rules look for.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

fn prints(line: &str) -> bool {
    let code = code(line);
    PRINTS.iter().any(|print| {
        code.match_indices(print).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    })
}

fn is_unsafe(line: &str) -> bool {
    let code = code(line);
    let allows = code.contains("unsafe_code") && !code.contains("deny");
    allows
        || code
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|word| word == "unsafe")
}

fn is_wildcard(line: &str) -> bool {
    let code = code(line).trim();
    code.starts_with("pub use ") && code.contains('*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, file: &str, text: &str) -> Vec<String> {
        in_file(name, Path::new(file), text)
    }

    #[test]
    fn prints_are_found_in_libraries_only() {
        let text = "fn a() {\n    eprintln!(\"x\");\n}\n/// println!(\"doc\");\n";
        assert_eq!(
            found("copula", "crates/copula/src/a.rs", text),
            [":2: prints"]
        );
        assert!(found("reproduce", "crates/reproduce/src/a.rs", text).is_empty());
        assert!(found("copula", "crates/copula/tests/a.rs", text).is_empty());
        assert!(found("copula", "crates/copula/src/a.rs", "my_println!()").is_empty());
    }

    #[test]
    fn unsafe_code_is_found_outside_numerics() {
        let text = "let x = unsafe { f() };\n// unsafe\n#![deny(unsafe_code)]\n";
        assert_eq!(
            found("nn", "crates/nn/src/a.rs", text),
            [":1: is unsafe code"]
        );
        assert!(found("numerics", "crates/numerics/src/a.rs", text).is_empty());
        assert_eq!(found("nn", "a.rs", "#[allow(unsafe_code)]").len(), 1);
    }

    #[test]
    fn wildcards_and_length_are_found() {
        let face = "crates/nn/src/lib.rs";
        assert_eq!(found("nn", face, "pub use layers::*;").len(), 1);
        assert!(found("nn", face, "pub use layers::Linear;").is_empty());
        let long = "\n".repeat(LONGEST + 1);
        assert_eq!(found("nn", face, &long), [": 501 lines; at most 500"]);
    }
}
