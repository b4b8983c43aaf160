//! The tables and the picture of the documentation, from the files that `--json` wrote.

use super::number::short;
use super::results::{Results, Subject};
use super::row::{least, most};
use super::table::{BUSY, table};
use super::{Row, picture};
use crate::Error;
use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- tables: written by `cargo xtask bench --tables` -->\n";
const END: &str = "<!-- end of the tables -->";

/// Writes the results under `docs/results/bench` into `docs/performance.md` and `docs/attention.svg`.
///
/// # Errors
/// If a file cannot be read or written, two files hold the same measurement, or the page has no place
/// for the tables.
pub fn write_page(docs: &Path) -> Result<(), Error> {
    for (file, text) in generated(docs)? {
        fs::write(docs.join(file), text)?;
    }
    Ok(())
}

/// The names and the contents of the files that are generated.
fn generated(docs: &Path) -> Result<[(&'static str, String); 2], Error> {
    let machines = machines(&docs.join("results/bench"))?;
    let first = machines.first().ok_or("there are no results")?;
    let page = fs::read_to_string(docs.join("performance.md"))?;
    Ok([
        ("performance.md", with_tables(&page, &tables(&machines)?)?),
        ("attention.svg", picture::svg(first)?),
    ])
}

/// The results of every machine, each in a folder of its own.
fn machines(directory: &Path) -> Result<Vec<Results>, Error> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(directory)? {
        folders.push(entry?.path());
    }
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders.iter().map(|folder| Results::read(folder)).collect()
}

fn with_tables(page: &str, tables: &str) -> Result<String, Error> {
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some([before, after])
    });
    let [before, after] = parts.ok_or_else(|| format!("the page lacks {BEGIN}or {END}"))?;
    Ok([before, BEGIN, tables, END, after].concat())
}

fn tables(machines: &[Results]) -> Result<String, Error> {
    let mut text = String::new();
    for machine in machines {
        text += &format!("### {}\n\n{}\n\n", machine.name, conditions(machine));
        let head = [
            "work",
            "shape",
            "ms",
            "PyTorch's time over ours",
            "both keeping memory",
            "ceiling",
        ];
        let (mut lines, mut notes) = (Vec::new(), String::new());
        for subject in machine.subjects() {
            lines.push(line(machine, &subject)?);
            let told = machine.rows(&subject)?.into_iter();
            let told = told.filter_map(Row::tokens_per_second);
            notes.extend(told.map(|note| format!("\n* {note}.")));
        }
        text += &table(&[vec![head.map(str::to_owned)], shown(&lines)].concat());
        if !notes.is_empty() {
            text += &notes;
            text += "\n";
        }
        text += "\n";
    }
    Ok(text)
}

/// A sentence on the machine of some calls, and on the best that it reached in them.
fn conditions(results: &Results) -> String {
    let all: Vec<_> = results.unforced().collect();
    let machine = &all[0].machine;
    let range = |of: &dyn Fn(&super::Ceilings) -> f64| {
        let values: Vec<f64> = all.iter().map(|report| of(&report.ceilings)).collect();
        format!("{:.0} to {:.0}", least(&values), most(&values))
    };
    let torch = all
        .iter()
        .find_map(|report| report.machine.torch.as_deref());
    format!(
        "{}, {} cores ({}); {}; PyTorch {}. Ceilings, from call to call: products {} GFLOP/s in \
         single and {} in double precision, memory {} GB/s.",
        machine.processor,
        machine.cores,
        machine.instruction_sets.join(", "),
        machine.rustc.split(" (").next().unwrap_or_default(),
        torch.unwrap_or("not run"),
        range(&|c| c.gflops_f32),
        range(&|c| c.gflops_f64),
        range(&|c| c.gb_per_s),
    )
}

fn line(results: &Results, subject: &Subject) -> Result<[String; 6], Error> {
    let rows = results.rows(subject)?;
    let retaining = Subject {
        retaining: true,
        ..subject.clone()
    };
    let mut work = subject.work.clone();
    work += &subject
        .threads
        .map_or(String::new(), |n| format!(", {n} thread"));
    work += &subject
        .forced
        .as_ref()
        .map_or(String::new(), |sets| format!(", {sets}"));
    let ms = rows.iter().map(|row| match row.others_cpu {
        Some(others) if others > BUSY => short(row.ms) + "†",
        _ => short(row.ms),
    });
    Ok([
        work,
        rows[0].shape(),
        joined(ms),
        ratios(&rows),
        ratios(&results.rows(&retaining)?),
        joined(rows.iter().filter_map(|row| share(row))),
    ])
}

/// The rows shown on the page: of a workload without peers only its last shape. The files hold all shapes.
fn shown(lines: &[[String; 6]]) -> Vec<[String; 6]> {
    let alone = |line: &[String; 6]| line[3].is_empty() && line[4].is_empty();
    let again = |i: usize| {
        let mut later = lines[i + 1..].iter();
        later.any(|line| alone(line) && line[0] == lines[i][0])
    };
    let kept = (0..lines.len()).filter(|&i| !(alone(&lines[i]) && again(i)));
    kept.map(|i| lines[i].clone()).collect()
}

fn joined(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(" / ")
}

/// The larger share of what the machine can do: of its products, or of its memory.
fn share(row: &Row) -> Option<String> {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let (product, memory) = (row.of_product?, row.of_memory?);
    Some(match product >= memory {
        true => percent(product),
        false => percent(memory) + " of memory",
    })
}

/// For each comparison its label, and the time of the fastest peer over ours in each pass.
fn ratios(rows: &[&Row]) -> String {
    let mut labels: Vec<&str> = Vec::new();
    for against in rows.iter().flat_map(|row| &row.against) {
        if against.ratio.is_some() && !labels.contains(&against.label.as_str()) {
            labels.push(&against.label);
        }
    }
    let of = |label: &str, row: &Row| {
        let same = row.against.iter().find(|against| against.label == label);
        let Some((against, ratio)) = same.and_then(|same| Some((same, same.ratio?))) else {
            return "-".to_owned();
        };
        match (against.met, against.target) {
            (Some(false), Some(target)) => format!("**{}** of {target}", short(ratio)),
            _ => short(ratio),
        }
    };
    let each = labels.iter().map(|label| {
        let values = joined(rows.iter().map(|row| of(label, row)));
        format!("{}: {values}", named(label))
    });
    each.collect::<Vec<_>>().join("; ")
}

/// A label as short as the page explains it.
fn named(label: &str) -> &str {
    match label {
        "the faster of eager and compiled, fused Adam" => "best form",
        "PyTorch Geometric's classic GAT" => "PyTorch Geometric",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failure of this test is mended by `cargo xtask bench --tables`.
    #[test]
    fn the_documentation_shows_what_the_files_hold() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for (file, text) in generated(&docs).unwrap() {
            assert!(
                fs::read_to_string(docs.join(file)).unwrap() == text,
                "{file}"
            );
        }
    }

    #[test]
    fn of_the_shapes_beside_which_nobody_was_timed_the_last_is_shown() {
        let line = |work: &str, shape: &str, ratios: &str| {
            [work, shape, "1.0", ratios, "", ""].map(str::to_owned)
        };
        let (beside, other) = (line("a", "1", "SDPA: 2.0"), line("b", "3", ""));
        let [short, long] = ["2", "3"].map(|shape| line("a", shape, ""));
        let all = [beside.clone(), short, long.clone(), other.clone()];
        assert_eq!(shown(&all), [beside, long, other]);
    }

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let page = format!("before\n{BEGIN}old\n{END}\nafter");
        let want = format!("before\n{BEGIN}new\n{END}\nafter");
        assert_eq!(with_tables(&page, "new\n").unwrap(), want);
        assert!(with_tables("no markers", "new\n").is_err());
    }
}
