//! `primal` and `ksvd`: Primal-Attention, and the kernel singular values behind it.

use super::reshaped;
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{
    Cotangents, Mask, Mechanism, Pass, Primal, PrimalReduction, PrimalTrace, PrimalWeights, Streams,
};
use bochner_dense::{svd_objective, svd_objective_gradients};
use bochner_numerics::{Real, Seed};
use ndarray::{Array1, Array2, Array3, Array4};

/// Outputs, scores and the loss of the mechanism.
pub(super) fn primal<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let [q, k]: [Array4<T>; 2] = [file.array("q")?, file.array("k")?];
    let [we, wr, wc]: [Array3<T>; 3] = [file.array("we")?, file.array("wr")?, file.array("wc")?];
    let lambda: Array2<T> = file.array("lambda")?;
    let rows = we.dim().1;
    let word = |key| file.choice(key, &["data", "parameters"]);
    let trace = match word("trace")? {
        "data" => PrimalTrace::Data,
        _ => PrimalTrace::Parameters,
    };
    let mechanism = Primal {
        rank: lambda.dim().1,
        weights: match word("weights")? {
            "data" => PrimalWeights::Data { rows, trace },
            _ => PrimalWeights::Parameters,
        },
        reduction: match file.choice("reduction", &["batch", "example"])? {
            "batch" => PrimalReduction::Batch,
            _ => PrimalReduction::Example,
        },
        eta: 1.0,
        value_width: Some(wc.dim().1),
    };
    let (mut mask, mut kept) = (Mask::none(), q.dim().0);
    if file.choice("mask", &["none", "lengths"])? == "lengths" {
        let lengths = file.lengths("lengths")?;
        kept = lengths.iter().filter(|&&length| length > 0).count();
        mask = mask.with_key_lengths(lengths);
    }
    if file.choice("causal", &["true", "false"])? == "true" {
        mask = mask.with_causality();
    }
    let (mut names, mut streams) = (vec!["q", "k"], vec![q, k]);
    if let PrimalWeights::Data { .. } = mechanism.weights {
        names.push("x");
        streams.push(file.array("x")?);
    }
    let inputs = Streams::new(streams.iter().map(|x| x.view()), &mask);
    let named = [
        ("we", we.into_dyn()),
        ("wr", wr.into_dyn()),
        ("lambda", lambda.into_dyn()),
        ("wc", wc.into_dyn()),
    ];
    let parameters: Vec<T> = named.iter().flat_map(|(_, x)| x.iter().copied()).collect();
    let pass = &Pass::Evaluation { seed: Seed::new(0) };
    let forward = mechanism.forward(&inputs, &parameters, pass);
    let forward = forward.map_err(Fault::refused)?;
    let scores = mechanism.scores_of(&forward).map_err(Fault::refused)?;
    // The mean over the examples that are not empty, whose penalty is zero.
    let share = T::of(1.0 / kept.max(1) as f64);
    let mut computed = Computed::default();
    computed.output("output", &forward.output);
    computed.output("e", &scores.e);
    computed.output("r", &scores.r);
    computed.output("loss", &Array1::from_elem(1, forward.penalty.sum() * share));
    if let Some(g) = file.cotangent::<T>()? {
        let (output, penalty) = match file.word("cotangent_of")? {
            "loss" => (
                Array4::zeros(forward.output.raw_dim()),
                forward.penalty.mapv(|_| g.sum() * share),
            ),
            _ => (
                crate::tensor::ranked("cotangent", g)?,
                Array1::zeros(forward.penalty.len()),
            ),
        };
        let cotangents = Cotangents {
            output: output.view(),
            penalty: penalty.view(),
        };
        let g = mechanism.backward(&inputs, &parameters, pass, &forward, cotangents);
        let g = g.map_err(Fault::refused)?;
        for (name, g) in names.into_iter().zip(&g.streams) {
            computed.gradient(name, g);
        }
        let mut rest = g.parameters;
        for (name, x) in named {
            let own = rest.drain(..x.len()).collect();
            computed.gradient(name, &reshaped(Array1::from_vec(own).into_dyn(), x.shape()));
        }
    }
    Ok(computed)
}

/// The objective of the decomposition at its solution or elsewhere, in double precision.
pub(super) fn kernel_svd(file: &CaseFile) -> Result<Computed, Fault> {
    let [phi_q, phi_k]: [Array2<f64>; 2] = [file.array("phi_q")?, file.array("phi_k")?];
    let (phi_q, phi_k) = (phi_q.view(), phi_k.view());
    let mut computed = Computed::default();
    let (we, wr, lambda) = if file.choice("weights", &["svd", "given"])? == "svd" {
        let svd = bochner_dense::kernel_svd(phi_q, phi_k, file.count("s")?);
        let svd = svd.map_err(Fault::refused)?;
        computed.output("sigma", &svd.sigma);
        computed.output("we_we", &svd.we.dot(&svd.we.t()));
        computed.output("wr_wr", &svd.wr.dot(&svd.wr.t()));
        computed.output("we_wr", &svd.we.dot(&svd.wr.t()));
        let lambda = svd.sigma.recip();
        (svd.we, svd.wr, lambda)
    } else {
        (file.array("we")?, file.array("wr")?, file.array("lambda")?)
    };
    let (we, wr, lambda) = (we.view(), wr.view(), lambda.view());
    let at = svd_objective(phi_q, phi_k, we, wr, lambda).map_err(Fault::refused)?;
    computed.output("objective", &Array1::from_elem(1, at.value));
    computed.output("parts", &Array1::from_vec(at.parts.to_vec()));
    computed.output("e", &at.e);
    computed.output("r", &at.r);
    if let Some(c) = file.cotangent::<f64>()? {
        let g = svd_objective_gradients(phi_q, phi_k, we, wr, lambda).map_err(Fault::refused)?;
        let c = c.sum();
        computed.gradient("phi_q", &(g.phi_q * c));
        computed.gradient("phi_k", &(g.phi_k * c));
        computed.gradient("we", &(g.we * c));
        computed.gradient("wr", &(g.wr * c));
        computed.gradient("lambda", &(g.lambda * c));
    }
    Ok(computed)
}
