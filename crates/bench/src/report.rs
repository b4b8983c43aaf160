//! The results of a run, as one table and as JSON.

use crate::machine::Ceilings;
use crate::run::Group;
use crate::statistics::{Paired, median};
use crate::{Error, Measured, Workload};
use serde::Serialize;
use std::fmt;

/// A run of the benchmarks.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The machine, the commit and the compiler.
    pub machine: String,
    /// Threads of ours and of theirs.
    pub threads: usize,
    /// The number of times that the sides took turns.
    pub rounds: usize,
    /// The best that the machine reached.
    pub ceilings: Ceilings,
    /// One pass of one workload each.
    pub rows: Vec<Row>,
}

/// One pass of one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The name and the shape of the workload.
    pub work: String,
    /// The name of the pass.
    pub pass: String,
    /// Our times.
    pub ours: Times,
    /// Billions of multiplications and additions a second.
    pub gflops: f64,
    /// The larger share of what the machine can do.
    pub ceiling: String,
    /// The comparisons.
    pub against: Vec<Comparison>,
}

/// The times of one pass on one side.
#[derive(Clone, Debug, Serialize)]
pub struct Times {
    /// The implementation.
    pub name: String,
    /// The median of each round.
    pub rounds: Vec<f64>,
    /// Their median.
    pub ms: f64,
    /// Peak memory above the level at the start, inputs included.
    pub peak_mb: Option<f64>,
    /// The share of the processor's time that others took, in the worst round.
    pub others_cpu: Option<f64>,
    /// The reason why there is no time.
    pub failure: Option<String>,
}

/// Ours and the fastest of some others.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// A name for what they have in common.
    pub label: String,
    /// Each of them.
    pub others: Vec<Times>,
    /// The fastest.
    pub best: Option<String>,
    /// Its time over ours.
    pub ratio: Option<Paired>,
    /// The ratio that is wanted and whether it was met, or whether ours has become slower than an earlier state.
    pub verdict: String,
}

impl Times {
    fn new(name: &str, runs: &[Measured], pass: &str) -> Self {
        let all = |of: &dyn Fn(&Measured) -> Option<f64>| -> Vec<f64> {
            runs.iter().filter_map(of).collect()
        };
        let rounds = all(&|one| one.ms(pass));
        Self {
            name: name.to_owned(),
            ms: median(&rounds),
            rounds,
            peak_mb: all(&|one| one.peak_mb(pass)).into_iter().reduce(f64::max),
            others_cpu: all(&Measured::others_cpu).into_iter().reduce(f64::max),
            failure: runs.iter().find_map(Measured::failure),
        }
    }
}

impl Comparison {
    fn new(group: &Group, pass: usize, name: &str, ours: &Times) -> Self {
        let name = group.time.as_deref().unwrap_or(name);
        let sides = group.sides.iter();
        let all: Vec<Times> = sides
            .map(|side| Times::new(&side.name, &side.runs, name))
            .collect();
        let timed = all.iter().filter(|times| !times.rounds.is_empty());
        let best = timed.min_by(|a, b| a.ms.total_cmp(&b.ms));
        let ratio = best.and_then(|best| Paired::new(&best.rounds, &ours.rounds));
        let verdict = match (&group.wanted, ratio) {
            (_, None) => String::new(),
            (None, Some(paired)) => paired.verdict().to_owned(),
            (Some(wanted), Some(paired)) => match wanted.get(pass) {
                Some(&target) if target > paired.ratio => format!("{target} MISSED"),
                Some(&target) if target > 0.0 => format!("{target} met"),
                _ => String::new(),
            },
        };
        Self {
            label: group.label.clone(),
            best: best.map(|best| format!("{} {:.2}", best.name, best.ms)),
            ratio,
            verdict,
            others: all,
        }
    }
}

impl Row {
    pub(crate) fn new(
        workload: &Workload,
        place: usize,
        ours: &[Measured],
        groups: &[Group],
        ceilings: &Ceilings,
    ) -> Self {
        let pass = &workload.passes[place];
        let operations = ours.first().and_then(|run| run.operations(pass.name));
        let operations = operations.unwrap_or(0.0);
        let ours = Times::new("ours", ours, pass.name);
        let compare = |group| Comparison::new(group, place, pass.name, &ours);
        Self {
            work: workload.id(),
            pass: pass.name.to_owned(),
            gflops: operations / ours.ms / 1e6,
            ceiling: ceilings.share(workload.element, [operations, pass.bytes], ours.ms),
            against: groups.iter().map(compare).collect(),
            ours,
        }
    }

    /// A line for each comparison, or one without.
    fn lines(&self) -> Vec<[String; HEADER.len()]> {
        let line = |compared: Option<&Comparison>| {
            let ratio = compared.and_then(|compared| compared.ratio);
            let interval = ratio.and_then(|ratio| ratio.interval);
            [
                self.work.clone(),
                self.pass.clone(),
                format!("{:.2}", self.ours.ms),
                shown(compared, |compared| compared.label.clone()),
                shown(
                    compared.and_then(|compared| compared.best.as_ref()),
                    String::clone,
                ),
                shown(ratio, |ratio| format!("{:.2}", ratio.ratio)),
                shown(interval, |[low, high]| format!("{low:.2} to {high:.2}")),
                shown(compared, |compared| compared.verdict.clone()),
                format!("{:.0}", self.gflops),
                self.ceiling.clone(),
                shown(self.ours.peak_mb, |peak| format!("{peak:.0}")),
                shown(self.ours.others_cpu, |others| format!("{others:.2}")),
            ]
        };
        match self.against.is_empty() {
            true => vec![line(None)],
            false => self.against.iter().map(|one| line(Some(one))).collect(),
        }
    }
}

const HEADER: [&str; 12] = [
    "work",
    "pass",
    "ms",
    "beside",
    "their best, ms",
    "theirs over ours",
    "95 %",
    "wanted",
    "GFLOP/s",
    "ceiling",
    "peak MiB",
    "others",
];

/// Above this share of the processor's time, other processes have spoilt a measurement.
const BUSY: f64 = 0.05;

impl Report {
    /// The report as JSON.
    ///
    /// # Errors
    /// The errors of `serde_json`.
    pub fn json(&self) -> Result<String, Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Warnings about numbers that are spoilt or missing.
    fn warnings(&self) -> Vec<String> {
        let (mut busy, mut warnings) = (Vec::new(), Vec::new());
        for row in &self.rows {
            busy.extend(row.ours.others_cpu);
            for times in row.against.iter().flat_map(|compared| &compared.others) {
                busy.extend(times.others_cpu);
                if let Some(why) = &times.failure {
                    let (work, pass, name) = (&row.work, &row.pass, &times.name);
                    warnings.push(format!("{work} {pass}: no time of {name}: {why}"));
                }
            }
        }
        let spoilt = busy.iter().filter(|others| **others > BUSY).count();
        if spoilt > 0 {
            let (worst, all) = (busy.iter().copied().fold(0.0, f64::max), busy.len());
            warnings.push(format!(
                "The machine was busy: other processes took up to {:.0} % of it, and more than \
                 {:.0} % in {spoilt} of {all} measurements. Do not quote these ratios.",
                100.0 * worst,
                100.0 * BUSY,
            ));
        }
        warnings
    }
}

/// The table, as Markdown.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (machine, best) = (&self.machine, &self.ceilings);
        writeln!(
            f,
            "{machine}; {} threads, {} rounds",
            self.threads, self.rounds
        )?;
        writeln!(
            f,
            "matrix product {:.0} GFLOP/s (f32), {:.0} (f64); memory {:.1} GB/s\n",
            best.gflops_f32, best.gflops_f64, best.gb_per_s
        )?;
        let mut lines = vec![HEADER.map(str::to_owned)];
        lines.extend(self.rows.iter().flat_map(Row::lines));
        write!(f, "{}", table(&lines))?;
        self.warnings()
            .iter()
            .try_for_each(|warning| writeln!(f, "\n{warning}"))
    }
}

fn shown<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or(String::new(), show)
}

/// A Markdown table with aligned columns; its first line is the header.
fn table<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0).max(3));
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(widths) {
            text += &format!("| {cell:width$} ");
        }
        text += "|\n";
        if number == 0 {
            text.extend(widths.map(|width| format!("|{}", "-".repeat(width + 2))));
            text += "|\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pass;
    use crate::run::Side;
    use serde_json::json;
    use std::process::Command;

    fn measured(line: &serde_json::Value) -> Measured {
        Measured::read(&line.to_string()).unwrap()
    }

    fn group(wanted: Option<Vec<f64>>, sides: &[(&str, Vec<serde_json::Value>)]) -> Group {
        let side = |(name, runs): &(&str, Vec<serde_json::Value>)| Side {
            name: (*name).to_owned(),
            runs: runs.iter().map(measured).collect(),
            command: Command::new("true"),
        };
        Group {
            label: "all".to_owned(),
            sides: sides.iter().map(side).collect(),
            time: None,
            wanted,
        }
    }

    #[test]
    fn the_fastest_that_ran_is_compared_with() {
        let of = |ms: [f64; 2]| ms.map(|ms| json!({ "fwd_ms": ms })).to_vec();
        let sides = [
            ("slow", of([9.0, 11.0])),
            ("fast", of([4.0, 9.0])),
            (
                "large",
                vec![json!({ "fwd_ms": null, "skipped": "memory" })],
            ),
            ("not run", Vec::new()),
        ];
        let passes = vec![Pass::new("fwd", 0.0)];
        let workload = Workload::new("work", [3, 4], passes, || Ok(Vec::new()));
        let ours: Vec<Measured> = of([1.0, 4.0]).iter().map(measured).collect();
        let groups = [
            group(Some(vec![3.5]), &sides),
            group(None, &sides[1..2]),
            group(Some(vec![1.0]), &sides[3..]),
        ];
        let row = Row::new(&workload, 0, &ours, &groups, &Ceilings::default());
        let [missed, earlier, absent] = &row.against[..] else {
            panic!("three comparisons")
        };
        assert_eq!(missed.best.as_deref(), Some("fast 6.50"));
        assert_eq!(missed.verdict, "3.5 MISSED");
        assert!((missed.ratio.unwrap().ratio - 3.0).abs() < 1e-12);
        assert_eq!(missed.others[2].failure.as_deref(), Some("skipped: memory"));
        assert_eq!(earlier.verdict, "undecided");
        assert_eq!((&absent.best, absent.ratio), (&None, None));
        let lines = row.lines();
        assert_eq!(lines[0][..3], ["work (3,4)", "fwd", "2.50"]);
        assert_eq!(lines[2][3..8], ["all", "", "", "", ""]);
    }

    #[test]
    fn columns_are_aligned() {
        let lines = [["a", "long"], ["wider", ""]].map(|line| line.map(str::to_owned));
        let want = "| a     | long |\n|-------|------|\n| wider |      |\n";
        assert_eq!(table(&lines), want);
    }
}
