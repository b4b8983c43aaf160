//! `magnitude`, `learnable_query`, `ksvd`, `label_smoothed_cross_entropy` and `sinusoidal_positions`: operations by
//! themselves.

use super::attention::{in_forms, key_lengths};
use crate::case::{Case, Done};
use crate::error::Failure;
use bochner_attention::engine::DotProduct;
use bochner_attention::magnitude::{log_norm_sq, magnitude as of_rows, magnitude_vjp};
use bochner_attention::{Form, Settings};
use bochner_dense::svd;
use bochner_models::positions::sinusoidal_positions;
use bochner_numerics::{Real, argument};
use bochner_ops::{CrossEntropy, apply, apply_vjp};
use ndarray::{Array1, Array2, Array3, Array4, ArrayD, Axis, ScalarOperand, s};

/// The magnitude of each row, and `log |x|_p^2` where the file has it.
pub(super) fn magnitude<T: Real>(c: &Case<T>) -> Done {
    let (x, p): (Array2<T>, _) = (c.array("x")?, c.number("p")?);
    c.output("magnitude", of_rows(x.view(), p)?);
    if c.choice("log", &["yes", "no"])? == "yes" {
        c.check_outputs(&["log_norm_sq"])?;
        c.output("log_norm_sq", log_norm_sq(x.view(), p)?);
    }
    c.pull(|g: Array1<T>| {
        c.gradient("x", magnitude_vjp(x.view(), p, g.view())?);
        Ok(())
    })
}

/// Attention of queries that are parameters.
pub(super) fn learnable_query<T: Real>(c: &Case<T>) -> Done {
    let q: Array3<T> = c.array("q")?;
    let [k, v]: [Array4<T>; 2] = c.arrays(["k", "v"])?;
    let mask = key_lengths(c)?;
    let scale = match c.choice("scale", &["none", "inverse_sqrt"])? {
        "none" => Some(1.0),
        _ => None,
    };
    let settings = Settings::pairs(DotProduct { scale }, &mask);
    let (heads, count, width) = q.dim();
    let copies = q.broadcast((k.dim().0, heads, count, width));
    let copies = copies.expect("an axis more").to_owned();
    in_forms(c, [Form::Pairwise], &settings, [&copies, &k, &v], &[])
}

/// The loss, that of each row, and the gradient of the loss.
pub(super) fn cross_entropy<T: Real>(c: &Case<T>) -> Done {
    let logits: Array2<T> = c.array("logits")?;
    let targets: Array1<i64> = c.integers("target")?;
    let kept: Array1<bool> = c.mask("keep")?;
    let rows = targets.iter().enumerate().zip(&kept);
    let labelled = rows.filter(|(_, kept)| **kept).map(|((row, &target), _)| {
        let label = usize::try_from(target)?;
        Ok((row, label))
    });
    let loss = CrossEntropy {
        labelled: labelled.collect::<Result<_, Failure>>()?,
        smoothing: c.number("smoothing")?,
    };
    let mut of_rows = Array1::<f64>::zeros(logits.nrows());
    for (&(row, _), found) in loss.labelled.iter().zip(loss.of_rows(logits.view())?) {
        of_rows[row] = found;
    }
    c.output("row", of_rows);
    let inputs = [logits.view().into_dyn()];
    let (mean, saved) = apply(&loss, &inputs)?;
    c.output("loss", mean.into_iter().flatten());
    c.pull(|g: Array1<T>| {
        let along = [g.index_axis(Axis(0), 0).into_dyn()];
        let g = apply_vjp(&loss, &inputs, &saved, &along, &[true])?;
        c.gradient("logits", g.into_iter().flatten().flatten());
        Ok(())
    })
}

/// The encoding of some positions.
pub(super) fn positions<T: Real>(c: &Case<T>) -> Done {
    let (positions, width) = (c.counts("positions")?, c.count("d")?);
    let encoded = sinusoidal_positions::<T>(&positions, width, c.number("base")?)?;
    c.output("encoding", encoded);
    Ok(())
}

/// The first singular values of the kernel matrix $K = \Phi_q \Phi_k^\top$, $K H_r = H_e \Sigma$, with the
/// projections $W_e = \Phi_k^\top H_r$ and $W_r = \Phi_q^\top H_e$, and the primal objective at these or at given
/// ones; the decomposition itself in double precision, which it has alone:
///
/// $$J = \tfrac12 \sum_i e_i^\top \Lambda e_i + \tfrac12 \sum_j r_j^\top \Lambda r_j -
/// \operatorname{tr} W_e^\top W_r, \qquad e = \Phi_q W_e, \quad r = \Phi_k W_r$$
pub(super) fn kernel_svd<T: Real + ScalarOperand>(c: &Case<T>) -> Done {
    let [phi_q, phi_k]: [Array2<T>; 2] = c.arrays(["phi_q", "phi_k"])?;
    let width = phi_q.ncols();
    argument::shape("phi_k", &[phi_k.nrows(), width], phi_k.shape())?;
    let (we, wr, lambda): (Array2<T>, Array2<T>, Array1<T>);
    if c.choice("weights", &["svd", "given"])? == "svd" {
        let svd = svd(phi_q.dot(&phi_k.t()).mapv(T::as_f64).view())?;
        let rank = c.count("s")?.min(svd.s.len());
        let sigma = svd.s.slice(s![..rank]).mapv(T::of);
        we = (phi_k.t()).dot(&svd.vt.t().slice(s![.., ..rank]).mapv(T::of));
        wr = (phi_q.t()).dot(&svd.u.slice(s![.., ..rank]).mapv(T::of));
        lambda = sigma.mapv(T::recip);
        c.output("we_we", we.dot(&we.t()));
        c.output("wr_wr", wr.dot(&wr.t()));
        c.output("we_wr", we.dot(&wr.t()));
        c.output("sigma", sigma);
    } else {
        (we, wr, lambda) = (c.array("we")?, c.array("wr")?, c.array("lambda")?);
        for (name, x) in [("we", &we), ("wr", &wr)] {
            argument::shape(name, &[width, lambda.len()], x.shape())?;
        }
    }
    let (e, r) = (phi_q.dot(&we), phi_k.dot(&wr));
    let half = |x: &Array2<T>| T::of(0.5) * (x * x).dot(&lambda).sum();
    let parts = [half(&e), half(&r), (&we * &wr).sum()];
    c.output("objective", [parts[0] + parts[1] - parts[2]]);
    c.output("parts", parts);
    c.pull(|g: ArrayD<T>| {
        let g = g.sum();
        let (along_e, along_r) = (&e * &lambda * g, &r * &lambda * g);
        c.gradient("phi_q", along_e.dot(&we.t()));
        c.gradient("phi_k", along_r.dot(&wr.t()));
        c.gradient("we", phi_q.t().dot(&along_e) - &wr * g);
        c.gradient("wr", phi_k.t().dot(&along_r) - &we * g);
        let squares = (&e * &e).sum_axis(Axis(0)) + (&r * &r).sum_axis(Axis(0));
        c.gradient("lambda", squares * (T::of(0.5) * g));
        Ok(())
    })?;
    c.output("e", e);
    c.output("r", r);
    Ok(())
}
