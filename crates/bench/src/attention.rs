//! One attention call, forward, and forward with the gradients of q, k, v and the spectral points.
//!
//! Shapes are (B, H, T, d, dv, R): batch, heads, length, width of queries and keys, width of values,
//! spectral points, which only the squared kernels have.

use crate::workload::{Against, Pass, Run, Workload};
use crate::{Error, mechanisms};
use bochner_attention::engine::Wanted;
use bochner_attention::{
    Form, Magnitude, Mask, Settings, Variant, Workspace, attend, attend_vjp,
    card::Masks,
    engine::attend_into,
    find,
    kernels::{self, Points},
    registry,
};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array, Array3, Array4, Dimension};
use rand::Rng;
use serde_json::json;
use std::hint::black_box;
use std::rc::Rc;

type Shape = [usize; 6];

const SMALL: Shape = [8, 8, 128, 32, 32, 64];
const MIDDLE: Shape = [4, 8, 512, 64, 64, 64];
const LONG: Shape = [1, 8, 2048, 64, 64, 64];
const NARROW: Shape = [1, 8, 2048, 8, 8, 64];

/// One long sequence, for the linear-time form.
const fn sequence(length: usize) -> Shape {
    [1, 8, length, 64, 64, 16]
}

/// The lengths over which the time a token must stay the same.
pub(crate) const LENGTHS: [usize; 4] = [8192, 16_384, 32_768, 65_536];

pub(crate) const IKA_NS: &str = "ika-ns";
pub(crate) const LINEAR_TIME: &str = "ika-ns-linear-time";

/// All kinds of attention at their shapes.
pub(crate) fn workloads() -> Vec<Workload> {
    let squared = Kind::Squared(Form::Automatic);
    let linear_time = Kind::Squared(Form::LinearTime);
    let sequences = LENGTHS.map(sequence);
    let with_sequence = [SMALL, MIDDLE, LONG, NARROW, sequences[0]];
    let mut rows: Vec<(&'static str, Kind, bool, &[Shape])> = vec![
        (IKA_NS, squared, false, &[SMALL, MIDDLE, LONG, NARROW]),
        (LINEAR_TIME, linear_time, false, &sequences),
        ("softmax", Kind::Softmax, false, &SOFTMAX),
        ("rbf-only", Kind::RbfOnly, false, &with_sequence),
        ("ika-ns-causal", squared, true, &[MIDDLE, LONG]),
        (
            "ika-ns-linear-time-causal",
            linear_time,
            true,
            &sequences[..1],
        ),
        ("softmax-causal", Kind::Softmax, true, &[MIDDLE, LONG]),
    ];
    // Every other mechanism of the registry.
    let elsewhere = mechanisms::names();
    for card in registry().iter().map(|variant| variant.card()) {
        let is_here = rows.iter().any(|(name, ..)| *name == card.name);
        if !is_here && !elsewhere.contains(&card.name) {
            let kind = Kind::Mechanism(card.name);
            rows.push((card.name, kind, false, &[MIDDLE, LONG]));
        }
    }
    let mut workloads = Vec::new();
    for (name, kind, causal, shapes) in rows {
        let all = shapes
            .iter()
            .map(|&shape| workload(name, kind, causal, shape));
        workloads.extend(all);
    }
    for (name, kind) in [
        ("ika-ns-reused", squared),
        ("softmax-reused", Kind::Softmax),
    ] {
        let all = [SMALL, MIDDLE, LONG].map(|shape| reusing(name, kind, shape));
        workloads.extend(all);
    }
    workloads.push(Workload {
        threads: Some(1),
        ..without_peers(workload(IKA_NS, squared, false, LONG))
    });
    workloads
}

const SOFTMAX: [Shape; 6] = [
    SMALL,
    MIDDLE,
    LONG,
    NARROW,
    sequence(8192),
    sequence(16_384),
];

/// The workloads whose instructions are counted: smaller shapes; those with narrow heads are causal.
pub(crate) fn counted() -> Vec<Workload> {
    let rows = [
        (IKA_NS, Kind::Squared(Form::Pairwise)),
        (LINEAR_TIME, Kind::Squared(Form::LinearTime)),
        ("softmax", Kind::Softmax),
    ];
    let shapes = [
        ([1, 2, 128, 32, 32, 16], false),
        ([2, 2, 150, 8, 8, 24], true),
    ];
    let of = |(shape, causal)| {
        rows.map(|(name, kind)| without_peers(workload(name, kind, causal, shape)))
    };
    shapes.into_iter().flat_map(of).collect()
}

fn without_peers(mut workload: Workload) -> Workload {
    for pass in &mut workload.passes {
        pass.against.clear();
    }
    workload
}

/// The forward pass alone, in memory that is used again: inference as it is meant to be called.
fn reusing(name: &'static str, kind: Kind, shape: Shape) -> Workload {
    let mut workload = workload(name, kind, false, shape);
    workload.passes.truncate(1);
    Workload {
        start: Box::new(move || start_reusing(kind, shape)),
        ..workload
    }
}

/// A similarity with its magnitude.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Squared(Form),
    Softmax,
    RbfOnly,
    /// The mechanism of the registry by this name, as it is called there.
    Mechanism(&'static str),
}

fn workload(name: &'static str, kind: Kind, causal: bool, shape: Shape) -> Workload {
    let [forward, backward] = operations(kind, causal, shape);
    let [read, written] = numbers(kind, shape);
    let pass = |name: &'static str, operations: f64, numbers: f64| Pass {
        against: if causal {
            Vec::new()
        } else {
            against(kind, shape, name)
        },
        ..Pass::new(name, 2.0 * operations, 4.0 * numbers)
    };
    let passes = vec![
        pass("fwd", forward, read + written),
        // The output's cotangent too, and a gradient of every input.
        pass("fwd_bwd", forward + backward, 2.0 * (read + written)),
    ];
    Workload::new(name, shape, passes, move || start(kind, causal, shape))
}

/// Multiplications with additions of the products of the forward and of the backward pass.
///
/// A product of the pairs costs their number times the width that is summed over; the backward
/// pass takes those of the forward pass again, except the one with the values, and two more for
/// each: one for either operand.
fn operations(kind: Kind, causal: bool, shape: Shape) -> [f64; 2] {
    let [b, h, t, d, dv, r] = shape.map(|n| n as f64);
    let pairs = if causal { t * (t + 1.0) / 2.0 } else { t * t };
    let points = 2.0 * r; // w1 and w2
    let features = t * 2.0 * points * d; // of the queries and of the keys
    let each = match kind {
        Kind::Squared(_) if linear_time(kind, causal, shape) => {
            let outer = r * (2.0 * r + 1.0) * (dv + 1.0);
            [2.0 * t * outer + features, 4.0 * t * outer + 2.0 * features]
        }
        Kind::Squared(_) => [
            pairs * (2.0 * r + dv) + features,
            pairs * (6.0 * r + 2.0 * dv) + 2.0 * features,
        ],
        // A mechanism that multiplies no queries with keys, or not these, does not say what it multiplies.
        Kind::Mechanism(name) if !goes_pair_by_pair(name) => [0.0; 2],
        Kind::Softmax | Kind::RbfOnly | Kind::Mechanism(_) => {
            [pairs * (d + dv), pairs * (3.0 * d + 2.0 * dv)]
        }
    };
    each.map(|head| b * h * head)
}

/// Whether the mechanism of the registry by this name weighs the product of each query with each key: then it takes any
/// mask, and no points.
fn goes_pair_by_pair(name: &str) -> bool {
    let card = find(name).map(|variant| variant.card());
    card.is_some_and(|card| card.masks == Masks::Any && card.points.is_none())
}

/// Whether a squared kernel is computed in linear time.
fn linear_time(kind: Kind, causal: bool, shape: Shape) -> bool {
    let Kind::Squared(form) = kind else {
        return false;
    };
    let [_, _, t, _, dv, r] = shape;
    let points = Array3::<f32>::zeros((1, r, 1));
    let mask = mask(causal);
    squared(&points, &points, form, &mask)
        .form_for(t, t, [1, dv])
        .is_ok_and(|form| form == Form::LinearTime)
}

/// Numbers that are read and written by the forward pass.
fn numbers(kind: Kind, [b, h, t, d, dv, r]: Shape) -> [f64; 2] {
    let points = match kind {
        Kind::Squared(_) => 2 * h * r * d,
        _ => 0,
    };
    [b * h * t * (2 * d + dv) + points, b * h * t * dv].map(|n| n as f64)
}

pub(crate) fn mask(causal: bool) -> Mask {
    match causal {
        true => Mask::none().with_causality(),
        false => Mask::none(),
    }
}

/// A squared kernel with the magnitude at p = 1.5.
pub(crate) fn squared(
    w1: &Array3<f32>,
    w2: &Array3<f32>,
    form: Form,
    mask: &Mask,
) -> Settings<f32> {
    let points = Points::shared_nonstationary(w1.view(), w2.view());
    let kernel = kernels::squared(points, 1e-5, mask);
    Settings {
        form,
        ..kernel.with_key_weight(Magnitude::Norm { p: 1.5 })
    }
}

pub(crate) struct Inputs {
    pub(crate) q: Array4<f32>,
    pub(crate) k: Array4<f32>,
    pub(crate) v: Array4<f32>,
    w1: Array3<f32>,
    w2: Array3<f32>,
}

impl Inputs {
    /// The settings of a similarity; a mechanism of the registry is called as a mechanism.
    fn settings(&self, kind: Kind, mask: &Mask) -> Result<Settings<f32>, Error> {
        match kind {
            Kind::Squared(form) => Ok(squared(&self.w1, &self.w2, form, mask)),
            Kind::RbfOnly => Ok(kernels::rbf(mask)),
            Kind::Softmax => Ok(Settings::softmax(mask)),
            Kind::Mechanism(name) => {
                Err(format!("{name} has no settings here: `mechanisms::start` calls it").into())
            }
        }
    }
}

/// The two passes over inputs distributed as the peers'.
fn start(kind: Kind, causal: bool, shape: Shape) -> Result<Vec<Run>, Error> {
    if let Kind::Mechanism(name) = kind {
        let variant: Variant = name.parse()?;
        let variant = match variant.card().points {
            Some(_) => variant.mechanism::<f32>().with_points(shape[5])?,
            None => variant,
        };
        return mechanisms::start(&variant, &mask(causal), shape);
    }
    let (inputs, mask) = (inputs(shape), mask(causal));
    let (again, own_mask) = (Rc::clone(&inputs), mask.clone());
    // Made when it is needed: the forward pass is measured in the memory that it takes.
    let mut cotangent = None;
    let forward = move || {
        let Inputs { q, k, v, .. } = &*again;
        let (q, k, v, workspace) = (q.view(), k.view(), v.view(), Workspace::new());
        let mut output = Array4::zeros(v.raw_dim());
        let settings = again.settings(kind, &own_mask)?;
        attend_into(&settings, q, k, v, &workspace, output.view_mut())?;
        black_box(output);
        Ok(())
    };
    let both = move || {
        let Inputs { q, k, v, .. } = &*inputs;
        let cotangent = cotangent.get_or_insert_with(|| {
            let mut stream = Seed::new(1).stream("cotangent");
            filled(v.raw_dim(), &mut || standard_normal(&mut stream))
        });
        let (q, k, v) = (q.view(), k.view(), v.view());
        let settings = inputs.settings(kind, &mask)?;
        let (_, saved) = attend(&settings, q, k, v)?;
        let wanted = Wanted {
            kernel: true,
            ..Wanted::default()
        };
        black_box(attend_vjp(
            &settings,
            &saved,
            q,
            k,
            v,
            cotangent.view(),
            wanted,
        )?);
        Ok(())
    };
    Ok(vec![Box::new(forward), Box::new(both)])
}

/// The forward pass in memory that is used again.
fn start_reusing(kind: Kind, shape: Shape) -> Result<Vec<Run>, Error> {
    let (inputs, mask) = (inputs(shape), Mask::none());
    let (workspace, mut output) = (Workspace::new(), Array4::zeros(inputs.v.raw_dim()));
    Ok(vec![Box::new(move || {
        let Inputs { q, k, v, .. } = &*inputs;
        let (q, k, v) = (q.view(), k.view(), v.view());
        let settings = inputs.settings(kind, &mask)?;
        attend_into(&settings, q, k, v, &workspace, output.view_mut())?;
        black_box(&output);
        Ok(())
    })])
}

pub(crate) fn inputs(shape: Shape) -> Rc<Inputs> {
    let [b, h, t, d, dv, r] = shape;
    let mut stream = Seed::new(1).stream("inputs");
    let mut point = || stream.gen_range(-1.0..1.0) / (d as f32).sqrt();
    let w1 = filled((h, r, d), &mut point);
    let w2 = filled((h, r, d), &mut point);
    let mut number = || standard_normal(&mut stream);
    Rc::new(Inputs {
        q: filled((b, h, t, d), &mut number),
        k: filled((b, h, t, d), &mut number),
        v: filled((b, h, t, dv), &mut number),
        w1,
        w2,
    })
}

fn filled<D: Dimension>(
    shape: impl ndarray::ShapeBuilder<Dim = D>,
    number: &mut impl FnMut() -> f32,
) -> Array<f32, D> {
    Array::from_shape_simple_fn(shape, number)
}

/// The peers that do the same work, and how many times longer the fastest of them should take.
fn against(kind: Kind, shape: Shape, pass: &'static str) -> Vec<Against> {
    let of = |label, names: &[&str], [forward, backward]: [Option<f64>; 2]| {
        let cases = (names.iter()).map(|name| json!({ "impl": name, "shape": shape }));
        let target = if pass == "fwd" { forward } else { backward };
        Against::new(label, "attention", cases, pass, target)
    };
    const FORMULAS: [&str; 1] = ["ika_ns"];
    // The last one is compiled too, and has no backward pass.
    const COMPILED: [&str; 3] = ["ika_ns_compile", "ika_ns_tuned_compile", "ika_ns_flex"];
    const LINEAR_TIME: [&str; 4] = [
        "ika_ns_linear",
        "ika_ns_linear_compile",
        "ika_ns_linear_kr",
        "ika_ns_linear_kr_compile",
    ];
    let pairs = if pass == "fwd" {
        &COMPILED[..]
    } else {
        &COMPILED[..2]
    };
    let length = shape[2];
    match kind {
        Kind::Squared(Form::Automatic) if shape == NARROW => {
            let all = [&FORMULAS, pairs, &["ika_ns_tuned"], &LINEAR_TIME].concat();
            vec![of("best form of all", &all, [None, Some(1.7)])]
        }
        Kind::Squared(Form::Automatic) => {
            let (formulas, compiled) = match shape {
                SMALL => ([None, None], [None, Some(1.05)]),
                _ => ([Some(5.0), Some(3.0)], [Some(1.7), Some(1.1)]),
            };
            vec![
                of("as the formulas read", &FORMULAS, formulas),
                of("best compiled form", pairs, compiled),
            ]
        }
        Kind::Squared(Form::LinearTime) if length <= 16_384 => {
            let mut all = vec![of("best linear form", &LINEAR_TIME, [Some(3.0), Some(3.0)])];
            if length == 16_384 {
                let target = if pass == "fwd" { 4.0 } else { 3.0 };
                all.push(mechanisms::performer_pytorch(pass, Some(target)));
            }
            all
        }
        Kind::Softmax => {
            let target = (length >= 512).then_some(0.95);
            let mut all = vec![of("SDPA", &["sdpa"], [target; 2])];
            // It has no backward pass on a processor.
            if pass == "fwd" && [MIDDLE, LONG].contains(&shape) {
                let case = json!({ "impl": "softmax_flex", "shape": shape });
                all.push(Against::new(
                    "FlexAttention",
                    "mechanisms",
                    [case],
                    pass,
                    None,
                ));
            }
            all
        }
        Kind::RbfOnly => {
            let target = (length >= 512).then_some(4.0);
            vec![of("eager", &["rbf"], [None, target])]
        }
        Kind::Squared(_) | Kind::Mechanism(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::operations::count;

    /// A mechanism that is new in the registry is measured without a line here, and runs.
    #[test]
    fn every_mechanism_of_the_registry_is_measured() {
        let all = crate::workloads();
        for variant in registry() {
            let name = variant.name();
            let measured = all.iter().any(|workload| workload.name == name);
            assert!(measured, "{name} has no workload");
            for mut run in start(Kind::Mechanism(name), false, [1, 2, 16, 8, 8, 4]).unwrap() {
                run().unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }

    #[test]
    fn a_name_that_the_registry_does_not_have_is_an_error() {
        let shape = [1, 2, 16, 8, 8, 4];
        let unknown = Kind::Mechanism("sofmax");
        assert!(start(unknown, false, shape).is_err());
        assert!(start_reusing(unknown, shape).unwrap()[0]().is_err());
    }

    /// The formulas leave out what is done once a pair or once a feature, and nothing else.
    #[test]
    fn what_is_counted_is_what_the_formulas_say() {
        let kinds = [
            (Kind::Squared(Form::Pairwise), false),
            (Kind::Squared(Form::LinearTime), false),
            (Kind::Softmax, false),
            (Kind::RbfOnly, false),
            (Kind::Mechanism("linear"), false),
        ];
        let shape = [1, 1, 256, 64, 64, 64];
        for (kind, causal) in kinds {
            let mut runs = start(kind, causal, shape).unwrap();
            let mut counted = |i: usize| {
                let (done, counted) = count(|| runs[i]());
                done.unwrap();
                counted.multiply_adds as f64
            };
            let (forward, both) = (counted(0), counted(1));
            let [expected, more] = operations(kind, causal, shape);
            for (counted, expected) in [(forward, expected), (both, expected + more)] {
                let ratio = counted / expected;
                assert!((0.99..1.12).contains(&ratio), "{kind:?}: {ratio}");
            }
        }
    }
}
