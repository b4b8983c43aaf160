//! One pass of one workload, and how the peers fared with it.

use super::Ceilings;
use crate::statistics::median;
use crate::workload::{Against, Pass, Peer};
use crate::{Measured, Workload};
use serde::{Deserialize, Serialize};

/// One pass of one workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The name of the workload.
    pub work: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The name of the pass.
    pub pass: String,
    /// Threads of ours.
    pub threads: usize,
    /// Median of the rounds' medians.
    pub ms: f64,
    /// The fastest run.
    pub min_ms: f64,
    /// Operations of the products, a second.
    pub gflops: f64,
    /// `gflops` as a share of the fastest product; only with the threads that the product was timed with.
    pub of_product: Option<f64>,
    /// The bytes that must be moved a second, as a share of what the machine moves at best.
    pub of_memory: Option<f64>,
    /// Peak memory above the level at the start, inputs included.
    pub peak_mb: Option<f64>,
    /// The share of the processor's time that others took, in the worst round.
    pub others_cpu: Option<f64>,
    /// Each round; older results do not tell them.
    #[serde(default)]
    pub each: Vec<Round>,
    /// The tokens that the pass goes through, of work whose speed is told by them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// The comparisons with peers.
    pub against: Vec<Comparison>,
    #[serde(skip)]
    pub(super) bytes: f64,
}

/// Ours and the fastest of some peers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// A name for what the peers have in common.
    pub label: String,
    /// Each of them.
    pub peers: Vec<PeerTime>,
    /// The fastest.
    pub best: Option<String>,
    /// Its time over ours.
    pub ratio: Option<f64>,
    /// The smallest ratio that is wanted.
    pub target: Option<f64>,
    /// Whether the ratio reaches the target.
    pub met: Option<bool>,
}

/// One round of ours or of a peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Round {
    /// The median.
    pub ms: Option<f64>,
    /// The nanoseconds in which a cache line went from core to core and back before it, and after.
    pub crossings_ns: Option<[f64; 2]>,
}

/// The times of one peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeerTime {
    /// Its name.
    pub name: String,
    /// Median of the rounds' medians.
    pub ms: Option<f64>,
    /// Peak memory.
    pub peak_mb: Option<f64>,
    /// The share of the processor's time that others took, in the worst round.
    pub others_cpu: Option<f64>,
    /// Each round; older results do not tell them.
    #[serde(default)]
    pub each: Vec<Round>,
    /// Why there is no time.
    pub failure: Option<String>,
}

impl Row {
    pub(crate) fn new<'a>(
        workload: &Workload,
        pass: &Pass,
        threads: usize,
        ours: &[Measured],
        theirs: impl Fn(&Peer) -> &'a [Measured],
        ceilings: &Ceilings,
    ) -> Self {
        let ms = over(ours, |one| one.ms(pass.name), median).unwrap_or(f64::NAN);
        let own_threads = workload.threads.unwrap_or(threads);
        let gflops = pass.operations / ms / 1e6;
        let of = |reached: f64, best: f64| (own_threads == threads).then(|| reached / best);
        let compare = |against| Comparison::new(against, ms, &theirs);
        Self {
            work: workload.name.to_owned(),
            shape: workload.shape.clone(),
            pass: pass.name.to_owned(),
            threads: own_threads,
            ms,
            min_ms: over(ours, |one| one.min_ms(pass.name), least).unwrap_or(f64::NAN),
            gflops,
            of_product: of(gflops, ceilings.gflops(workload.element)),
            of_memory: of(pass.bytes / ms / 1e6, ceilings.gb_per_s),
            peak_mb: over(ours, |one| one.peak_mb(pass.name), median),
            others_cpu: over(ours, Measured::others_cpu, most),
            each: rounds(ours, pass.name),
            tokens: pass.tokens,
            against: pass.against.iter().map(compare).collect(),
            bytes: pass.bytes,
        }
    }

    /// Whether the row holds a time of a peer.
    pub(super) fn has_peers(&self) -> bool {
        self.against.iter().any(|against| against.ratio.is_some())
    }

    /// The tokens per second of ours and of each peer that was timed, in words; `None` where tokens are not counted.
    pub(super) fn tokens_per_second(&self) -> Option<String> {
        let tokens = self.tokens? as f64;
        let of = |name: &str, ms: f64| format!("{name} {:.0}", 1e3 * tokens / ms);
        let peers = self.against.iter().flat_map(|against| &against.peers);
        let theirs =
            peers.filter_map(|peer| Some(of(&format!("PyTorch's {}", peer.name), peer.ms?)));
        let each: Vec<String> = [of("ours", self.ms)].into_iter().chain(theirs).collect();
        let (work, shape, each) = (&self.work, self.shape(), each.join(", "));
        Some(format!("{work} ({shape}), tokens per second: {each}"))
    }

    pub(super) fn shape(&self) -> String {
        let shape: Vec<_> = self.shape.iter().map(usize::to_string).collect();
        shape.join(",")
    }
}

impl Comparison {
    fn new<'a>(against: &Against, ours: f64, theirs: impl Fn(&Peer) -> &'a [Measured]) -> Self {
        let time = |peer: &Peer| {
            let all = theirs(peer);
            PeerTime {
                name: peer.name().to_owned(),
                ms: over(all, |one| one.ms(peer.pass), median),
                peak_mb: over(all, |one| one.peak_mb(peer.pass), median),
                others_cpu: over(all, Measured::others_cpu, most),
                each: rounds(all, peer.pass),
                failure: all.iter().find_map(Measured::failure),
            }
        };
        let peers: Vec<PeerTime> = against.peers.iter().map(time).collect();
        let timed = peers.iter().filter_map(|peer| Some((peer.ms?, &peer.name)));
        let best = timed.min_by(|a, b| a.0.total_cmp(&b.0));
        let ratio = best.map(|(ms, _)| ms / ours);
        Self {
            label: against.label.to_owned(),
            best: best.map(|(_, name)| name.clone()),
            ratio,
            target: against.target,
            met: ratio
                .zip(against.target)
                .map(|(ratio, target)| ratio >= target),
            peers,
        }
    }
}

fn over(
    all: &[Measured],
    of: impl Fn(&Measured) -> Option<f64>,
    summary: impl Fn(&[f64]) -> f64,
) -> Option<f64> {
    let values: Vec<f64> = all.iter().filter_map(of).collect();
    (!values.is_empty()).then(|| summary(&values))
}

fn rounds(all: &[Measured], pass: &str) -> Vec<Round> {
    let round = |one: &Measured| Round {
        ms: one.ms(pass),
        crossings_ns: one.crossings_ns(),
    };
    all.iter().map(round).collect()
}

pub(super) fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

pub(super) fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn measured(line: serde_json::Value) -> Measured {
        Measured::read(&line.to_string()).unwrap()
    }

    fn peer(name: &str) -> Peer {
        Peer {
            script: "attention",
            case: json!({ "impl": name }),
            pass: "fwd",
        }
    }

    #[test]
    fn rounds_keep_their_crossings() {
        let run = |ns| measured(json!({ "fwd_ms": 1.0 })).with_crossings(ns);
        let all = rounds(&[run(Some([80.0, 90.5])), run(None)], "fwd");
        let crossings = all.iter().map(|round| round.crossings_ns);
        assert!(crossings.eq([Some([80.0, 90.5]), None]));
    }

    #[test]
    fn the_fastest_peer_that_ran_is_compared_with() {
        let of = |ms: [f64; 2]| ms.map(|ms| measured(json!({ "fwd_ms": ms }))).to_vec();
        let skipped = measured(json!({ "fwd_ms": null, "skipped": "memory" }));
        let rounds = [
            ("slow", of([9.0, 11.0])),
            ("fast", of([5.0, 7.0])),
            ("large", vec![skipped]),
        ];
        let against = Against {
            label: "all",
            peers: ["slow", "fast", "large", "not run"].map(peer).into(),
            target: Some(3.5),
        };
        let theirs = |wanted: &Peer| {
            let found = rounds.iter().find(|(name, _)| *name == wanted.name());
            found.map_or(&[][..], |(_, all)| all)
        };
        let compared = Comparison::new(&against, 2.0, theirs);
        assert_eq!(compared.best.as_deref(), Some("fast"));
        assert_eq!((compared.ratio, compared.met), (Some(3.0), Some(false)));
        assert_eq!(
            compared.peers[2].failure.as_deref(),
            Some("skipped: memory")
        );
        let times = compared.peers[0].each.iter().map(|round| round.ms);
        assert!(times.eq([Some(9.0), Some(11.0)]));
        let alone = Comparison::new(&against, 2.0, |_: &Peer| &[][..]);
        assert_eq!((alone.best, alone.ratio, alone.met), (None, None, None));
    }

    #[test]
    fn tokens_per_second_are_told_of_ours_and_of_every_peer_that_ran() {
        let against = Against {
            label: "all",
            peers: ["softmax", "not run"].map(peer).into(),
            target: None,
        };
        let of = |tokens| {
            let pass = Pass {
                tokens,
                against: vec![against.clone()],
                ..Pass::new("fwd", 1.0, 1.0)
            };
            let workload = Workload::new("text", [3, 4], vec![pass], || Ok(Vec::new()));
            let ours = [measured(json!({ "fwd_ms": 2.0, "fwd_min_ms": 1.0 }))];
            let softmax = [measured(json!({ "fwd_ms": 5.0 }))];
            let theirs = |peer: &Peer| match peer.name() {
                "softmax" => &softmax[..],
                _ => &[],
            };
            let ceilings = Ceilings::default();
            let row = Row::new(&workload, &workload.passes[0], 2, &ours, theirs, &ceilings);
            row.tokens_per_second()
        };
        assert_eq!(of(None), None);
        let told = "text (3,4), tokens per second: ours 5000, PyTorch's softmax 2000";
        assert_eq!(of(Some(10)).as_deref(), Some(told));
    }
}
