//! What is written about Table 1.

use super::SUITE;
use super::counts::{
    COPULA_NAMES, CopulaTerm, Counted, Fitted, HEADS, KINDS, NAMES, copula_terms, linear_time,
    registry,
};
use super::polynomial::monomial;
use super::timing::{Form, Growth, KERNEL, Plan, SLOPE_FROM, Timed, WIDTH, growths, measure};
use crate::assessment::{Assessment, keep};
use crate::runner::pool;
use crate::{Config, Error, Store};
use bochner_report::document::{Axis, Chart, Document, Marks, Picture, Series};
use bochner_report::statistics::Line;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};

/// Everything a report is written from.
struct Account {
    fitted: Vec<Fitted>,
    counted: Vec<Counted>,
    copula: Vec<CopulaTerm>,
    timed: Vec<Timed>,
    growths: Vec<Growth>,
    plan: Plan,
}

/// One count or one time as it is kept.
#[derive(Serialize)]
struct Row<'a> {
    suite: &'static str,
    scale: &'static str,
    #[serde(flatten)]
    measured: Measured<'a>,
    code_version: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "measured", rename_all = "lowercase")]
enum Measured<'a> {
    Operations(&'a Counted),
    Seconds(&'a Timed),
}

/// Counts, times and writes the report.
pub(crate) fn run(
    config: &Config,
    store: &Store,
    interrupt: &AtomicBool,
) -> Result<Assessment, Error> {
    let go_on = || !interrupt.load(Ordering::Relaxed);
    let account = pool(config.threads, 1)?.install(|| account(config, go_on))?;
    let document = account.document(config);
    let files = keep(config, store, SUITE, &document, &account.rows(config))?;
    Ok(Assessment {
        suite: SUITE,
        table: account.table(),
        passed: account.passed(),
        interrupted: !go_on(),
        files,
    })
}

fn account(config: &Config, go_on: impl Fn() -> bool) -> Result<Account, Error> {
    eprintln!("complexity: counting operations");
    let (mut fitted, mut counted) = registry()?;
    let (forms, counts) = linear_time()?;
    fitted.extend(forms);
    counted.extend(counts);
    let plan = Plan::of(config.scale);
    let timed = measure(&plan, go_on)?;
    Ok(Account {
        fitted,
        counted,
        copula: copula_terms()?,
        growths: growths(&timed)?,
        timed,
        plan,
    })
}

impl Account {
    /// Counts are judged; times are reported with their verdict, and depend on the machine.
    fn passed(&self) -> bool {
        self.fitted.iter().all(Fitted::holds) && self.copula.iter().all(CopulaTerm::holds)
    }

    fn rows<'a>(&'a self, config: &'a Config) -> Vec<Row<'a>> {
        let counts = self.counted.iter().map(Measured::Operations);
        let times = self.timed.iter().map(Measured::Seconds);
        let row = |measured| Row {
            suite: SUITE,
            scale: config.scale.name(),
            measured,
            code_version: &config.code_version,
        };
        counts.chain(times).map(row).collect()
    }

    fn table(&self) -> Vec<Vec<String>> {
        let mut table = vec![["", "paper", "verdict", "ours"].map(str::to_owned).to_vec()];
        table.extend(self.fitted.iter().map(|fitted| {
            let ours = fitted.polynomials[0].written(NAMES);
            let paper = fitted.published.clone();
            vec![fitted.name.to_owned(), paper, verdict(fitted), ours]
        }));
        table.extend(self.copula.iter().map(|term| {
            let name = format!("copula, {}", term.copula);
            let ours = term.polynomials[0].written(COPULA_NAMES);
            vec![name, "d M^3".to_owned(), copula_verdict(term), ours]
        }));
        table.extend(self.growths.iter().map(|growth| {
            let name = format!("{} in time", full_name(growth));
            let paper = format!("slope {}", expected(growth));
            vec![name, paper, time_verdict(growth), slope(growth)]
        }));
        table
    }

    fn document(&self, config: &Config) -> Document {
        let mut document = Document::new(format!("Table 1, complexity, at scale {}", config.scale));
        document.text(format!(
            "Operations of one forward pass of a multi-head layer on one sequence, counted: \
             projections, weights and output. T tokens, width d over M = {HEADS} heads, R spectral \
             points. A multiply-add is a multiplication or division with the addition that goes with \
             it; additions on their own (sums of weights, means over time) are not counted. The \
             polynomials go through the counts on a grid of T, R and d, in exact arithmetic. \
             **Reproduced** means: they give the counts at other points exactly, and every term \
             that grows with T is bounded by a term of the paper's, or is the output's T^2 d."
        ));
        self.write_counts(&mut document);
        self.write_copula(&mut document);
        if !self.timed.is_empty() {
            self.write_times(&mut document);
        }
        document.heading("What the reader must know");
        document.list(NOTES.iter().map(|note| (*note).to_owned()).collect());
        document.text(format!("Code {}.", config.code_version));
        document
    }

    fn write_counts(&self, document: &mut Document) {
        document.heading("Operations");
        let rows = self.fitted.iter().map(|fitted| {
            let (name, paper) = (fitted.name.to_owned(), fitted.published.clone());
            let mut row = vec![name, paper];
            row.push(fitted.polynomials[0].written(NAMES));
            row.push(verdict(fitted));
            row
        });
        document.table(
            &["model", "paper", "ours: multiply-adds", "verdict"],
            rows.collect(),
        );
        let rows = self.fitted.iter().map(|fitted| {
            let others = fitted.polynomials[1..].iter();
            let others = others.map(|polynomial| polynomial.written(NAMES));
            [vec![fitted.name.to_owned()], others.collect()].concat()
        });
        let head = [&["model"], &KINDS.map(|(name, _)| name)[1..]].concat();
        document.table(&head, rows.collect());
    }

    fn write_copula(&self, document: &mut Document) {
        if self.copula.is_empty() {
            return;
        }
        document.heading("What the copula adds");
        document.text(
            "The operations of MIKAN less those of the same model with independent heads, for M \
             heads of width h = d / M. The paper's term is d M^3, as a Cholesky factorisation for \
             each latent dimension would cost; here the factors are parametrised directly.",
        );
        let rows = self.copula.iter().map(|term| {
            let kinds = term.polynomials[..2].iter();
            let written = kinds.map(|polynomial| polynomial.written(COPULA_NAMES));
            let mut row = vec![term.copula.to_owned(), "d M^3".to_owned()];
            row.extend(written);
            row.push(copula_verdict(term));
            row
        });
        document.table(
            &[
                "factors",
                "paper",
                "ours: multiply-adds",
                "exponentials",
                "verdict",
            ],
            rows.collect(),
        );
    }

    fn write_times(&self, document: &mut Document) {
        document.heading("Time");
        document.text(format!(
            "Milliseconds of the mechanism's forward pass (without the projections), medians of {} \
             repetitions; batch 1, d = {WIDTH}, {HEADS} heads, single precision, {} thread(s). Of \
             one thread it is its time on the processor, where the system tells it: what the wall \
             clock would show on an idle machine. The slope is that of log time over log T from T = \
             {SLOPE_FROM} on, over all repetitions, with its standard error; the verdict is on it. \
             The slope by the wall clock stands beside it.",
            self.plan.repetitions, self.timed[0].threads,
        ));
        let lengths = &self.plan.tokens;
        let mut head = vec!["model".to_owned(), "R".to_owned()];
        head.extend(lengths.iter().map(|tokens| format!("T = {tokens}")));
        head.extend(["slope", "expected", "verdict", "by the wall"].map(str::to_owned));
        let rows = self.growths.iter().map(|growth| self.time_row(growth));
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        document.table(&head, rows.collect());
        document.list(self.crossings());
        document.pictures("", self.charts());
    }

    /// From which length on the linear-time form is faster.
    fn crossings(&self) -> Vec<String> {
        let of = |points: usize, form: Form| {
            let mut growths = self.growths.iter();
            growths.find(|g| g.mechanism == KERNEL && g.points == points && g.form == form)
        };
        let mut said = Vec::new();
        for &points in &self.plan.points {
            let forms = (of(points, Form::Quadratic), of(points, Form::Linear));
            if let (Some(quadratic), Some(linear)) = forms {
                let wins = |t: &usize| Some(linear.at(*t)? < quadratic.at(*t)?);
                let longest_first = self.plan.tokens.iter().rev();
                let first = longest_first.take_while(|t| wins(t) == Some(true)).last();
                said.push(match first {
                    Some(t) => format!(
                        "R = {points}: of the lengths timed, the linear-time form is the faster from \
                         T = {t} on."
                    ),
                    None => format!("R = {points}: the quadratic form is faster at every length."),
                });
            }
        }
        said
    }

    fn time_row(&self, growth: &Growth) -> Vec<String> {
        let mut row = vec![name(growth), points(growth)];
        row.extend(self.plan.tokens.iter().map(|&tokens| {
            let seconds = growth.at(tokens);
            seconds.map_or_else(|| "-".to_owned(), |s| format!("{:.2}", s * 1e3))
        }));
        row.extend([slope(growth), expected(growth), time_verdict(growth)]);
        row.push(line(growth.wall));
        row
    }

    fn charts(&self) -> Vec<Picture> {
        let chart = |points: usize| {
            let own = self
                .growths
                .iter()
                .filter(|g| g.mechanism != KERNEL && (g.points == 0 || g.points == points));
            times(format!("forward pass, R = {points}"), own.map(series))
        };
        let forms = self.growths.iter().filter(|g| g.mechanism == KERNEL);
        let softmax = self.growths.iter().filter(|g| g.mechanism == "softmax");
        let forms = softmax.chain(forms).map(|growth| Series {
            name: full_name(growth),
            ..series(growth)
        });
        let mut charts: Vec<Picture> = self.plan.points.iter().copied().map(chart).collect();
        charts.push(times("the two forms of a squared kernel".to_owned(), forms));
        charts
    }
}

fn times(title: String, series: impl Iterator<Item = Series>) -> Picture {
    Picture::Chart(Chart {
        title,
        x: Axis::Log("tokens T".to_owned()),
        y: Axis::Log("milliseconds".to_owned()),
        series: series.collect(),
    })
}

fn series(growth: &Growth) -> Series {
    let medians = growth.medians.iter();
    Series {
        name: name(growth),
        marks: Marks::Line,
        points: medians.map(|&(t, s)| (t as f64, s * 1e3)).collect(),
    }
}

fn name(growth: &Growth) -> String {
    match growth.form {
        Form::Quadratic => growth.mechanism.clone(),
        Form::Linear => format!("{}, linear form", growth.mechanism),
    }
}

fn full_name(growth: &Growth) -> String {
    match growth.points {
        0 => name(growth),
        points => format!("{}, R = {points}", name(growth)),
    }
}

fn points(growth: &Growth) -> String {
    match growth.points {
        0 => String::new(),
        points => points.to_string(),
    }
}

fn slope(growth: &Growth) -> String {
    line(growth.slope)
}

fn line(line: Option<Line>) -> String {
    line.map_or_else(
        || "-".to_owned(),
        |line| format!("{:.2} ± {:.2}", line.slope, line.error),
    )
}

fn expected(growth: &Growth) -> String {
    let (low, high) = growth.allowed();
    format!("{low} to {high}")
}

fn time_verdict(growth: &Growth) -> String {
    judged(growth.holds()).to_owned()
}

fn judged(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "reproduced",
        Some(false) => "**not reproduced**",
        None => "not tested",
    }
}

fn verdict(fitted: &Fitted) -> String {
    if !fitted.exact {
        return "**not reproduced**: no polynomial".to_owned();
    }
    let beyond: Vec<String> = fitted
        .beyond()
        .into_iter()
        .map(|p| monomial(p, NAMES))
        .collect();
    if beyond.is_empty() {
        return judged(Some(true)).to_owned();
    }
    format!(
        "**not reproduced**: {} beyond the formula",
        beyond.join(", ")
    )
}

fn copula_verdict(term: &CopulaTerm) -> String {
    match (term.holds(), term.degree()) {
        (true, 3) => "reproduced, whatever T".to_owned(),
        (true, degree) => format!("reproduced, whatever T; M^{degree} suffices"),
        (false, _) => judged(Some(false)).to_owned(),
    }
}

/// What is not in the numbers, or not as the reader may think.
const NOTES: [&str; 5] = [
    "The layer has four projections (queries, keys, values, output): 4 T d^2.",
    "Terms without T are the networks that make the spectral points, and the draws. The paper's \
     formula has no room for them where R d^2 exceeds T d R; they are written out above.",
    "Squared kernels need no exponential for each pair; the magnitudes' exponentials are recomputed \
     for every block of 128 queries, so that there are T (1 + T / 128) of them a head, not T. Where \
     T is no multiple of 128 that is T (1 + ceil(T / 128)), no polynomial; the grid has multiples \
     only.",
    "Keys are taken in blocks of 512. The running maximum of a softmax costs an exponential and two \
     multiplications for each row and block, that is T ceil(T / 512) a head beside the T^2: beyond \
     512 tokens no polynomial either, so the grid ends there.",
    "Closed-form similarities do not depend on R. What a mask would save is not counted: the counts \
     are without one.",
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn rows_are_written_like_the_published_ones() {
        let published = include_str!("../../../../docs/results/complexity-desk/rows.jsonl");
        let row = |measured| {
            let row = Row {
                suite: SUITE,
                scale: "desk",
                measured,
                code_version: "0.1.0+8a2ceba4fc7f",
            };
            serde_json::to_string(&row).unwrap()
        };
        let counted = Counted {
            mechanism: "softmax".into(),
            tokens: 128,
            points: 0,
            width: 32,
            heads: 8,
            multiply_adds: 1_709_056,
            exponentials: 132_096,
            sines_cosines: 0,
            powers: 0,
        };
        let wanted = published.lines().next().unwrap();
        assert_eq!(row(Measured::Operations(&counted)), wanted);

        let timed = |line: &&str| line.contains("\"measured\":\"seconds\"");
        let wanted = published.lines().find(timed).unwrap();
        let values: Value = serde_json::from_str(wanted).unwrap();
        let seconds = |field: &str| serde_json::from_value(values[field].clone()).unwrap();
        let timed = Timed {
            mechanism: "softmax".into(),
            form: Form::Quadratic,
            points: 0,
            tokens: 256,
            width: 64,
            heads: 8,
            threads: 1,
            seconds: seconds("seconds"),
            processor_seconds: seconds("processor_seconds"),
        };
        assert_eq!(row(Measured::Seconds(&timed)), wanted);
    }
}
