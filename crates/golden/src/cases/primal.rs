//! `primal` and `ksvd`: Primal-Attention, and the kernel singular values behind it.

use super::reshaped;
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{
    Mask, Mechanism, Pass, Primal,
    mechanism::{Cotangents, PrimalReduction, PrimalTrace, PrimalWeights, Streams},
};
use bochner_dense::svd;
use bochner_numerics::{Real, Seed, argument};
use ndarray::{Array1, Array2, Array3, Array4, Axis, ScalarOperand, s};

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

/// The first singular values of the kernel matrix $K = \Phi_q \Phi_k^\top$, $K H_r = H_e \Sigma$, with the
/// projections $W_e = \Phi_k^\top H_r$ and $W_r = \Phi_q^\top H_e$, and the primal objective at these or at given
/// ones; the decomposition itself in double precision, which it has alone:
///
/// $$J = \tfrac12 \sum_i e_i^\top \Lambda e_i + \tfrac12 \sum_j r_j^\top \Lambda r_j -
/// \operatorname{tr} W_e^\top W_r, \qquad e = \Phi_q W_e, \quad r = \Phi_k W_r$$
pub(super) fn kernel_svd<T: Real + ScalarOperand>(file: &CaseFile) -> Result<Computed, Fault> {
    let [phi_q, phi_k]: [Array2<T>; 2] = [file.array("phi_q")?, file.array("phi_k")?];
    let width = phi_q.ncols();
    argument::shape("phi_k", &[phi_k.nrows(), width], phi_k.shape()).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    let (we, wr, lambda): (Array2<T>, Array2<T>, Array1<T>);
    if file.choice("weights", &["svd", "given"])? == "svd" {
        let kernel = phi_q.dot(&phi_k.t()).mapv(T::as_f64);
        let svd = svd(kernel.view()).map_err(Fault::refused)?;
        let rank = file.count("s")?.min(svd.s.len());
        let sigma = svd.s.slice(s![..rank]).mapv(T::of);
        we = (phi_k.t()).dot(&svd.vt.t().slice(s![.., ..rank]).mapv(T::of));
        wr = (phi_q.t()).dot(&svd.u.slice(s![.., ..rank]).mapv(T::of));
        lambda = sigma.mapv(T::recip);
        computed.output("sigma", &sigma);
        computed.output("we_we", &we.dot(&we.t()));
        computed.output("wr_wr", &wr.dot(&wr.t()));
        computed.output("we_wr", &we.dot(&wr.t()));
    } else {
        (we, wr, lambda) = (file.array("we")?, file.array("wr")?, file.array("lambda")?);
        for (name, x) in [("we", &we), ("wr", &wr)] {
            argument::shape(name, &[width, lambda.len()], x.shape()).map_err(Fault::refused)?;
        }
    }
    let (e, r) = (phi_q.dot(&we), phi_k.dot(&wr));
    let half = |x: &Array2<T>| T::of(0.5) * (x * x).dot(&lambda).sum();
    let parts = [half(&e), half(&r), (&we * &wr).sum()];
    let value = parts[0] + parts[1] - parts[2];
    computed.output("objective", &Array1::from_elem(1, value));
    computed.output("parts", &Array1::from_vec(parts.to_vec()));
    computed.output("e", &e);
    computed.output("r", &r);
    if let Some(c) = file.cotangent::<T>()? {
        let c = c.sum();
        let (along_e, along_r) = (&e * &lambda * c, &r * &lambda * c);
        computed.gradient("phi_q", &along_e.dot(&we.t()));
        computed.gradient("phi_k", &along_r.dot(&wr.t()));
        computed.gradient("we", &(phi_q.t().dot(&along_e) - &wr * c));
        computed.gradient("wr", &(phi_k.t().dot(&along_r) - &we * c));
        let squares = (&e * &e).sum_axis(Axis(0)) + (&r * &r).sum_axis(Axis(0));
        computed.gradient("lambda", &(squares * (T::of(0.5) * c)));
    }
    Ok(computed)
}
