//! `copula_factor` and `mikan_posterior`: factors, correlations, joint draws.

use super::{reshaped, sum_to_shape};
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_copula as copula;
use bochner_numerics::Real;
use ndarray::{Array3, Array4, ArrayD, ArrayView4, IxDyn};

/// Correlation matrices from a factor given as it is, by parameters or by features.
pub(super) fn factor<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let (factor, shape) = given_factor::<T>(file)?;
    let lh = copula::normalise(factor.view()).map_err(Fault::refused)?;
    let corr = copula::correlation(lh.view()).map_err(Fault::refused)?;
    let half = copula::half_neg_log_det(lh.view()).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("corr", &reshaped(corr.into_dyn(), &shape));
    computed.output("normalised", &reshaped(lh.clone().into_dyn(), &shape));
    let leading = &shape[..shape.len() - 2];
    computed.output("half_neg_log_det", &reshaped(half.into_dyn(), leading));
    if let Some(cotangent) = file.cotangent::<T>()? {
        let g = stacked("cotangent", cotangent)?;
        let g = copula::correlation_vjp(lh.view(), g.view()).map_err(Fault::refused)?;
        let g = copula::normalise_vjp(factor.view(), g.view()).map_err(Fault::refused)?;
        factor_gradients(file, g, &shape, &mut computed)?;
    }
    Ok(computed)
}

/// The factors as one stack, and their shape with the leading axes as they were.
fn given_factor<T: Real>(file: &CaseFile) -> Result<(Array3<T>, Vec<usize>), Fault> {
    let parametrisation = ["general", "free", "amortised"];
    let factor = match file.choice("parametrisation", &parametrisation)? {
        "general" => file.floats("factor")?,
        "free" => {
            let raw: ArrayD<T> = file.floats("raw")?;
            let shape = raw.shape().to_vec();
            let factor =
                copula::heads::free(stacked("in.raw", raw)?.view()).map_err(Fault::refused)?;
            reshaped(factor.into_dyn(), &shape)
        }
        _ => amortised_factor(file)?.into_dyn(),
    };
    let shape = factor.shape().to_vec();
    Ok((stacked("in.factor", factor)?, shape))
}

fn amortised_factor<T: Real>(file: &CaseFile) -> Result<Array4<T>, Fault> {
    let hidden: Array3<T> = file.array("hidden")?;
    let (wc, bc) = (file.array("wc")?, file.array("bc")?);
    copula::heads::amortised(hidden.view(), wc.view(), bc.view()).map_err(Fault::refused)
}

/// From the gradient along the factor to those along the inputs.
fn factor_gradients<T: Real>(
    file: &CaseFile,
    gradient: Array3<T>,
    shape: &[usize],
    computed: &mut Computed,
) -> Result<(), Fault> {
    match file.word("parametrisation")? {
        "general" => computed.gradient("factor", &reshaped(gradient.into_dyn(), shape)),
        "free" => {
            let raw = copula::heads::free_vjp(gradient.view()).map_err(Fault::refused)?;
            computed.gradient("raw", &reshaped(raw.into_dyn(), shape));
        }
        _ => {
            let hidden: Array3<T> = file.array("hidden")?;
            let (wc, bc) = (file.array("wc")?, file.array("bc")?);
            let gradient = reshaped(gradient.into_dyn(), shape);
            let gradient = gradient.into_dimensionality().expect("[B, d, M, M]");
            let (h, w, b) = (hidden.view(), wc.view(), bc.view());
            let g =
                copula::heads::amortised_vjp(h, w, b, gradient.view()).map_err(Fault::refused)?;
            computed.gradient("hidden", &g.hidden);
            computed.gradient("wc", &g.wc);
            computed.gradient("bc", &g.bc);
        }
    }
    Ok(())
}

/// Joint draws over the heads.
pub(super) fn posterior<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let (mu, log_sigma): (Array3<T>, Array3<T>) = (file.array("mu")?, file.array("log_sigma")?);
    let eps: Array4<T> = file.array("eps")?;
    let factor = JointFactor::<T>::read(file, mu.dim().2)?;
    let (mu, log_sigma, eps) = (mu.view(), log_sigma.view(), eps.view());
    let draw =
        copula::heads::joint_posterior(mu, log_sigma, factor.lh(), eps).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("z", &draw.z);
    computed.output("x", &draw.x);
    if let Some(g) = file.ranked_cotangent::<T, ndarray::Ix4>()? {
        let g = copula::heads::joint_posterior_vjp(log_sigma, factor.lh(), eps, g.view());
        let g = g.map_err(Fault::refused)?;
        computed.gradient("mu", &g.mu);
        computed.gradient("log_sigma", &g.log_sigma);
        computed.gradient("eps", &g.eps);
        computed.gradient("factor", &factor.gradient(g.lh)?);
    }
    Ok(computed)
}

/// `in.factor` of `[M, M]`, `[d, M, M]` or `[B, d, M, M]`, repeated to `[1 or B, d, M, M]` and
/// normalised.
pub(super) struct JointFactor<T> {
    given: Vec<usize>,
    factor: Array3<T>,
    lh: Array4<T>,
}

impl<T: Real> JointFactor<T> {
    pub(super) fn read(file: &CaseFile, width: usize) -> Result<Self, Fault> {
        let factor: ArrayD<T> = file.floats("factor")?;
        let given = factor.shape().to_vec();
        let fault = || Fault::Shape {
            tensor: "in.factor".to_owned(),
            expected: format!("[M, M], [d, M, M] or [B, d, M, M] with d = {width}"),
            got: given.clone(),
        };
        let (leading, &[rows, columns]) = given.split_last_chunk().ok_or_else(fault)?;
        let examples = if let [examples, _] = leading {
            *examples
        } else {
            1
        };
        let full = [examples, width, rows, columns];
        let repeated = factor.broadcast(IxDyn(&full)).ok_or_else(fault)?;
        let factor = stacked("in.factor", repeated.to_owned())?;
        let lh = copula::normalise(factor.view()).map_err(Fault::refused)?;
        let lh = reshaped(lh.into_dyn(), &full);
        Ok(Self {
            given,
            factor,
            lh: lh.into_dimensionality().expect("four axes"),
        })
    }

    pub(super) fn lh(&self) -> ArrayView4<'_, T> {
        self.lh.view()
    }

    /// Along `in.factor`, from the gradient along the normalised one.
    pub(super) fn gradient(&self, along_lh: Array4<T>) -> Result<ArrayD<T>, Fault> {
        let full = along_lh.shape().to_vec();
        let g = stacked("in.factor", along_lh.into_dyn())?;
        let g = copula::normalise_vjp(self.factor.view(), g.view()).map_err(Fault::refused)?;
        Ok(sum_to_shape(reshaped(g.into_dyn(), &full), &self.given))
    }
}

/// `[.., M, K]` as `[n, M, K]`.
fn stacked<T: Real>(name: &str, x: ArrayD<T>) -> Result<Array3<T>, Fault> {
    let Some((leading, &[rows, columns])) = x.shape().split_last_chunk() else {
        return Err(Fault::Shape {
            tensor: name.to_owned(),
            expected: "[M, M], with or without leading axes".to_owned(),
            got: x.shape().to_vec(),
        });
    };
    let n = leading.iter().product();
    let flat = reshaped(x, &[n, rows, columns]);
    Ok(flat.into_dimensionality().expect("three axes"))
}
