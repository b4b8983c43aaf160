//! `pipeline`: from queries, keys and noise to the output, through the mechanism that users train.

use super::attention::mask;
use crate::case::{Case, Done};
use crate::error::Fault;
use bochner_attention::{
    Copula, Magnitude, Mechanism, Mikan, Pass, Preset, Stationarity,
    kernels::{self, Points},
    mechanism::{Cotangents, Streams},
    weights,
};
use bochner_numerics::{Real, Seed};
use ndarray::{Array1, Array4, Ix4};

/// IKAN, or MIKAN with either parametrisation of its copula.
pub(super) fn pipeline<T: Real>(c: &Case<T>) -> Done {
    let [q, k, v, eps]: [Array4<T>; 4] = c.arrays(["q", "k", "v", "eps"])?;
    let mikan = mechanism(c, eps.dim().2)?;
    let mut mask = mask(c)?;
    if c.word("mask")?.starts_with("lengths") {
        // The key lengths count for the queries' mean too.
        let lengths = c.lengths("lengths")?.into_iter();
        mask = mask.with_query_lengths(lengths.map(|length| length.min(q.dim().2)).collect());
    }
    let inputs = Streams::new([q.view(), k.view(), v.view()], &mask);
    let specs = Mechanism::<T>::parameters(&mikan, inputs.size());
    let mut parameters = Vec::new();
    for spec in &specs {
        let name = name_in_file(&spec.name);
        let given = c.floats(&name)?;
        if given.shape() != spec.shape {
            let expected = format!("{:?}", spec.shape);
            return Err(Fault::shape(&format!("in.{name}"), expected, given.shape()).into());
        }
        parameters.extend(given);
    }
    // The noise is given, so that nothing is drawn.
    let pass = Pass::Evaluation { seed: Seed::new(0) };
    let forward = mikan.forward_with(&inputs, &parameters, &pass, eps)?;
    let drawn = mikan.draw_of(&forward)?;
    c.output("output", &forward.output);
    let latent = drawn.latent.as_ref();
    c.output("z", &latent.expect("an implicit source has a latent").z);
    for (name, points) in ["w1", "w2"].iter().zip(&drawn.points) {
        c.output(name, points);
    }
    c.output("kl", &drawn.kl);
    let settings = kernels::squared(Points::of_sets(&drawn.points), mikan.floor, &mask);
    let settings = settings.with_key_weight(Magnitude::Norm { p: mikan.p });
    c.output("weights", &weights(&settings, q.view(), k.view())?);
    if let Some(g) = c.cotangent::<Ix4>()? {
        let penalty = Array1::zeros(g.dim().0);
        let cotangent = Cotangents {
            output: g.view(),
            penalty: penalty.view(),
        };
        let g = mikan.backward_with(&inputs, &parameters, &pass, &forward, cotangent)?;
        for (name, g) in ["q", "k", "v"].iter().zip(&g.gradients.streams) {
            c.gradient(name, g);
        }
        c.gradient("eps", &g.eps);
        let mut rest = g.gradients.parameters.into_iter();
        for spec in &specs {
            c.flat_gradient(&name_in_file(&spec.name), rest.by_ref().take(spec.count()))?;
        }
    }
    Ok(())
}

fn mechanism<T: Real>(c: &Case<T>, points: usize) -> Result<Mikan, Fault> {
    let parametrisations: &[&str] = match c.choice("variant", &["ikan", "mikan"])? {
        "ikan" => &["none"],
        _ => &["free", "amortised"],
    };
    Ok(Mikan {
        p: c.number("p")?,
        points,
        floor: c.number("floor")?,
        prior_std: c.number("prior_std")?,
        slope: c.number("slope")?,
        beta: 1.0,
        copula: match c.choice("parametrisation", parametrisations)? {
            "none" => Copula::Independent,
            "free" => Copula::Free,
            _ => Copula::Amortised,
        },
        preset: Preset::Paper,
        stationarity: match super::is_stationary(c)? {
            true => Stationarity::Stationary,
            false => Stationarity::Nonstationary,
        },
        ..Mikan::default()
    })
}

/// The format's name of one of the mechanism's parameters.
fn name_in_file(parameter: &str) -> String {
    let renamed = [
        ("inference.", "inf."),
        ("density", "net"),
        ("copula.raw", "raw"),
        ("copula.w", "wc"),
        ("copula.b", "bc"),
        (".weight", ".w"),
        (".bias", ".b"),
    ];
    let rename = |name: String, (ours, theirs): (&str, &str)| name.replace(ours, theirs);
    renamed.into_iter().fold(parameter.to_owned(), rename)
}
