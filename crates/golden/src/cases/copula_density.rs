//! `copula_density` and `copula_joint_density`: the copula's density and that under marginals.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_copula as copula;
use bochner_numerics::Real;
use ndarray::{Array1, Array2, Ix1};

/// The density at uniform scores.
pub(super) fn density<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let (u, factor): (Array2<T>, Array2<T>) = (file.array("u")?, file.array("factor")?);
    let (u, factor) = (u.view(), factor.view());
    let value = copula::copula_log_density(u, factor).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("log_density", &value);
    if let Some(g) = file.ranked_cotangent::<T, Ix1>()? {
        let g = copula::copula_log_density_vjp(u, factor, g.view()).map_err(Fault::refused)?;
        computed.gradient("u", &g.u);
        computed.gradient("factor", &g.factor);
    }
    Ok(computed)
}

/// The joint density: the copula's and those of its marginals.
pub(super) fn joint<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    file.choice("marginals", &["normal"])?;
    let (z, factor): (Array2<T>, Array2<T>) = (file.array("z")?, file.array("factor")?);
    let (mu, sigma): (Array1<T>, Array1<T>) = (file.array("mu")?, file.array("sigma")?);
    let (z, mu, sigma, factor) = (z.view(), mu.view(), sigma.view(), factor.view());
    let value =
        copula::heads::normal_joint_log_density(z, mu, sigma, factor).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("log_density", &value);
    if let Some(g) = file.ranked_cotangent::<T, Ix1>()? {
        let g = copula::heads::normal_joint_log_density_vjp(z, mu, sigma, factor, g.view());
        let g = g.map_err(Fault::refused)?;
        computed.gradient("z", &g.z);
        computed.gradient("mu", &g.mu);
        computed.gradient("sigma", &g.sigma);
        computed.gradient("factor", &g.factor);
    }
    Ok(computed)
}
