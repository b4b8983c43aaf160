//! A report as Markdown.

use super::row::{least, most};
use super::{Ceilings, Comparison, Report, Row};
use crate::Machine;
use std::fmt;

/// Above this share of the processor's time, other processes have spoilt a measurement.
pub(super) const BUSY: f64 = 0.05;

const HEADER: [&str; 13] = [
    "work",
    "shape",
    "pass",
    "ms",
    "against",
    "best",
    "ratio",
    "target",
    "GFLOP/s",
    "of product",
    "of memory",
    "peak MiB",
    "others",
];

/// The tables, as Markdown.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Machine {
            processor,
            cores,
            instruction_sets,
            forced,
            commit,
            rustc,
            torch,
        } = &self.machine;
        let sets = instruction_sets.join(", ");
        let forced = forced.as_deref().unwrap_or("all of them");
        let torch = torch.as_deref().unwrap_or("not run");
        let commit = commit.as_deref().unwrap_or("unknown");
        let Self {
            threads, rounds, ..
        } = self;
        writeln!(
            f,
            "{processor}, {cores} cores ({sets}); ours ({commit}) with {forced}, {rustc}; \
             torch {torch}; {threads} threads, {rounds} rounds"
        )?;
        let Ceilings {
            gflops_f32,
            gflops_f64,
            gb_per_s,
        } = self.ceilings;
        writeln!(
            f,
            "matrix product {gflops_f32:.0} GFLOP/s (f32), {gflops_f64:.0} (f64); \
             memory {gb_per_s:.1} GB/s"
        )?;
        if let Some([least, most]) = self.crossings() {
            writeln!(
                f,
                "a cache line from core to core and back: {least:.0} to {most:.0} ns"
            )?;
        }
        writeln!(f)?;
        let mut lines = vec![HEADER.map(str::to_owned)];
        lines.extend(self.rows.iter().flat_map(Row::lines));
        write!(f, "{}", table(&lines))?;
        if !self.checks.is_empty() {
            let mut lines = vec![["check", "value", "bound", "met"].map(str::to_owned)];
            lines.extend(self.checks.iter().map(|check| {
                [
                    check.what.clone(),
                    format!("{:.2}", check.value),
                    check.bound.clone(),
                    (if check.met { "yes" } else { "NO" }).to_owned(),
                ]
            }));
            write!(f, "\n{}", table(&lines))?;
        }
        let notes = self.rows.iter().filter_map(Row::tokens_per_second);
        for note in notes.chain(self.warnings()) {
            writeln!(f, "\n{note}")?;
        }
        Ok(())
    }
}

impl Row {
    /// A line for each comparison, or one without.
    fn lines(&self) -> Vec<[String; HEADER.len()]> {
        let share = |share: Option<f64>| some(share, |share| format!("{:.0} %", 100.0 * share));
        let alone = if self.of_product.is_some() {
            ""
        } else {
            " on 1 thread"
        };
        let line = |against: Option<&Comparison>| {
            let [label, best, ratio, target] = against.map(Comparison::cells).unwrap_or_default();
            [
                self.work.to_owned(),
                self.shape() + alone,
                self.pass.to_owned(),
                format!("{:.2}", self.ms),
                label,
                best,
                ratio,
                target,
                format!("{:.0}", self.gflops),
                share(self.of_product),
                share(self.of_memory),
                some(self.peak_mb, |peak| format!("{peak:.0}")),
                some(self.others_cpu, |others| format!("{others:.2}")),
            ]
        };
        let lines: Vec<_> = self
            .against
            .iter()
            .map(|against| line(Some(against)))
            .collect();
        if lines.is_empty() {
            vec![line(None)]
        } else {
            lines
        }
    }
}

impl Comparison {
    /// The label, the fastest peer, its time over ours, and the target.
    fn cells(&self) -> [String; 4] {
        let own = self
            .peers
            .iter()
            .find(|peer| Some(&peer.name) == self.best.as_ref());
        let ms = some(own.and_then(|peer| peer.ms), |ms| format!(" {ms:.2}"));
        let met = match self.met {
            Some(true) => " met",
            Some(false) => " MISSED",
            None => "",
        };
        [
            self.label.to_owned(),
            self.best.clone().unwrap_or_default() + &ms,
            some(self.ratio, |ratio| format!("{ratio:.2}")),
            some(self.target, |target| format!("{target}")) + met,
        ]
    }
}

impl Report {
    /// The least and the most of all rounds, ours and theirs.
    fn crossings(&self) -> Option<[f64; 2]> {
        let compared = self.rows.iter().flat_map(|row| &row.against);
        let theirs = compared.flat_map(|against| &against.peers);
        let theirs = theirs.flat_map(|peer| &peer.each);
        let all = self.rows.iter().flat_map(|row| &row.each).chain(theirs);
        let all: Vec<f64> = all
            .filter_map(|round| round.crossings_ns)
            .flatten()
            .collect();
        (!all.is_empty()).then(|| [least(&all), most(&all)])
    }

    /// Warnings about numbers that are spoilt or missing.
    fn warnings(&self) -> Vec<String> {
        let mut busy = Vec::new();
        let mut warnings = Vec::new();
        for row in &self.rows {
            busy.extend(row.others_cpu);
            for peer in row.against.iter().flat_map(|against| &against.peers) {
                busy.extend(peer.others_cpu);
                let about = format!("{} ({}) {}", row.work, row.shape(), row.pass);
                let note = |why: &str| format!("{about}: no time of {}: {why}", peer.name);
                warnings.extend(peer.failure.as_deref().map(note));
            }
        }
        let all = busy.len();
        busy.retain(|others| *others > BUSY);
        if let Some(worst) = busy.iter().copied().reduce(f64::max) {
            warnings.push(format!(
                "The machine was busy: other processes took up to {:.0} % of it, and more than {:.0} % in {} of {all} measurements. Do not quote these ratios.",
                100.0 * worst,
                100.0 * BUSY,
                busy.len(),
            ));
        }
        warnings
    }
}

fn some(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or(String::new(), show)
}

/// A Markdown table with aligned columns; its first line is the header.
pub(super) fn table<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0).max(3));
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(widths) {
            text += &format!("| {cell:width$} ");
        }
        text += "|\n";
        if number == 0 {
            text += &widths
                .map(|width| format!("|{}", "-".repeat(width + 2)))
                .concat();
            text += "|\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let lines = [
            ["a".to_owned(), "long".to_owned()],
            ["wider".to_owned(), String::new()],
        ];
        let want = "| a     | long |\n|-------|------|\n| wider |      |\n";
        assert_eq!(table(&lines), want);
    }
}
