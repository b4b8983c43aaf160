//! `pipeline`: from queries, keys and noise to the output, through the mechanism that users train.

use super::attention::mask;
use super::renamed;
use crate::case::{Case, Done};
use crate::error::Fault;
use bochner_attention::{
    Copula, Magnitude, Mechanism, Mikan, Pass, Preset,
    kernels::{self, Points},
    mechanism::{Cotangents, Streams},
    weights,
};
use bochner_numerics::{Real, Seed};
use ndarray::{Array1, Array4};

/// The format's names of the mechanism's parameters.
const RENAMED: [(&str, &str); 7] = [
    ("inference.", "inf."),
    ("density", "net"),
    ("copula.raw", "raw"),
    ("copula.w", "wc"),
    ("copula.b", "bc"),
    (".weight", ".w"),
    (".bias", ".b"),
];

/// IKAN, or MIKAN with either parametrisation of its copula.
pub(super) fn pipeline<T: Real>(c: &Case<T>) -> Done {
    let [q, k, v, eps]: [Array4<T>; 4] = c.arrays(["q", "k", "v", "eps"])?;
    let mikan = mechanism(c, eps.dim().2)?;
    let mut mask = mask(c)?;
    if c.word("mask")?.starts_with("lengths") {
        // The key lengths count for the queries' mean too.
        let lengths = c.counts("lengths")?.into_iter();
        mask = mask.with_query_lengths(lengths.map(|length| length.min(q.dim().2)).collect());
    }
    let inputs = Streams::new([q.view(), k.view(), v.view()], &mask);
    let (mut names, mut parameters) = (Vec::new(), Vec::new());
    for spec in Mechanism::<T>::parameters(&mikan, inputs.size()) {
        names.push(renamed(&spec.name, &RENAMED));
        parameters.extend(c.shaped(&names[names.len() - 1], &spec.shape)?);
    }
    // The noise is given, so that nothing is drawn.
    let pass = Pass::Evaluation { seed: Seed::new(0) };
    let forward = mikan.forward_with(&inputs, &parameters, &pass, eps)?;
    let drawn = mikan.draw_of(&forward)?;
    c.output("output", forward.output.iter().copied());
    let latent = drawn
        .latent
        .as_ref()
        .expect("an implicit source has a latent");
    c.output("z", latent.z.iter().copied());
    for (name, points) in ["w1", "w2"].iter().zip(&drawn.points) {
        c.output(name, points.iter().copied());
    }
    c.output("kl", drawn.kl.iter().copied());
    let settings = kernels::squared(Points::of_sets(&drawn.points), mikan.floor, &mask);
    let settings = settings.with_key_weight(Magnitude::Norm { p: mikan.p });
    c.output("weights", weights(&settings, q.view(), k.view())?);
    c.pull(|g: Array4<T>| {
        let penalty = Array1::zeros(g.dim().0);
        let cotangent = Cotangents {
            output: g.view(),
            penalty: penalty.view(),
        };
        let g = mikan.backward_with(&inputs, &parameters, &pass, &forward, cotangent)?;
        for (name, g) in ["q", "k", "v"].iter().zip(g.gradients.streams) {
            c.gradient(name, g);
        }
        c.gradient("eps", g.eps);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        c.gradients(&names, g.gradients.parameters)
    })
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
        stationarity: c.setting("stationarity")?,
        ..Mikan::default()
    })
}
