//! `attention` and `quadratic_vs_linear`: every mechanism over every mask, in every form.

use super::features::random_map;
use super::sums::record_sums;
use super::{is_stationary, mechanism};
use crate::case::{Case, Done, record};
use crate::case_file::CaseFile;
use crate::error::{Failure, Fault};
use bochner_attention::{
    Form, Magnitude, Mask, Settings, Variant, attend, attend_vjp,
    engine::{Blocks, Wanted},
    find,
    kernels::{self, Points, Trained, points_gradients},
    weights,
};
use bochner_numerics::Real;
use ndarray::{Array3, Array4, Axis, Ix3};

/// Outputs, weights and gradients of one mechanism.
pub(super) fn attention<T: Real>(c: &Case<T>) -> Done {
    let variant = variant(c)?.expect("found with the kind");
    let mask = &mask(c)?;
    if variant.card().points.is_none() {
        return mechanism::run(c, variant.mechanism(), mask, &[], 1).map(drop);
    }
    let streams: [Array4<T>; 3] = c.arrays(["q", "k", "v"])?;
    // The linear-time form takes sums over keys.
    let has_sums = c.word("mask")? != "matrix";
    let forms = |in_linear_time: bool| {
        let linear_time = in_linear_time.then_some(Form::LinearTime);
        PAIR_BY_PAIR.into_iter().chain(linear_time)
    };
    // The files of random features hold frequencies where those of other mechanisms hold spectral points.
    if c.tensor("in.w").is_ok() {
        let w: Array3<T> = c.array("w")?;
        let settings = kernels::random_features(w.view(), random_map(c)?, Trained::Yes, mask);
        return in_forms(c, forms(has_sums), &settings, streams.each_ref(), &["w"]);
    }
    let (points, floor) = (points(c)?, c.number("floor")?);
    let settings = kernels::squared(Points::of_sets(&points), floor, mask);
    let settings = settings.with_key_weight(magnitude(c)?);
    // The error of the linear-time form is absolute in the similarity, and some of these cases have rows that are
    // like none of their keys: in single precision `quadratic_vs_linear` has the cases of that form.
    let in_linear_time = T::NAME == f64::NAME && floor > 0.0 && has_sums;
    let (forms, names) = (forms(in_linear_time), &["w1", "w2"][..points.len()]);
    in_forms(c, forms, &settings, streams.each_ref(), names)
}

/// Squared-kernel attention in both forms, and the state of the linear-time form where the file has it.
pub(super) fn both_forms<T: Real>(c: &Case<T>) -> Done {
    let streams: [Array4<T>; 3] = c.arrays(["q", "k", "v"])?;
    let (points, mask) = (points(c)?, mask(c)?);
    let settings = kernels::squared(Points::of_sets(&points), c.number("floor")?, &mask);
    let settings = Settings {
        form: Form::LinearTime,
        ..settings.with_key_weight(magnitude(c)?)
    };
    let (forms, names) = (
        [Form::Pairwise, Form::LinearTime],
        &["w1", "w2"][..points.len()],
    );
    in_forms(c, forms, &settings, streams.each_ref(), names)?;
    if c.choice("state", &["yes", "no"])? == "yes" {
        c.check_outputs(&["g", "a", "b", "z"])?;
        record_sums(c, &settings, streams.each_ref().map(|x| x.view()))?;
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

/// Weights, then outputs and gradients in each of the forms. `points` are the names of the inputs that the kernel is
/// made of.
pub(super) fn in_forms<T: Real>(
    c: &Case<T>,
    forms: impl IntoIterator<Item = Form>,
    settings: &Settings<T>,
    streams: [&Array4<T>; 3],
    points: &[&str],
) -> Done {
    let [q, k, v] = streams.map(|x| x.view());
    if c.asks_for("weights") {
        c.output("weights", weights(settings, q, k)?);
    }
    for form in forms {
        let settings = Settings {
            form,
            ..settings.clone()
        };
        let (output, saved) = attend(&settings, q, k, v)?;
        c.output("output", output);
        c.pull(|g: Array4<T>| {
            let wanted = Wanted {
                kernel: true,
                ..Wanted::default()
            };
            let g = attend_vjp(&settings, &saved, q, k, v, g.view(), wanted)?;
            if let (Some(kernel), [first, ..]) = (&g.kernel, points) {
                let w: Vec<usize> = c.tensor(&format!("in.{first}"))?.shape().to_vec();
                let along = points_gradients(kernel, w[w.len() - 2], w[w.len() - 1]);
                let along = [Some(along.w1), along.w2].into_iter().flatten();
                points
                    .iter()
                    .zip(along)
                    .for_each(|(name, g)| c.gradient(name, g));
            }
            record!(c.gradient, g => q, k, v);
            Ok(())
        })?;
    }
    Ok(())
}

/// The mechanism that the entry `variant` names, if the registry has it.
pub(super) fn variant(file: &CaseFile) -> Result<Option<Variant>, Fault> {
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
    c.choice("causal", &[if causal { "true" } else { "false" }])?;
    let mut mask = Mask::none();
    if kind.starts_with("lengths") {
        mask = mask.with_key_lengths(c.counts("lengths")?);
    }
    if kind == "matrix" {
        mask = mask.with_matrix(c.mask("mask")?.view());
    }
    Ok(if causal { mask.with_causality() } else { mask })
}

/// The mask of a kind of case that knows key lengths alone.
pub(super) fn key_lengths<T: Real>(c: &Case<T>) -> Result<Mask, Fault> {
    Ok(match c.choice("mask", &["none", "lengths"])? {
        "lengths" => Mask::none().with_key_lengths(c.counts("lengths")?),
        _ => Mask::none(),
    })
}

/// The spectral points, `[1 or B, M, R, d]`: one set if they are stationary, or two.
pub(super) fn points<T: Real>(c: &Case<T>) -> Result<Vec<Array4<T>>, Fault> {
    let shared = c.choice("points", &["shared", "per_example"])? == "shared";
    let sets = if is_stationary(c)? { 1 } else { 2 };
    let read = |name: &&str| match shared {
        true => Ok(c.array::<Ix3>(name)?.insert_axis(Axis(0))),
        false => c.array(name),
    };
    ["w1", "w2"][..sets].iter().map(read).collect()
}
