//! `kl_mean_field`, `kl_copula` and `elbo`: the objective.

use super::copula::JointFactor;
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_copula::heads::{dependence_kl, dependence_kl_vjp};
use bochner_numerics::Real;
use bochner_spectral as spectral;
use ndarray::{Array1, Array3, Ix1};

/// The divergence of independent heads.
pub(super) fn mean_field<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let posterior = Posterior::<T>::read(file)?;
    let mut computed = Computed::default();
    computed.output("kl", &posterior.kl()?);
    if let Some(g) = file.ranked_cotangent::<T, Ix1>()? {
        posterior.gradients(&g, &mut computed)?;
    }
    Ok(computed)
}

/// The divergence of heads tied by a copula.
pub(super) fn joint<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let posterior = Posterior::<T>::read(file)?;
    let factor = JointFactor::<T>::read(file, posterior.mu.dim().2)?;
    let dependence = dependence_kl(factor.lh()).map_err(Fault::refused)?;
    let mean_field = posterior.kl()?;
    let fault = || Fault::Shape {
        tensor: "in.factor".to_owned(),
        expected: format!("one factor, or {} of them", mean_field.len()),
        got: factor.lh().shape().to_vec(),
    };
    let dependence = dependence.broadcast(mean_field.len()).ok_or_else(fault)?;
    let mut computed = Computed::default();
    computed.output("kl", &(&mean_field + &dependence));
    if let Some(g) = file.ranked_cotangent::<T, Ix1>()? {
        posterior.gradients(&g, &mut computed)?;
        let shared = factor.lh().dim().0 == 1;
        let g = if shared {
            Array1::from_elem(1, g.sum())
        } else {
            g
        };
        let g = dependence_kl_vjp(factor.lh(), g.view()).map_err(Fault::refused)?;
        computed.gradient("factor", &factor.gradient(g)?);
    }
    Ok(computed)
}

/// The objective per example.
pub(super) fn elbo<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let (likelihood, kl): (Array1<T>, Array1<T>) =
        (file.array("log_likelihood")?, file.array("kl")?);
    let (beta, n_train) = (T::of(file.number("beta")?), file.count("n_train")?);
    let weight = beta / T::of(n_train as f64);
    let mut computed = Computed::default();
    computed.output("elbo", &(likelihood - kl.mapv(|kl| weight * kl)));
    if let Some(g) = file.ranked_cotangent::<T, Ix1>()? {
        computed.gradient("kl", &g.mapv(|g| -weight * g));
        computed.gradient("log_likelihood", &g);
    }
    Ok(computed)
}

struct Posterior<T> {
    mu: Array3<T>,
    log_sigma: Array3<T>,
    prior_std: T,
}

impl<T: Real> Posterior<T> {
    fn read(file: &CaseFile) -> Result<Self, Fault> {
        Ok(Self {
            mu: file.array("mu")?,
            log_sigma: file.array("log_sigma")?,
            prior_std: T::of(file.number("prior_std")?),
        })
    }

    fn kl(&self) -> Result<Array1<T>, Fault> {
        spectral::kl_mean_field(self.mu.view(), self.log_sigma.view(), self.prior_std)
            .map_err(Fault::refused)
    }

    fn gradients(&self, cotangent: &Array1<T>, computed: &mut Computed) -> Result<(), Fault> {
        let (mu, log_sigma) = (self.mu.view(), self.log_sigma.view());
        let g = spectral::kl_mean_field_vjp(mu, log_sigma, self.prior_std, cotangent.view());
        let g = g.map_err(Fault::refused)?;
        computed.gradient("mu", &g.mu);
        computed.gradient("log_sigma", &g.log_sigma);
        Ok(())
    }
}
