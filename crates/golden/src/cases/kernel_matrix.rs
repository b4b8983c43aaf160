//! `kernel_matrix`: the kernels in closed form.

use crate::case::{Case, Done};
use crate::error::Failure;
use bochner_kernels::{
    AnyKernel, ExpsinConfig, Kernel, Lengthscale, LinearConfig, MaternConfig, RbfConfig,
    Smoothness, SpectralMixtureConfig,
};
use bochner_numerics::Real;
use ndarray::Array2;

/// The Gram matrix of `x` and `y`, and its gradients along them and along the parameters that are
/// tensors.
pub(super) fn kernel_matrix<T: Real>(c: &Case<T>) -> Done {
    let kernel = named(c)?;
    let [x, y]: [Array2<T>; 2] = c.arrays(["x", "y"])?;
    c.output("kernel", kernel.gram(x.view(), y.view())?);
    c.pull(|g: Array2<T>| {
        let g = kernel.gram_vjp(x.view(), y.view(), g.view())?;
        c.gradient("x", g.x);
        c.gradient("y", g.y);
        if let AnyKernel::SpectralMixture(_) = kernel {
            c.gradients(&["weights", "means", "variances"], g.parameters)?;
        }
        Ok(())
    })
}

fn named<T: Real>(c: &Case<T>) -> Result<AnyKernel<T>, Failure> {
    let name = c.word("kernel")?;
    if name == "spectral_mixture" {
        let config = SpectralMixtureConfig {
            weights: c.array("weights")?,
            means: c.array("means")?,
            variances: c.array("variances")?,
            cosine: c.setting("cosine")?,
        };
        return Ok(config.build()?.into());
    }
    let lengthscale = Lengthscale::Shared(c.real("lengthscale")?);
    let smoothness = match name {
        "rbf" => return Ok(RbfConfig { lengthscale }.build()?.into()),
        "linear" => return Ok(LinearConfig { lengthscale }.build()?.into()),
        "expsin" => {
            let period = c.real("period")?;
            let config = ExpsinConfig {
                period,
                lengthscale,
            };
            return Ok(config.build()?.into());
        }
        "matern12" => Smoothness::Half,
        "matern32" => Smoothness::ThreeHalves,
        "matern52" => Smoothness::FiveHalves,
        _ => {
            let expected = "the name of a kernel in closed form";
            return Err(c.wrong("kernel", expected).into());
        }
    };
    let config = MaternConfig {
        smoothness,
        lengthscale,
    };
    Ok(config.build()?.into())
}
