//! `copula_factor`, `mikan_posterior`, `copula_density`, `copula_joint_density`, `kl_mean_field`, `kl_copula`, `elbo`:
//! Gaussian copulas over the heads, and the divergences of posteriors.

use crate::case::{Case, Done, matrices, record};
use crate::error::{Failure, Fault};
use bochner_copula::{self as copula, heads};
use bochner_numerics::Real;
use bochner_spectral::{kl_mean_field, kl_mean_field_vjp};
use ndarray::{Array1, Array2, Array3, Array4, ArrayD};

/// Correlation matrices from a factor given as it is, by parameters or by features.
pub(super) fn factor<T: Real>(c: &Case<T>) -> Done {
    match c.choice("parametrisation", &["general", "free", "amortised"])? {
        "general" => from_factor(c, c.matrices("factor")?, |g| {
            c.gradient("factor", g);
            Ok(())
        }),
        "free" => from_factor(c, heads::free(c.matrices("raw")?.view())?, |g| {
            c.gradient("raw", heads::free_vjp(g.view())?);
            Ok(())
        }),
        _ => {
            let (hidden, wc): (Array3<T>, Array2<T>) = (c.array("hidden")?, c.array("wc")?);
            let bc: Array1<T> = c.array("bc")?;
            let (hidden, wc, bc) = (hidden.view(), wc.view(), bc.view());
            let factor = heads::amortised(hidden, wc, bc)?;
            let shape = factor.dim();
            from_factor(c, matrices("factor", factor.into_dyn())?, |g| {
                let g = g.into_shape_with_order(shape)?;
                let g = heads::amortised_vjp(hidden, wc, bc, g.view())?;
                record!(c.gradient, g => hidden, wc, bc);
                Ok(())
            })
        }
    }
}

/// The correlations of a factor; `pull` records the gradients from that along the factor.
fn from_factor<T: Real>(
    c: &Case<T>,
    factor: Array3<T>,
    pull: impl FnOnce(Array3<T>) -> Done,
) -> Done {
    let lh = copula::normalise(factor.view())?;
    c.output("corr", copula::correlation(lh.view())?);
    c.output("half_neg_log_det", copula::half_neg_log_det(lh.view())?);
    c.pull(|g: ArrayD<T>| {
        let g = copula::correlation_vjp(lh.view(), matrices("cotangent", g)?.view())?;
        pull(copula::normalise_vjp(factor.view(), g.view())?)
    })?;
    c.output("normalised", lh);
    Ok(())
}

/// Joint draws over the heads.
pub(super) fn posterior<T: Real>(c: &Case<T>) -> Done {
    let [mu, log_sigma]: [Array3<T>; 2] = c.arrays(["mu", "log_sigma"])?;
    let eps: Array4<T> = c.array("eps")?;
    let factor = JointFactor::read(c, mu.dim().2)?;
    let (log_sigma, lh, eps) = (log_sigma.view(), factor.lh.view(), eps.view());
    let draw = heads::joint_posterior(mu.view(), log_sigma, lh, eps)?;
    record!(c.output, draw => z, x);
    c.pull(|g: Array4<T>| {
        let g = heads::joint_posterior_vjp(log_sigma, lh, eps, g.view())?;
        c.gradient("factor", factor.gradient(g.lh)?);
        record!(c.gradient, g => mu, log_sigma, eps);
        Ok(())
    })
}

/// `in.factor` of `[M, M]`, `[d, M, M]` or `[B, d, M, M]`, repeated to `[1 or B, d, M, M]` and normalised.
struct JointFactor<T> {
    factor: Array3<T>,
    lh: Array4<T>,
}

impl<T: Real> JointFactor<T> {
    fn read(c: &Case<T>, width: usize) -> Result<Self, Failure> {
        let examples = match *c.tensor("in.factor")?.shape() {
            [examples, _, _, _] => examples,
            _ => 1,
        };
        let factor = c.repeated("factor", examples * width)?;
        let (_, rows, columns) = factor.dim();
        let lh = copula::normalise(factor.view())?;
        Ok(Self {
            lh: lh.into_shape_with_order((examples, width, rows, columns))?,
            factor,
        })
    }

    /// The gradient with respect to the repeated factor, from that with respect to the normalised one.
    fn gradient(&self, along_lh: Array4<T>) -> Result<Array3<T>, Failure> {
        let along_lh = along_lh.to_shape(self.factor.dim())?;
        Ok(copula::normalise_vjp(self.factor.view(), along_lh.view())?)
    }
}

/// The density at uniform scores.
pub(super) fn density<T: Real>(c: &Case<T>) -> Done {
    let [u, factor]: [Array2<T>; 2] = c.arrays(["u", "factor"])?;
    let (u, factor) = (u.view(), factor.view());
    c.output("log_density", copula::copula_log_density(u, factor)?);
    c.pull(|g: Array1<T>| {
        let g = copula::copula_log_density_vjp(u, factor, g.view())?;
        record!(c.gradient, g => u, factor);
        Ok(())
    })
}

/// The joint density: the copula's and those of its marginals.
pub(super) fn joint_density<T: Real>(c: &Case<T>) -> Done {
    c.choice("marginals", &["normal"])?;
    let [z, factor]: [Array2<T>; 2] = c.arrays(["z", "factor"])?;
    let [mu, sigma]: [Array1<T>; 2] = c.arrays(["mu", "sigma"])?;
    let (z, mu, sigma, factor) = (z.view(), mu.view(), sigma.view(), factor.view());
    let value = heads::normal_joint_log_density(z, mu, sigma, factor)?;
    c.output("log_density", value);
    c.pull(|g: Array1<T>| {
        let g = heads::normal_joint_log_density_vjp(z, mu, sigma, factor, g.view())?;
        record!(c.gradient, g => z, mu, sigma, factor);
        Ok(())
    })
}

/// The divergence of independent heads.
pub(super) fn mean_field_kl<T: Real>(c: &Case<T>) -> Done {
    let kl = independent(c)?;
    c.output("kl", kl);
    Ok(())
}

/// The divergence of independent heads, and its gradients.
fn independent<T: Real>(c: &Case<T>) -> Result<Array1<T>, Failure> {
    let [mu, log_sigma]: [Array3<T>; 2] = c.arrays(["mu", "log_sigma"])?;
    let (mu, log_sigma, prior_std) = (mu.view(), log_sigma.view(), c.real("prior_std")?);
    c.pull(|g: Array1<T>| {
        let g = kl_mean_field_vjp(mu, log_sigma, prior_std, g.view())?;
        record!(c.gradient, g => mu, log_sigma);
        Ok(())
    })?;
    Ok(kl_mean_field(mu, log_sigma, prior_std)?)
}

/// The divergence of heads tied by a copula.
pub(super) fn joint_kl<T: Real>(c: &Case<T>) -> Done {
    let width = c.array::<ndarray::Ix3>("mu")?.dim().2;
    let factor = JointFactor::read(c, width)?;
    let (kl, dependence) = (independent(c)?, heads::dependence_kl(factor.lh.view())?);
    let Some(dependence) = dependence.broadcast(kl.len()) else {
        let expected = format!("one factor or {}", kl.len());
        return Err(Fault::shape("in.factor", &expected, factor.lh.shape()).into());
    };
    c.output("kl", kl + dependence);
    c.pull(|g: Array1<T>| {
        let g = match factor.lh.dim().0 {
            1 => Array1::from_elem(1, g.sum()),
            _ => g,
        };
        let g = heads::dependence_kl_vjp(factor.lh.view(), g.view())?;
        c.gradient("factor", factor.gradient(g)?);
        Ok(())
    })
}

/// The objective per example.
pub(super) fn elbo<T: Real>(c: &Case<T>) -> Done {
    let [likelihood, kl]: [Array1<T>; 2] = c.arrays(["log_likelihood", "kl"])?;
    let weight = c.real("beta")? / T::of(c.count("n_train")? as f64);
    c.output("elbo", likelihood - kl.mapv(|kl| weight * kl));
    c.pull(|g: Array1<T>| {
        c.gradient("kl", g.mapv(|g| -weight * g));
        c.gradient("log_likelihood", g);
        Ok(())
    })
}
