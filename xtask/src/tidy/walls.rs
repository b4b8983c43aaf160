//! What each crate may be built on.

use crate::cargo::cargo;
use std::collections::BTreeSet;
use std::error::Error;

/// Crates without autodiff, all the way down.
const AUTODIFF_FREE: [&str; 5] = [
    "bochner-numerics",
    "bochner-kernels",
    "bochner-spectral",
    "bochner-copula",
    "bochner-datasets",
];

/// Crates whose layers are a feature, without which they have no autodiff either.
const WITHOUT_LAYERS: [&str; 2] = ["bochner-attention", "bochner-graph"];

/// What graphs take spectral points from, for their layers alone.
const ATTENTION: &str = "bochner-attention";

/// The framework they do without.
const AUTODIFF: &str = "dfdx";

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
    for name in AUTODIFF_FREE {
        breaches.extend(with(AUTODIFF, name, &tree(&["--package", name])?));
    }
    for name in WITHOUT_LAYERS {
        let bare = tree(&["--package", name, "--no-default-features"])?;
        breaches.extend(with(AUTODIFF, &format!("{name} without features"), &bare));
        if name != ATTENTION {
            breaches.extend(with(ATTENTION, &format!("{name} without features"), &bare));
        }
    }
    breaches.extend(foreign(&tree(&["--workspace"])?));
    Ok(breaches)
}

fn with(unwanted: &str, name: &str, packages: &BTreeSet<Package>) -> Option<String> {
    packages
        .iter()
        .any(|package| package.name == unwanted)
        .then(|| format!("{name} depends on {unwanted}"))
}

fn foreign(packages: &BTreeSet<Package>) -> Vec<String> {
    let compiles = packages
        .iter()
        .filter(|package| FOREIGN.contains(&package.name.as_str()))
        .map(|package| {
            format!(
                "{} {} is in the tree: something compiles C or needs a system library",
                package.name, package.version
            )
        });
    let twice = SINGLE.iter().filter_map(|name| {
        let versions: Vec<&str> = packages
            .iter()
            .filter(|package| package.name == *name)
            .map(|package| package.version.as_str())
            .collect();
        (versions.len() > 1).then(|| format!("{name} is in the tree as {}", versions.join(", ")))
    });
    compiles.chain(twice).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
}

/// What a package is built from; tests excepted, since they are not shipped.
fn tree(selection: &[&str]) -> Result<BTreeSet<Package>, Box<dyn Error>> {
    let fixed = [
        "tree",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    let output = cargo(&[&fixed, selection].concat()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(packages(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads lines such as `rand v0.8.5 (/path) (*)`.
fn packages(lines: &str) -> BTreeSet<Package> {
    lines
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some(Package {
                name: words.next()?.to_owned(),
                version: words.next()?.to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breach_is_seen_in_what_cargo_prints() {
        let tree =
            packages("a v1.0.0 (/a)\n\nrand v0.8.5\nrand v0.9.0 (*)\ncc v1.2.3\nrand v0.8.5");
        assert_eq!(tree.len(), 4);
        let breaches = foreign(&tree);
        assert!(breaches[0].starts_with("cc v1.2.3"));
        assert_eq!(breaches[1], "rand is in the tree as v0.8.5, v0.9.0");
        assert!(with(AUTODIFF, "a", &tree).is_none());
        assert!(with(AUTODIFF, "a", &packages("dfdx v0.13.0")).is_some());
    }
}
