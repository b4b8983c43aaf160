//! One attention call: forward, and forward with the gradients of its inputs and parameters.
//!
//! Shapes are (B, H, T, d, dv, R): batch, heads, length, width of queries and keys, width of values, and the number
//! of spectral points, random features, directions, or of the keys in a window.

use crate::Error;
use crate::workload::{Pass, Run, Workload};
use bochner_attention::{
    Bipolar, Cat, Form, IkanDirect, Mask, Performer, Primal, RbfOnly, Softmax, Variant,
    mechanism::{Cotangents, PrimalTrace, PrimalWeights, SharedMechanism, Size, Streams},
    registry,
};
use bochner_numerics::{Seed, standard_normal};
use ndarray::Array4;
use std::hint::black_box;
use std::rc::Rc;

pub(crate) type Shape = [usize; 6];

const SMALL: Shape = [8, 8, 128, 32, 32, 64];
const MIDDLE: Shape = [4, 8, 512, 64, 64, 64];
const LONG: Shape = [1, 8, 2048, 64, 64, 64];
const NARROW: Shape = [1, 8, 2048, 8, 8, 64];
const WIDE: Shape = [1, 8, 16_384, 64, 64, 256];

/// The keys that a query attends to.
#[derive(Clone, Copy, Debug)]
enum Visible {
    All,
    Past,
    /// This many keys, the query's own the last.
    Window(usize),
}

use Visible::{All, Past, Window};

impl Visible {
    fn mask(self) -> Mask {
        let past = Mask::none().with_causality();
        match self {
            All => Mask::none(),
            Past => past,
            Window(keys) => past.with_window(keys - 1, 0).expect("a window with a key"),
        }
    }
}

/// Attention by a squared kernel at p = 1.5, with its spectral points as parameters.
fn squared(form: Form) -> Variant {
    IkanDirect {
        p: 1.5,
        form,
        ..IkanDirect::default()
    }
    .into()
}

/// Attention of every kind at its shapes: every mechanism of the registry, some of them in several forms.
pub(crate) fn workloads() -> Vec<Workload> {
    let (squares, linear) = (&squared(Form::Automatic), &squared(Form::LinearTime));
    let (softmax, rbf) = (&Softmax::default().into(), &RbfOnly {}.into());
    let (performer, bipolar) = (&Performer::default().into(), &Bipolar::default().into());
    let sequences = [8192, 16_384, 32_768, 65_536].map(|length| [1, 8, length, 64, 64, 16]);
    let cat = [1024, 4096, 16_384].map(|length| [4, 8, length, 64, 64, 1]);
    let four = [SMALL, MIDDLE, LONG, NARROW];
    let mut workloads = Vec::new();
    let mut add = |name, variant: &Variant, visible, shapes: &[Shape]| {
        let of = |&shape| workload(name, variant, visible, shape);
        workloads.extend(shapes.iter().map(of));
    };
    add("ika-ns", squares, All, &four);
    add("ika-ns-linear-time", linear, All, &sequences);
    add("softmax", softmax, All, &four);
    add("softmax", softmax, All, &sequences[..2]);
    add("rbf-only", rbf, All, &four);
    add("rbf-only", rbf, All, &sequences[..1]);
    add("ika-ns-causal", squares, Past, &[MIDDLE, LONG]);
    add("ika-ns-linear-time-causal", linear, Past, &sequences[..1]);
    add("softmax-causal", softmax, Past, &[MIDDLE, LONG]);
    add("softmax-window", softmax, Window(256), &[WIDE]);
    add("performer", performer, All, &[WIDE]);
    add(
        "performer-causal",
        performer,
        Past,
        &[[1, 8, 2048, 64, 64, 256]],
    );
    add("primal", &primal(32), All, &[[4, 8, 4096, 64, 64, 32]]);
    add("bipolar", bipolar, All, &[[4, 8, 512, 64, 64, 1]]);
    add("cat", &Cat::default().into(), All, &cat);
    let elsewhere: Vec<_> = workloads.iter().map(|workload| workload.name).collect();
    for variant in registry() {
        let name = variant.name();
        if !elsewhere.contains(&name) {
            let of = |shape| workload(name, &variant, All, shape);
            workloads.extend([MIDDLE, LONG].map(of));
        }
    }
    workloads
}

/// The workloads whose instructions are counted: smaller shapes; those with narrow heads are causal.
pub(crate) fn counted() -> Vec<Workload> {
    let rows = [
        ("ika-ns", squared(Form::Pairwise)),
        ("ika-ns-linear-time", squared(Form::LinearTime)),
        ("softmax", Softmax::default().into()),
    ];
    let shapes = [
        ([1, 2, 128, 32, 32, 16], All),
        ([2, 2, 150, 8, 8, 24], Past),
    ];
    let of = |(shape, visible)| {
        let row =
            |(name, variant): &(&'static str, Variant)| workload(name, variant, visible, shape);
        rows.each_ref().map(row)
    };
    shapes.into_iter().flat_map(of).collect()
}

/// Primal-Attention with data-dependent weights of ten rows a direction.
fn primal(rank: usize) -> Variant {
    Primal {
        rank,
        weights: PrimalWeights::Data {
            rows: 10 * rank,
            trace: PrimalTrace::Data,
        },
        ..Primal::default()
    }
    .into()
}

fn workload(name: &'static str, variant: &Variant, visible: Visible, shape: Shape) -> Workload {
    let variant = sized(variant, shape[5]);
    let [b, h, t, d, dv, r] = shape.map(|n| n as f64);
    let points = match variant {
        Variant::IkanDirect(_) => 2.0 * h * r * d,
        _ => 0.0,
    };
    let bytes = 4.0 * (b * h * t * (2.0 * d + 2.0 * dv) + points);
    let passes = vec![
        Pass::new("fwd", bytes),
        // The output's cotangent too, and a gradient of every input.
        Pass::new("fwd_bwd", 2.0 * bytes),
    ];
    let start = move || {
        let call = Call::new(&variant, visible, shape)?;
        let again = Rc::clone(&call);
        let (forward, both) = (move || again.forward(), move || call.forward_and_backward());
        Ok(vec![Box::new(forward) as Run, Box::new(both)])
    };
    Workload::new(name, shape, passes, start)
}

/// The mechanism with this many points, if it has any.
pub(crate) fn sized(variant: &Variant, points: usize) -> Variant {
    let sized = variant.with_points(points);
    sized.unwrap_or_else(|_| variant.clone())
}

const PASS: fn() -> bochner_attention::Pass =
    || bochner_attention::Pass::Evaluation { seed: Seed::new(1) };

/// A mechanism at its initial values, and sequences distributed as the peers'.
struct Call {
    q: Array4<f32>,
    k: Array4<f32>,
    v: Array4<f32>,
    mask: Mask,
    mechanism: SharedMechanism,
    parameters: Vec<f32>,
}

impl Call {
    fn new(variant: &Variant, visible: Visible, shape: Shape) -> Result<Rc<Self>, Error> {
        let [batch, heads, time, width, value_width, _] = shape;
        let size = Size { heads, width };
        let mut stream = Seed::new(1).stream("initial values");
        let parameters = variant.mechanism::<f32>().initial(size, &mut stream)?;
        let mut stream = Seed::new(1).stream("inputs");
        let mut normal = |width| {
            let shape = (batch, heads, time, width);
            Array4::from_shape_simple_fn(shape, || standard_normal(&mut stream))
        };
        Ok(Rc::new(Self {
            q: normal(width),
            k: normal(width),
            v: normal(value_width),
            mask: visible.mask(),
            mechanism: variant.at_step(0, size),
            parameters,
        }))
    }

    fn streams(&self) -> Streams<'_, f32> {
        let card = self.mechanism.get::<f32>().card();
        let all = [self.q.view(), self.k.view(), self.v.view()];
        Streams::asked_by(&card, all, &self.mask)
    }

    fn forward(&self) -> Result<(), Error> {
        let mechanism = self.mechanism.get::<f32>();
        black_box(mechanism.forward(&self.streams(), &self.parameters, &PASS())?);
        Ok(())
    }

    fn forward_and_backward(&self) -> Result<(), Error> {
        let (mechanism, streams, pass) = (self.mechanism.get::<f32>(), self.streams(), &PASS());
        let forward = mechanism.forward(&streams, &self.parameters, pass)?;
        // The values stand for a cotangent.
        let cotangents = Cotangents {
            output: self.v.view(),
            penalty: forward.penalty.view(),
        };
        black_box(mechanism.backward(&streams, &self.parameters, pass, &forward, cotangents)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mechanism that is new in the registry is measured without a line here, and runs.
    #[test]
    fn every_mechanism_of_the_registry_is_measured() {
        let all = workloads();
        for variant in registry() {
            let name = variant.name();
            let measured = all.iter().any(|workload| workload.name == name);
            assert!(measured, "{name} has no workload");
            let tiny = workload(name, &variant, All, [1, 2, 16, 8, 8, 4]);
            for mut run in (tiny.start)().unwrap() {
                run().unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
}
