//! The dependencies that each crate may be built on, as `cargo tree --invert` sees them.

use crate::cargo::{cargo, root};
use std::error::Error;
use std::fs;

/// The framework that only these crates see; the others do without it, all the way down, or have their layers
/// behind a feature.
const AUTODIFF: &str = "dfdx";
const WITH_AUTODIFF: [&str; 5] = ["bench", "golden", "models", "nn", "reproduce"];

/// Packages that bochner-attention must not depend on without its layers: its copula needs no matrix library and no marginals.
const NOT_FOR_ATTENTION: [&str; 2] = ["faer", "statrs"];

/// Packages that compile C or look for a system library.
const FOREIGN: [&str; 8] = [
    "cc",
    "cmake",
    "pkg-config",
    "bindgen",
    "vcpkg",
    "autotools",
    "nasm-rs",
    "system-deps",
];

/// Packages of which two versions in the tree would not understand each other.
const SINGLE: [&str; 2] = ["rand", "ndarray"];

pub(super) fn breaches() -> Result<Vec<String>, Box<dyn Error>> {
    let mut breaches = Vec::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let package = format!("bochner-{name}");
        let bare = ["--package", &package, "--no-default-features"];
        if !WITH_AUTODIFF.contains(&name.as_str()) && tree(&bare, AUTODIFF)? != Versions::None {
            breaches.push(format!("{package} without features depends on {AUTODIFF}"));
        }
        for heavy in NOT_FOR_ATTENTION {
            if name == "attention" && tree(&bare, heavy)? != Versions::None {
                breaches.push(format!("{package} without features depends on {heavy}"));
            }
        }
        let without_attention = ["graph", "report"].contains(&name.as_str());
        if without_attention && tree(&bare, "bochner-attention")? != Versions::None {
            breaches.push(format!("{package} without features depends on attention"));
        }
    }
    let built = ["--workspace", "--edges", "normal,build"];
    for name in FOREIGN {
        if tree(&built, name)? != Versions::None {
            breaches.push(format!("{name} compiles C or needs a system library"));
        }
    }
    for name in SINGLE {
        if tree(&built, name)? != Versions::One {
            breaches.push(format!("{name} is in the tree in several versions"));
        }
    }
    Ok(breaches)
}

/// The number of versions of a package in the tree of others.
#[derive(Debug, PartialEq)]
enum Versions {
    None,
    One,
    Several,
}

fn tree(of: &[&str], wanted: &str) -> Result<Versions, Box<dyn Error>> {
    let output = cargo(&[&["tree"], of, &["--invert", wanted]].concat()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    versions(output.status.success(), &said, wanted).ok_or_else(|| said.into())
}

/// Reads cargo's answer; `None` if it is about something else.
fn versions(is_found: bool, said: &str, wanted: &str) -> Option<Versions> {
    let about = |what: &str| said.contains(&format!("`{wanted}` {what}"));
    match is_found {
        true => Some(Versions::One),
        false if about("did not match any packages") => Some(Versions::None),
        false if about("is ambiguous") => Some(Versions::Several),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_cargo_are_told_apart() {
        let none = "error: package ID specification `cc` did not match any packages";
        assert_eq!(versions(false, none, "cc"), Some(Versions::None));
        assert_eq!(versions(false, none, "dfdx"), None);
        let several = "error: There are multiple `rand` packages in your project, and the \
                       specification `rand` is ambiguous.";
        assert_eq!(versions(false, several, "rand"), Some(Versions::Several));
        assert_eq!(versions(true, "", "rand"), Some(Versions::One));
    }

    #[test]
    fn what_is_there_is_found_and_what_is_not_is_not() {
        let nn = ["--package", "bochner-nn"];
        assert_eq!(tree(&nn, AUTODIFF).unwrap(), Versions::One);
        let kernels = ["--package", "bochner-kernels"];
        assert_eq!(tree(&kernels, AUTODIFF).unwrap(), Versions::None);
    }
}
