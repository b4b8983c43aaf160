//! Ours and theirs, alternately.

use crate::report::{Ceilings, Report, Row};
use crate::workload::Peer;
use crate::{Error, Machine, Measured, Python, Workload, machine, workloads};
use rayon::ThreadPoolBuilder;
use std::process::Command;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only workloads whose [`id`](Workload::id) holds all of these.
    pub filter: Vec<String>,
    /// Threads of ours and of theirs.
    pub threads: usize,
    /// The number of times that ours and theirs take turns.
    pub rounds: usize,
    /// The instruction sets that ours are held to.
    pub instructions: Option<String>,
    /// The Python that runs the peers, if they run.
    pub peers: Option<Python>,
}

/// The command that [`run`] calls its own program by, with a workload's id.
pub const CASE: &str = "bench-case";

/// Measures one workload in this process.
///
/// # Errors
/// If there is no such workload, or it fails.
pub fn case(id: &str) -> Result<Measured, Error> {
    bochner_numerics::memory::keep_freed_memory();
    // The thread that asks works too, as PyTorch's does, and need not be woken for every answer.
    ThreadPoolBuilder::new()
        .use_current_thread()
        .build_global()?;
    let found = workloads().into_iter().find(|workload| workload.id() == id);
    Measured::of(&found.ok_or_else(|| format!("there is no workload {id}"))?)
}

/// Measures all workloads that the options ask for.
///
/// # Errors
/// If a workload of ours fails; a peer that does is reported.
pub fn run(options: &Options) -> Result<Report, Error> {
    let (ceilings, others): (Vec<_>, Vec<_>) =
        workloads().into_iter().partition(machine::is_ceiling);
    let mut report = Report {
        machine: Machine::here(
            options.instructions.clone(),
            options.peers.as_ref().and_then(Python::torch),
        ),
        threads: options.threads,
        rounds: options.rounds,
        ceilings: Ceilings::default(),
        rows: Vec::new(),
        checks: Vec::new(),
    };
    for ceiling in &ceilings {
        report.ceilings.add(ceiling, &options.ours(ceiling)?);
    }
    for workload in others.iter().filter(|workload| options.wants(workload)) {
        let rows = options.compare(workload, &report.ceilings)?;
        report.rows.extend(rows);
    }
    report.check();
    Ok(report)
}

/// A program's measurement of one workload, in a process of its own.
pub(crate) fn case_of<'c>(
    program: &'c mut Command,
    workload: &Workload,
    options: &Options,
) -> &'c mut Command {
    let threads = workload.threads.unwrap_or(options.threads);
    program.args([CASE, &workload.id()]);
    program.env("RAYON_NUM_THREADS", threads.to_string());
    if let Some(instructions) = &options.instructions {
        program.env("BOCHNER_INSTRUCTIONS", instructions);
    }
    program
}

impl Options {
    pub(crate) fn wants(&self, workload: &Workload) -> bool {
        let id = workload.id();
        self.filter.iter().all(|part| id.contains(part.as_str()))
    }

    /// Measures a workload of ours in a process of its own.
    pub(crate) fn ours(&self, workload: &Workload) -> Result<Measured, Error> {
        let mut command = Command::new(std::env::current_exe()?);
        let measured = Measured::by(case_of(&mut command, workload, self))?;
        match measured.failure() {
            Some(why) => Err(format!("{}: {why}", workload.id()).into()),
            None => Ok(measured),
        }
    }

    fn compare(&self, workload: &Workload, ceilings: &Ceilings) -> Result<Vec<Row>, Error> {
        let python = self.peers.as_ref();
        let cases = python.iter().flat_map(|_| cases(workload));
        let mut peers: Vec<(Peer, Vec<Measured>)> = cases.map(|peer| (peer, vec![])).collect();
        let mut ours = Vec::new();
        for round in 1..=self.rounds {
            eprintln!("bench: {}, round {round} of {}", workload.id(), self.rounds);
            ours.push(between_crossings(|| self.ours(workload))?);
            for (peer, all) in &mut peers {
                // A peer that failed once is not tried again.
                if let Some(python) = python
                    && all.iter().all(|one: &Measured| one.failure().is_none())
                {
                    all.push(between_crossings(|| python.run(peer, self.threads))?);
                }
            }
        }
        let theirs = |wanted: &Peer| {
            let found = peers.iter().find(|(peer, _)| peer.same_case(wanted));
            found.map_or(&[][..], |(_, all)| all)
        };
        let row = |pass| Row::new(workload, pass, self.threads, &ours, theirs, ceilings);
        Ok(workload.passes.iter().map(row).collect())
    }
}

fn between_crossings(run: impl FnOnce() -> Result<Measured, Error>) -> Result<Measured, Error> {
    let before = machine::crossing_ns();
    let measured = run()?;
    let after = machine::crossing_ns();
    Ok(measured.with_crossings(before.zip(after).map(|(before, after)| [before, after])))
}

/// The cases of all passes, each once.
fn cases(workload: &Workload) -> Vec<Peer> {
    let mut cases: Vec<Peer> = Vec::new();
    for against in workload.passes.iter().flat_map(|pass| &pass.against) {
        for peer in &against.peers {
            if !cases.iter().any(|other| other.same_case(peer)) {
                cases.push(peer.clone());
            }
        }
    }
    cases
}
