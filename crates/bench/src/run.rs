//! Ours and theirs, in turns.

use crate::peers::Peers;
use crate::report::{Report, Row};
use crate::{Base, Ceilings, Error, Measured, Python, Workload};
use crate::{attention, classification, decoding, gaussian, graph, machine, training, translation};
use rayon::ThreadPoolBuilder;
use std::process::Command;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only workloads whose [`id`](Workload::id) holds all of these.
    pub filter: Vec<String>,
    /// Threads of ours and of theirs.
    pub threads: usize,
    /// The number of times that the sides take turns.
    pub rounds: usize,
    /// The instruction sets that ours are held to.
    pub instructions: Option<String>,
    /// The Python that runs the peers, if they run.
    pub peers: Option<Python>,
    /// The earlier state of this program to compare with, if there is one.
    pub base: Option<Base>,
}

/// The command that [`run`] calls its own program by, with a workload's id.
pub const CASE: &str = "bench-case";

/// All workloads but the machine's ceilings.
pub fn workloads() -> Vec<Workload> {
    let groups = [
        attention::workloads(),
        decoding::workloads(),
        training::workloads(),
        classification::workloads(),
        translation::workloads(),
        graph::workloads(),
        gaussian::workloads(),
    ];
    groups.into_iter().flatten().collect()
}

/// A workload of any kind, by its id.
fn find(id: &str) -> Result<Workload, Error> {
    let groups = [machine::ceilings(), workloads(), attention::counted()];
    let mut all = groups.into_iter().flatten();
    let found = all.find(|workload| workload.id() == id);
    found.ok_or_else(|| format!("there is no workload {id}").into())
}

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
    Measured::of(&find(id)?)
}

/// Runs one pass of a workload this number of times, and does nothing else.
///
/// # Errors
/// If there is no such workload or pass, or it fails.
pub fn repeat(id: &str, pass: usize, runs: u64) -> Result<(), Error> {
    let mut passes = (find(id)?.start)()?;
    let run = passes.get_mut(pass).ok_or("no such pass")?;
    (0..runs).try_for_each(|_| run())
}

/// Measures all workloads that the options ask for.
///
/// # Errors
/// If a workload of ours fails; one that fails on another side is reported.
pub fn run(options: &Options) -> Result<Report, Error> {
    let torch = options.peers.as_ref().and_then(Python::torch);
    let mut ceilings = Ceilings::default();
    for ceiling in machine::ceilings() {
        ceilings.add(&ceiling, &options.ours(&ceiling)?);
    }
    let mut rows = Vec::new();
    for workload in workloads().iter().filter(|one| options.wants(one)) {
        rows.extend(options.measure(workload, &ceilings)?);
    }
    Ok(Report {
        machine: machine::description(options.instructions.as_deref(), torch.as_deref()),
        threads: options.threads,
        rounds: options.rounds,
        ceilings,
        rows,
    })
}

/// Another implementation of a workload, and its measurements so far.
pub(crate) struct Side {
    pub(crate) name: String,
    pub(crate) runs: Vec<Measured>,
    pub(crate) command: Command,
}

/// Sides of which the fastest counts.
pub(crate) struct Group {
    pub(crate) label: String,
    pub(crate) sides: Vec<Side>,
    /// The name of their time, if it is not that of the pass.
    pub(crate) time: Option<String>,
    /// The ratios that are wanted; none of an earlier state, which ours must not be slower than.
    pub(crate) wanted: Option<Vec<f64>>,
}

impl Options {
    fn wants(&self, workload: &Workload) -> bool {
        let id = workload.id();
        self.filter.iter().all(|part| id.contains(part.as_str()))
    }

    /// Measures a workload of ours in a process of its own.
    fn ours(&self, workload: &Workload) -> Result<Measured, Error> {
        let program = Command::new(std::env::current_exe()?);
        let measured = Measured::by(&mut self.case_of(program, workload))?;
        match measured.failure() {
            Some(why) => Err(format!("{}: {why}", workload.id()).into()),
            None => Ok(measured),
        }
    }

    /// A program's measurement of one workload.
    fn case_of(&self, mut program: Command, workload: &Workload) -> Command {
        program.args([CASE, &workload.id()]);
        program.env("RAYON_NUM_THREADS", self.threads.to_string());
        if let Some(instructions) = &self.instructions {
            program.env("BOCHNER_INSTRUCTIONS", instructions);
        }
        program
    }

    /// The other sides that the options ask for.
    fn groups(&self, workload: &Workload) -> Result<Vec<Group>, Error> {
        let mut groups = Vec::new();
        if let Some(python) = &self.peers {
            for peers in Peers::of_workload(workload)? {
                let side = |name: &String| Side {
                    name: name.clone(),
                    runs: Vec::new(),
                    command: python.case(&peers.script, peers.case(name, workload), self.threads),
                };
                groups.push(Group {
                    sides: peers.names.iter().map(side).collect(),
                    label: peers.label,
                    time: peers.time,
                    wanted: Some(peers.wanted),
                });
            }
        }
        groups.extend(self.base.iter().map(|base| Group {
            label: base.reference().to_owned(),
            sides: vec![Side {
                name: "before".to_owned(),
                runs: Vec::new(),
                command: self.case_of(base.program(), workload),
            }],
            time: None,
            wanted: None,
        }));
        Ok(groups)
    }

    fn measure(&self, workload: &Workload, ceilings: &Ceilings) -> Result<Vec<Row>, Error> {
        let (mut groups, mut ours) = (self.groups(workload)?, Vec::new());
        for round in 1..=self.rounds {
            eprintln!("bench: {}, round {round} of {}", workload.id(), self.rounds);
            // The side that comes first changes from round to round.
            for is_our_turn in [round % 2 == 1, round % 2 == 0] {
                if is_our_turn {
                    ours.push(self.ours(workload)?);
                    continue;
                }
                for side in groups.iter_mut().flat_map(|group| &mut group.sides) {
                    // One that failed is not tried again.
                    if side.runs.iter().all(|one| one.failure().is_none()) {
                        side.runs.push(Measured::by(&mut side.command)?);
                    }
                }
            }
        }
        let passes = 0..workload.passes.len();
        let rows = passes.map(|pass| Row::new(workload, pass, &ours, &groups, ceilings));
        Ok(rows.collect())
    }
}
