//! Mechanisms of the registry, each at the shapes at which it is compared with PyTorch's forms of it.
//!
//! Shapes are those of attention, (B, H, T, d, dv, R). R is the number of random features, of directions,
//! or of the keys that a window shows.

use crate::Error;
use crate::attention::{Inputs, inputs};
use crate::workload::{Against, Pass, Run, Workload};
use bochner_attention::{
    Bipolar, Cat, Mask, Performer, Primal, Softmax, Variant,
    mechanism::{Cotangents, PrimalTrace, PrimalWeights, Size, Streams},
};
use bochner_numerics::Seed;
use serde_json::json;
use std::hint::black_box;

type Shape = [usize; 6];

pub(crate) const CAT: &str = "cat";
pub(crate) const WINDOW: &str = "softmax-window";

/// The lengths over which the time of CAT is held to grow almost linearly.
pub(crate) const CAT_LENGTHS: [usize; 3] = [1024, 4096, 16_384];

const PERFORMER: Shape = [1, 8, 16_384, 64, 64, 256];
const PERFORMER_PYTORCH: [&str; 2] = ["performer", "performer_compile"];
const CAUSAL: Shape = [1, 8, 2048, 64, 64, 256];
const PRIMAL: Shape = [4, 8, 4096, 64, 64, 32];
const BIPOLAR: Shape = [4, 8, 512, 64, 64, 1];

/// The shape at which a window is compared with attention to the whole sequence.
pub(crate) const LONG_WINDOW: Shape = [1, 8, 16_384, 64, 64, 256];

/// One mechanism at one shape.
struct Case {
    name: &'static str,
    variant: Variant,
    mask: Mask,
    shape: Shape,
    /// Multiplications with additions of the products of a head, forward and backward.
    operations: [f64; 2],
    /// The script of the peers.
    script: &'static str,
    peers: Vec<Peers>,
}

const SCRIPT: &str = "mechanisms";

/// Peers of which the fastest counts: a label, their names, and the ratios wanted.
type Peers = (&'static str, &'static [&'static str], [Option<f64>; 2]);

/// All mechanisms at their shapes.
pub(crate) fn workloads() -> Vec<Workload> {
    cases().into_iter().map(Case::workload).collect()
}

/// performer-pytorch on a long sequence, with the features that its attention has by default.
pub(crate) fn performer_pytorch(pass: &'static str, target: Option<f64>) -> Against {
    let cases = PERFORMER_PYTORCH.map(|name| json!({ "impl": name, "shape": PERFORMER }));
    Against::new("performer-pytorch", SCRIPT, cases, pass, target)
}

/// The names of these mechanisms.
pub(crate) fn names() -> Vec<&'static str> {
    cases().iter().map(|case| case.name).collect()
}

fn cases() -> Vec<Case> {
    let causal = Mask::none().with_causality();
    let mut cases = vec![
        Case {
            name: "performer",
            variant: Performer::default().into(),
            mask: Mask::none(),
            shape: PERFORMER,
            operations: performer(PERFORMER),
            script: SCRIPT,
            peers: vec![
                ("performer-pytorch", &PERFORMER_PYTORCH, [Some(2.5); 2]),
                (
                    "best form written out",
                    &["performer_tuned", "performer_tuned_compile"],
                    [None; 2],
                ),
            ],
        },
        Case {
            name: "performer-causal",
            variant: Performer::default().into(),
            mask: causal.clone(),
            shape: CAUSAL,
            operations: performer(CAUSAL),
            script: SCRIPT,
            peers: vec![
                (
                    "performer-pytorch",
                    &["performer_causal"],
                    [None, Some(4.0)],
                ),
                (
                    "best form written out",
                    &[
                        "performer_causal_chunked",
                        "performer_causal_chunked_compile",
                    ],
                    [None, Some(4.0)],
                ),
            ],
        },
        Case {
            name: "primal",
            variant: primal_of(PRIMAL[5]).into(),
            mask: Mask::none(),
            shape: PRIMAL,
            operations: primal(PRIMAL),
            script: SCRIPT,
            peers: vec![("best form", &["primal", "primal_compile"], [Some(2.0); 2])],
        },
        Case {
            name: WINDOW,
            variant: Softmax::default().into(),
            mask: window(LONG_WINDOW[5]),
            shape: LONG_WINDOW,
            operations: pairs(LONG_WINDOW, LONG_WINDOW[5]),
            script: SCRIPT,
            peers: vec![("FlexAttention", &["softmax_window"], [None; 2])],
        },
        Case {
            name: "bipolar",
            variant: Bipolar::default().into(),
            mask: Mask::none(),
            shape: BIPOLAR,
            operations: bipolar(BIPOLAR),
            script: "bipolar",
            peers: vec![
                (
                    "best form written out",
                    &[
                        "bipolar",
                        "bipolar_compile",
                        "bipolar_tuned",
                        "bipolar_tuned_compile",
                    ],
                    [Some(3.0); 2],
                ),
                ("SDPA and its row sums", &["bipolar_sdpa"], [Some(3.0); 2]),
            ],
        },
    ];
    cases.extend(CAT_LENGTHS.map(|length| {
        let is_compared = length == 4096;
        let peers: &[&str] = if is_compared {
            &["cat", "cat_compile"]
        } else {
            &[]
        };
        let target = [3.0, 2.5].map(|ratio| is_compared.then_some(ratio));
        Case {
            name: CAT,
            variant: Cat::default().into(),
            mask: Mask::none(),
            shape: [4, 8, length, 64, 64, 1],
            operations: [0.0; 2],
            script: SCRIPT,
            peers: vec![("torch.fft", peers, target)],
        }
    }));
    cases
}

/// Primal-Attention with data-dependent weights of ten rows a direction.
fn primal_of(rank: usize) -> Primal {
    Primal {
        rank,
        weights: PrimalWeights::Data {
            rows: 10 * rank,
            trace: PrimalTrace::Data,
        },
        ..Primal::default()
    }
}

/// A query's own key and those before it, `size` in all.
fn window(size: usize) -> Mask {
    let past = Mask::none().with_causality();
    past.with_window(size - 1, 0).expect("a window with a key")
}

/// The features of queries and keys, the sums over the keys, and the sums over the features; backward the
/// features again, two products for each sum, and one for each feature map, which has no parameters.
fn performer([_, _, t, d, dv, m]: Shape) -> [f64; 2] {
    let [t, d, dv, m] = [t, d, dv, m].map(|n| n as f64);
    let (features, sums) = (2.0 * t * m * d, t * m * dv);
    [features + 2.0 * sums, 2.0 * features + 4.0 * sums]
}

/// The projections of the sample, the scores and the output; backward two more for each.
fn primal([_, _, t, d, dv, s]: Shape) -> [f64; 2] {
    let [t, d, dv, s] = [t, d, dv, s].map(|n| n as f64);
    let forward = 2.0 * t * d * s + 2.0 * t * s * dv + 2.0 * (10.0 * s) * d * s;
    [forward, 2.0 * forward]
}

/// The scores and the weighted values of `keys` keys a query; backward the scores again, and two products for each.
fn pairs([_, _, t, d, dv, _]: Shape, keys: usize) -> [f64; 2] {
    let [pairs, d, dv] = [t * keys, d, dv].map(|n| n as f64);
    [pairs * (d + dv), pairs * (3.0 * d + 2.0 * dv)]
}

/// Every query meets every key.
fn bipolar(shape: Shape) -> [f64; 2] {
    pairs(shape, shape[2])
}

impl Case {
    fn workload(self) -> Workload {
        let [b, h, t, d, dv, _] = self.shape.map(|n| n as f64);
        let [read, written] = [b * h * t * (2.0 * d + dv), b * h * t * dv];
        let [forward, backward] = self.operations.map(|head| 2.0 * b * h * head);
        let pass = |name: &'static str, operations, numbers: f64| {
            let against = self.peers.iter().filter(|(_, names, _)| !names.is_empty());
            let against = against.map(|&(label, names, targets)| {
                let cases = names
                    .iter()
                    .map(|name| json!({ "impl": name, "shape": self.shape }));
                let target = targets[usize::from(name != "fwd")];
                Against::new(label, self.script, cases, name, target)
            });
            Pass {
                against: against.collect(),
                ..Pass::new(name, operations, 4.0 * numbers)
            }
        };
        let passes = vec![
            pass("fwd", forward, read + written),
            pass("fwd_bwd", forward + backward, 2.0 * (read + written)),
        ];
        let (variant, mask, shape) = (self.variant, self.mask, self.shape);
        Workload::new(self.name, shape, passes, move || {
            start(&variant, &mask, shape)
        })
    }
}

/// The two passes of a mechanism at its initial values.
pub(crate) fn start(variant: &Variant, mask: &Mask, shape: Shape) -> Result<Vec<Run>, Error> {
    let inputs = inputs(shape);
    let (_, heads, _, width) = inputs.q.dim();
    let mut stream = Seed::new(1).stream("initial values");
    let size = Size { heads, width };
    let parameters = variant.mechanism::<f32>().initial(size, &mut stream)?;
    let (mechanism, mask) = (variant.at_step(0, size), mask.clone());
    let run = move |backward: bool| -> Result<(), Error> {
        let Inputs { q, k, v, .. } = &*inputs;
        let (q, k, v) = (q.view(), k.view(), v.view());
        let mechanism = mechanism.get::<f32>();
        let sequences = Streams::asked_by(&mechanism.card(), [q, k, v], &mask);
        let pass = &bochner_attention::Pass::Evaluation { seed: Seed::new(1) };
        let forward = mechanism.forward(&sequences, &parameters, pass)?;
        if backward {
            // The values stand for a cotangent.
            let cotangents = Cotangents {
                output: v,
                penalty: forward.penalty.view(),
            };
            black_box(mechanism.backward(&sequences, &parameters, pass, &forward, cotangents)?);
        }
        black_box(forward);
        Ok(())
    };
    let again = run.clone();
    Ok(vec![
        Box::new(move || again(false)),
        Box::new(move || run(true)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::operations::count;

    /// The formulas leave out what is done once a row, and nothing else.
    #[test]
    fn what_is_counted_is_what_the_formulas_say() {
        let small = [1, 1, 1024, 64, 64, 32];
        let cases: [(Variant, [f64; 2]); 3] = [
            (
                Performer {
                    points: 32,
                    form: bochner_attention::Form::LinearTime,
                    ..Performer::default()
                }
                .into(),
                performer(small),
            ),
            (primal_of(32).into(), primal(small)),
            (Bipolar::default().into(), bipolar(small)),
        ];
        for (variant, [forward, backward]) in cases {
            let mut runs = start(&variant, &Mask::none(), small).unwrap();
            for (run, expected) in runs.iter_mut().zip([forward, forward + backward]) {
                let (done, counted) = count(run);
                done.unwrap();
                let ratio = counted.multiply_adds as f64 / expected;
                assert!((0.98..1.2).contains(&ratio), "{}: {ratio}", variant.name());
            }
        }
    }
}
