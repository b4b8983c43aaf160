//! What was measured, as JSON and as a table.

use crate::form::{Form, Inputs, Pass};
use crate::library::{self, OURS, PEERS};
use crate::machine::Machine;
use crate::number::short;
use crate::statistics::{Paired, median};
use crate::{Error, Shape};
use bochner_numerics::parallel::awake;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

/// One call of the program.
#[derive(Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) threads: usize,
    pub(crate) rounds: usize,
    /// The share of the processor's time that other processes took.
    pub(crate) others_cpu: Option<f64>,
    pub(crate) rows: Vec<Row>,
}

/// One pass at one shape.
#[derive(Serialize, Deserialize)]
pub(crate) struct Row {
    pass: Pass,
    shape: Shape,
    forms: Vec<Timed>,
}

/// The times of one form.
#[derive(Serialize, Deserialize)]
struct Timed {
    library: String,
    form: String,
    /// The largest difference from our results, as a share of the one that is allowed.
    error: f64,
    median_ms: f64,
    /// One time a round; the forms took turns within each.
    ms: Vec<f64>,
}

impl Row {
    pub(crate) fn measured(pass: Pass, shape: Shape, rounds: usize) -> Result<Self, Error> {
        let mut forms = library::forms(pass, &Rc::new(Inputs::random(shape)))?;
        let expected = forms[0].results()?;
        let errors = forms.iter_mut().map(|form| form.error(&expected));
        let errors = errors.collect::<Result<Vec<_>, _>>()?;
        for form in &mut forms {
            milliseconds(form)?; // warms up once more
        }
        let mut times = vec![Vec::with_capacity(rounds); forms.len()];
        for round in 0..rounds {
            for turn in 0..forms.len() {
                let place = (round + turn) % forms.len();
                times[place].push(milliseconds(&mut forms[place])?);
            }
        }
        let all = forms.iter().zip(errors).zip(times);
        let timed = all.map(|((form, error), ms)| Timed {
            library: form.library.to_owned(),
            form: form.name.to_owned(),
            error,
            median_ms: median(&ms),
            ms,
        });
        Ok(Self {
            pass,
            shape,
            forms: timed.collect(),
        })
    }

    /// The fastest form of a library.
    fn best(&self, library: &str) -> Option<&Timed> {
        let own = self.forms.iter().filter(|form| form.library == library);
        own.min_by(|a, b| a.median_ms.total_cmp(&b.median_ms))
    }

    fn line(&self) -> String {
        let ours = self.best(OURS);
        let ms = |library| {
            let best = self.best(library);
            best.map_or_else(String::new, |best| {
                format!("{} (`{}`)", short(best.median_ms), best.form)
            })
        };
        let ratio = |library| {
            let paired = self
                .best(library)
                .zip(ours)
                .and_then(|(best, ours)| Paired::of(&best.ms, &ours.ms));
            paired.map_or_else(
                String::new,
                |Paired {
                     ratio,
                     interval: [low, high],
                 }| {
                    format!("{} ({} to {})", short(ratio), short(low), short(high))
                },
            )
        };
        let shape = self.shape.map(|size| size.to_string()).join(",");
        let ours = ours.map_or_else(String::new, |ours| short(ours.median_ms));
        let cells = [PEERS.map(ms), PEERS.map(ratio)].concat().join(" | ");
        format!("| {} {shape} | {ours} | {cells} |\n", self.pass.name())
    }
}

fn milliseconds(form: &mut Form) -> Result<f64, Error> {
    let clock = Instant::now();
    let held = awake(|| (form.run)())?;
    // What a pass allocates it frees in its own time.
    drop(black_box(held));
    Ok(1e3 * clock.elapsed().as_secs_f64())
}

impl Report {
    /// A sentence on the machine, and a table of the fastest forms.
    pub(crate) fn table(&self) -> String {
        let others = self.others_cpu.map_or_else(String::new, |others| {
            format!("; others took {:.1} % of the processor", 100.0 * others)
        });
        let (machine, threads, rounds) = (&self.machine, self.threads, self.rounds);
        let mut text = format!("{machine}; {threads} threads, {rounds} rounds{others}.\n\n");
        let over = PEERS.map(|peer| format!("{peer} over ours"));
        let head = [PEERS.map(str::to_owned), over].concat().join(" | ");
        text += &format!(
            "| pass, shape | ours | {head} |\n|---|---|{}\n",
            "---|".repeat(2 * PEERS.len())
        );
        text.extend(self.rows.iter().map(Row::line));
        text
    }
}
