//! The manifest that README shows: its directories are there, its versions those of the workspace.

use std::path::Path;

/// Returns the text between two texts.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(from)?;
    Some(rest.split_once(to)?.0)
}

/// The version that a dependency asks for, written short or in a table.
fn version(requirement: &str) -> Option<&str> {
    let after = requirement.split_once("version = ");
    between(after.map_or(requirement, |(_, rest)| rest), "\"", "\"")
}

#[test]
fn the_manifest_fits_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |file| std::fs::read_to_string(root.join(file)).unwrap();
    let (readme, workspace) = (read("README.md"), read("Cargo.toml"));
    let manifest = between(&readme, "```toml\n[dependencies]\n", "\n\n").unwrap();
    let mut directories = 0;
    for (name, requirement) in manifest.lines().map(|line| line.split_once(" = ").unwrap()) {
        if let Some(path) = between(requirement, "path = \"bochner/", "\"") {
            let own = std::fs::read_to_string(root.join(path).join("Cargo.toml")).unwrap();
            assert!(own.contains(&format!("name = \"{name}\"")), "{path}");
            directories += 1;
        } else {
            let ours = between(&workspace, &format!("\n{name} = "), "\n").unwrap();
            assert_eq!(version(requirement), version(ours), "{name}");
        }
    }
    assert!(directories > 0);
}
