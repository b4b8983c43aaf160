//! `copula_factor`, `mikan_posterior`, `copula_density`, `copula_joint_density`, `kl_mean_field`, `kl_copula`, `elbo`:
//! Gaussian copulas over the heads, and the divergences of posteriors.

use super::sum_to_shape;
use crate::case::{Case, Done, reshaped};
use crate::error::{Failure, Fault};
use bochner_copula::{self as copula, heads};
use bochner_numerics::Real;
use bochner_spectral::{kl_mean_field, kl_mean_field_vjp};
use ndarray::{Array1, Array2, Array3, Array4, ArrayD, Ix1, Ix3, Ix4, IxDyn};

/// Correlation matrices from a factor given as it is, by parameters or by features.
pub(super) fn factor<T: Real>(c: &Case<T>) -> Done {
    let parametrisation = ["general", "free", "amortised"];
    let given = c.choice("parametrisation", &parametrisation)?;
    let amortised: Option<(Array3<T>, Array2<T>, Array1<T>)> = match given {
        "amortised" => Some((c.array("hidden")?, c.array("wc")?, c.array("bc")?)),
        _ => None,
    };
    let factor = match &amortised {
        Some((hidden, wc, bc)) => {
            let factor = heads::amortised(hidden.view(), wc.view(), bc.view())?;
            stack("in.hidden", factor.into_dyn())?
        }
        None if given == "general" => stack("in.factor", c.floats("factor")?)?,
        None => heads::free(stack("in.raw", c.floats("raw")?)?.view())?,
    };
    let lh = copula::normalise(factor.view())?;
    c.flat_output("corr", copula::correlation(lh.view())?)?;
    c.flat_output("normalised", lh.iter().copied())?;
    c.flat_output("half_neg_log_det", copula::half_neg_log_det(lh.view())?)?;
    let Some(g) = c.cotangent()? else {
        return Ok(());
    };
    let shape = c.tensor("cotangent")?.shape();
    let g = copula::correlation_vjp(lh.view(), stack("cotangent", g)?.view())?;
    let g = copula::normalise_vjp(factor.view(), g.view())?;
    match &amortised {
        Some((hidden, wc, bc)) => {
            let g = reshaped(g, shape).into_dimensionality::<Ix4>()?;
            let g = heads::amortised_vjp(hidden.view(), wc.view(), bc.view(), g.view())?;
            c.gradient("hidden", &g.hidden);
            c.gradient("wc", &g.wc);
            c.gradient("bc", &g.bc);
            Ok(())
        }
        None if given == "general" => c.flat_gradient("factor", g),
        None => c.flat_gradient("raw", heads::free_vjp(g.view())?),
    }
}

/// Joint draws over the heads.
pub(super) fn posterior<T: Real>(c: &Case<T>) -> Done {
    let [mu, log_sigma]: [Array3<T>; 2] = c.arrays(["mu", "log_sigma"])?;
    let eps: Array4<T> = c.array("eps")?;
    let factor = JointFactor::read(c, mu.dim().2)?;
    let (log_sigma, lh, eps) = (log_sigma.view(), factor.lh.view(), eps.view());
    let draw = heads::joint_posterior(mu.view(), log_sigma, lh, eps)?;
    c.output("z", &draw.z);
    c.output("x", &draw.x);
    if let Some(g) = c.cotangent::<Ix4>()? {
        let g = heads::joint_posterior_vjp(log_sigma, lh, eps, g.view())?;
        c.gradient("mu", &g.mu);
        c.gradient("log_sigma", &g.log_sigma);
        c.gradient("eps", &g.eps);
        c.gradient("factor", &factor.gradient(g.lh)?);
    }
    Ok(())
}

/// `in.factor` of `[M, M]`, `[d, M, M]` or `[B, d, M, M]`, repeated to `[1 or B, d, M, M]` and
/// normalised.
struct JointFactor<T> {
    given: Vec<usize>,
    factor: Array3<T>,
    lh: Array4<T>,
}

impl<T: Real> JointFactor<T> {
    fn read(c: &Case<T>, width: usize) -> Result<Self, Failure> {
        let factor = c.floats("factor")?;
        let given = factor.shape().to_vec();
        let fault = || {
            let expected = format!("[M, M], [d, M, M] or [B, d, M, M] with d = {width}");
            Fault::shape("in.factor", expected, &given)
        };
        let (leading, &[rows, columns]) = given.split_last_chunk().ok_or_else(fault)?;
        let examples = match leading {
            [examples, _] => *examples,
            _ => 1,
        };
        let full = [examples, width, rows, columns];
        let repeated = factor.broadcast(IxDyn(&full)).ok_or_else(fault)?;
        let factor = stack("in.factor", repeated.to_owned())?;
        let lh = reshaped(copula::normalise(factor.view())?, &full);
        Ok(Self {
            lh: lh.into_dimensionality()?,
            given,
            factor,
        })
    }

    /// Along `in.factor`, from the gradient along the normalised one.
    fn gradient(&self, along_lh: Array4<T>) -> Result<ArrayD<T>, Failure> {
        let full = along_lh.shape().to_vec();
        let g = stack("in.factor", along_lh.into_dyn())?;
        let g = copula::normalise_vjp(self.factor.view(), g.view())?;
        Ok(sum_to_shape(reshaped(g, &full), &self.given))
    }
}

/// `[.., M, K]` as `[n, M, K]`.
fn stack<T: Real>(name: &str, x: ArrayD<T>) -> Result<Array3<T>, Failure> {
    let Some((leading, &[rows, columns])) = x.shape().split_last_chunk() else {
        let expected = "[M, M], with or without leading axes";
        return Err(Fault::shape(name, expected, x.shape()).into());
    };
    let n = leading.iter().product();
    Ok(reshaped(x, &[n, rows, columns]).into_dimensionality()?)
}

/// The density at uniform scores.
pub(super) fn density<T: Real>(c: &Case<T>) -> Done {
    let [u, factor]: [Array2<T>; 2] = c.arrays(["u", "factor"])?;
    let (u, factor) = (u.view(), factor.view());
    c.output("log_density", &copula::copula_log_density(u, factor)?);
    if let Some(g) = c.cotangent::<Ix1>()? {
        let g = copula::copula_log_density_vjp(u, factor, g.view())?;
        c.gradient("u", &g.u);
        c.gradient("factor", &g.factor);
    }
    Ok(())
}

/// The joint density: the copula's and those of its marginals.
pub(super) fn joint_density<T: Real>(c: &Case<T>) -> Done {
    c.choice("marginals", &["normal"])?;
    let [z, factor]: [Array2<T>; 2] = c.arrays(["z", "factor"])?;
    let [mu, sigma]: [Array1<T>; 2] = c.arrays(["mu", "sigma"])?;
    let (z, mu, sigma, factor) = (z.view(), mu.view(), sigma.view(), factor.view());
    let value = heads::normal_joint_log_density(z, mu, sigma, factor)?;
    c.output("log_density", &value);
    if let Some(g) = c.cotangent::<Ix1>()? {
        let g = heads::normal_joint_log_density_vjp(z, mu, sigma, factor, g.view())?;
        c.gradient("z", &g.z);
        c.gradient("mu", &g.mu);
        c.gradient("sigma", &g.sigma);
        c.gradient("factor", &g.factor);
    }
    Ok(())
}

/// The divergence of independent heads and what is added to it. Returns its cotangent.
fn independent<T: Real>(
    c: &Case<T>,
    joined: impl FnOnce(Array1<T>) -> Result<Array1<T>, Failure>,
) -> Result<Option<Array1<T>>, Failure> {
    let [mu, log_sigma]: [Array3<T>; 2] = c.arrays(["mu", "log_sigma"])?;
    let prior_std = c.real("prior_std")?;
    let kl = kl_mean_field(mu.view(), log_sigma.view(), prior_std)?;
    c.output("kl", &joined(kl)?);
    let cotangent = c.cotangent::<Ix1>()?;
    if let Some(g) = &cotangent {
        let g = kl_mean_field_vjp(mu.view(), log_sigma.view(), prior_std, g.view())?;
        c.gradient("mu", &g.mu);
        c.gradient("log_sigma", &g.log_sigma);
    }
    Ok(cotangent)
}

/// The divergence of independent heads.
pub(super) fn mean_field_kl<T: Real>(c: &Case<T>) -> Done {
    independent(c, Ok).map(drop)
}

/// The divergence of heads tied by a copula.
pub(super) fn joint_kl<T: Real>(c: &Case<T>) -> Done {
    let width = c.array::<Ix3>("mu")?.dim().2;
    let factor = JointFactor::read(c, width)?;
    let dependence = heads::dependence_kl(factor.lh.view())?;
    let cotangent = independent(c, |kl| {
        let expected = || format!("one factor, or {} of them", kl.len());
        let fault = || Fault::shape("in.factor", expected(), factor.lh.shape());
        let dependence = dependence.broadcast(kl.len()).ok_or_else(fault)?;
        Ok(&kl + &dependence)
    })?;
    if let Some(g) = cotangent {
        let g = match factor.lh.dim().0 {
            1 => Array1::from_elem(1, g.sum()),
            _ => g,
        };
        let g = heads::dependence_kl_vjp(factor.lh.view(), g.view())?;
        c.gradient("factor", &factor.gradient(g)?);
    }
    Ok(())
}

/// The objective per example.
pub(super) fn elbo<T: Real>(c: &Case<T>) -> Done {
    let [likelihood, kl]: [Array1<T>; 2] = c.arrays(["log_likelihood", "kl"])?;
    let weight = c.real("beta")? / T::of(c.count("n_train")? as f64);
    c.output("elbo", &(likelihood - kl.mapv(|kl| weight * kl)));
    if let Some(g) = c.cotangent::<Ix1>()? {
        c.gradient("kl", &g.mapv(|g| -weight * g));
        c.gradient("log_likelihood", &g);
    }
    Ok(())
}
