//! `attention` and `quadratic_vs_linear`: every mechanism over every mask, in every form.

use super::features::random_map;
use super::sums::record_sums;
use super::{is_stationary, mechanism};
use crate::case::{Case, Done};
use crate::error::{Failure, Fault};
use bochner_attention::{
    Form, Magnitude, Mask, Settings, Variant, attend, attend_vjp,
    engine::{Blocks, Decoder, DecoderSize, Error, Wanted},
    find,
    kernels::{self, Points, Trained, points_gradients},
    weights,
};
use bochner_numerics::Real;
use ndarray::{Array3, Array4, ArrayView4, Axis, Ix3, s};

/// Outputs, weights and gradients of one mechanism.
pub(super) fn attention<T: Real>(c: &Case<T>) -> Done {
    let variant = variant(c)?.ok_or_else(|| c.wrong("variant", "a mechanism"))?;
    let mask = &mask(c)?;
    if variant.card().points.is_none() {
        return mechanism::run(c, variant.mechanism(), mask, &[], 1).map(drop);
    }
    let [q, k, v]: [Array4<T>; 3] = c.arrays(["q", "k", "v"])?;
    let sequences = [q.view(), k.view(), v.view()];
    // The linear-time form takes sums over keys.
    let has_sums = c.word("mask")? != "matrix";
    // The files of random features hold frequencies where those of other mechanisms hold spectral points.
    let (settings, names, sizes, in_linear_time) = if c.tensor("in.w").is_ok() {
        let w: Array3<T> = c.array("w")?;
        let settings = kernels::random_features(w.view(), random_map(c)?, Trained::Yes, mask);
        (settings, ["w", ""], (w.dim().1, w.dim().2), has_sums)
    } else {
        let points = GivenPoints::read(c)?;
        let floor = c.number("floor")?;
        // The error of the linear-time form is absolute in the similarity, and some of these cases have rows that are
        // like none of their keys: in single precision `quadratic_vs_linear` has the cases of that form.
        let in_linear_time = T::NAME == f64::NAME && floor > 0.0 && has_sums;
        let settings = kernels::squared(points.points(), floor, mask);
        let settings = settings.with_key_weight(magnitude(c)?);
        (settings, ["w1", "w2"], points.sizes(), in_linear_time)
    };
    let forms = PAIR_BY_PAIR.into_iter();
    let forms = forms.chain(in_linear_time.then_some(Form::LinearTime));
    in_forms(c, forms, &settings, sequences, |kernel| {
        record_points(c, names, sizes, kernel)
    })
}

/// Squared-kernel attention in both forms, and the state of the linear-time form where the file has it.
pub(super) fn both_forms<T: Real>(c: &Case<T>) -> Done {
    let [q, k, v]: [Array4<T>; 3] = c.arrays(["q", "k", "v"])?;
    let sequences = [q.view(), k.view(), v.view()];
    let (points, mask) = (GivenPoints::read(c)?, mask(c)?);
    let settings = kernels::squared(points.points(), c.number("floor")?, &mask);
    let settings = Settings {
        form: Form::LinearTime,
        ..settings.with_key_weight(magnitude(c)?)
    };
    let forms = [Form::Pairwise, Form::LinearTime].into_iter();
    in_forms(c, forms, &settings, sequences, |kernel| {
        record_points(c, ["w1", "w2"], points.sizes(), kernel)
    })?;
    if c.choice("state", &["yes", "no"])? == "yes" {
        c.check_outputs(&["g", "a", "b", "z"])?;
        record_sums(c, &settings, sequences)?;
    }
    Ok(())
}

/// The forms of everything that goes pair by pair, the second in blocks of which the cases fill several.
pub(super) const PAIR_BY_PAIR: [Form; 2] = [
    Form::Pairwise,
    Form::Blocked(Blocks {
        queries: 3,
        keys: 2,
    }),
];

/// Weights, then outputs and gradients in each of the forms; under causality alone, outputs of a decoder in that form
/// too. `along_kernel` records the gradient of the kernel.
pub(super) fn in_forms<T: Real>(
    c: &Case<T>,
    forms: impl Iterator<Item = Form>,
    settings: &Settings<T>,
    [q, k, v]: [ArrayView4<T>; 3],
    along_kernel: impl Fn(&Array3<T>) -> Done,
) -> Done {
    if c.asks_for("weights") {
        c.output("weights", &weights(settings, q, k)?);
    }
    let cotangent: Option<Array4<T>> = c.cotangent()?;
    for form in forms {
        let settings = Settings {
            form,
            ..settings.clone()
        };
        let (output, saved) = attend(&settings, q, k, v)?;
        c.output("output", &output);
        if let Some(g) = &cotangent {
            let wanted = Wanted {
                kernel: true,
                ..Wanted::default()
            };
            let g = attend_vjp(&settings, &saved, q, k, v, g.view(), wanted)?;
            c.gradient("q", &g.q);
            c.gradient("k", &g.k);
            c.gradient("v", &g.v);
            g.kernel.as_ref().map_or(Ok(()), &along_kernel)?;
        }
        if c.word("mask")? == "causal" {
            c.output("output", &decode(&settings, [q, k, v])?);
        }
    }
    Ok(())
}

/// The output of a decoder that takes one query after the other; keys before the first query's are remembered first.
fn decode<T: Real>(
    settings: &Settings<T>,
    [q, k, v]: [ArrayView4<T>; 3],
) -> Result<Array4<T>, Error> {
    let (batch, heads, queries, width) = q.dim();
    let (_, _, keys, value_width) = v.dim();
    let size = DecoderSize {
        batch,
        heads,
        width,
        value_width,
    };
    let mut decoder = Decoder::new(settings, size)?;
    let before = keys - queries;
    if before > 0 {
        let first = s![.., .., ..before, ..];
        decoder.push(k.slice(first), v.slice(first), None)?;
    }
    let mut output = Array4::zeros((batch, heads, queries, value_width));
    for i in 0..queries {
        let query = s![.., .., i..=i, ..];
        let key = s![.., .., before + i..=before + i, ..];
        let row = decoder.step(q.slice(query), k.slice(key), v.slice(key))?;
        output.slice_mut(query).assign(&row);
    }
    Ok(output)
}

/// The mechanism that the entry `variant` names, if the registry has it.
pub(super) fn variant(file: &crate::case_file::CaseFile) -> Result<Option<Variant>, Fault> {
    Ok(find(&file.word("variant")?.replace('_', "-")))
}

/// The magnitude that the entry `p` asks for.
pub(super) fn magnitude<T: Real>(c: &Case<T>) -> Result<Magnitude, Fault> {
    let p = c.number_or_none("p")?;
    Ok(p.map_or(Magnitude::None, |p| Magnitude::Norm { p }))
}

/// The mask that the entries `mask` and `causal` and the inputs ask for.
pub(super) fn mask<T: Real>(c: &Case<T>) -> Result<Mask, Failure> {
    let kinds = ["none", "lengths", "causal", "matrix", "lengths_causal"];
    let kind = c.choice("mask", &kinds)?;
    let causal = kind.ends_with("causal");
    if (c.choice("causal", &["true", "false"])? == "true") != causal {
        return Err(c.wrong("causal", "what `mask` implies").into());
    }
    let mut mask = Mask::none();
    if kind.starts_with("lengths") {
        mask = mask.with_key_lengths(c.lengths("lengths")?);
    }
    if kind == "matrix" {
        mask = mask.with_matrix(c.mask("mask")?.view());
    }
    Ok(if causal { mask.with_causality() } else { mask })
}

/// The mask of a kind of case that knows key lengths alone.
pub(super) fn key_lengths<T: Real>(c: &Case<T>) -> Result<Mask, Fault> {
    Ok(match c.choice("mask", &["none", "lengths"])? {
        "lengths" => Mask::none().with_key_lengths(c.lengths("lengths")?),
        _ => Mask::none(),
    })
}

/// The spectral points, `[1 or B, M, R, d]`.
pub(super) struct GivenPoints<T> {
    w1: Array4<T>,
    w2: Option<Array4<T>>,
}

impl<T: Real> GivenPoints<T> {
    pub(super) fn read(c: &Case<T>) -> Result<Self, Fault> {
        let shared = c.choice("points", &["shared", "per_example"])? == "shared";
        let read = |name| match shared {
            true => Ok(c.array::<Ix3>(name)?.insert_axis(Axis(0))),
            false => c.array(name),
        };
        let stationary = is_stationary(c)?;
        Ok(Self {
            w1: read("w1")?,
            w2: (!stationary).then(|| read("w2")).transpose()?,
        })
    }

    pub(super) fn points(&self) -> Points<'_, T> {
        let w1 = self.w1.view();
        match &self.w2 {
            None => Points::Stationary { w: w1 },
            Some(w2) => Points::Nonstationary { w1, w2: w2.view() },
        }
    }

    /// Their number and their width.
    fn sizes(&self) -> (usize, usize) {
        (self.w1.dim().2, self.w1.dim().3)
    }
}

/// Records the gradients along one or two sets of points.
fn record_points<T: Real>(
    c: &Case<T>,
    [first, second]: [&str; 2],
    (count, width): (usize, usize),
    kernel: &Array3<T>,
) -> Done {
    let along = points_gradients(kernel, count, width);
    c.flat_gradient(first, along.w1)?;
    along.w2.map_or(Ok(()), |w2| c.flat_gradient(second, w2))
}
