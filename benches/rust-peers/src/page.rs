//! The results of all machines in the page that compares the libraries.

use crate::Error;
use crate::report::Report;
use std::fs;
use std::path::Path;

const BEGIN: &str =
    "<!-- rust peers: written by `cargo run --release -- --tables` in benches/rust-peers -->\n";
const END: &str = "<!-- end of rust peers -->";

/// Writes the tables of `results/rust-peers` into `compare.md`, both under `docs`.
pub(crate) fn write(docs: &Path) -> Result<(), Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(docs.join("results/rust-peers"))? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    let mut tables = String::new();
    for file in files {
        let report: Report = serde_json::from_str(&fs::read_to_string(&file)?)?;
        tables += &format!("\n{}\n", report.table());
    }
    let page = docs.join("compare.md");
    let text = with_tables(&fs::read_to_string(&page)?, &tables)?;
    Ok(fs::write(page, text)?)
}

fn with_tables(page: &str, tables: &str) -> Result<String, Error> {
    let lacks = |what: &str| format!("the page lacks {what}");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(|| lacks(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| lacks(END))?;
    Ok([before, BEGIN, tables, END, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_written_between_their_marks_alone() {
        let page = format!("before\n{BEGIN}old\n{END}\nafter\n");
        let once = with_tables(&page, "\nnew\n").unwrap();
        assert_eq!(once, format!("before\n{BEGIN}\nnew\n{END}\nafter\n"));
        assert_eq!(with_tables(&once, "\nnew\n").unwrap(), once);
        assert!(with_tables("before", "").is_err());
    }
}
