//! `kernel_matrix`: the kernels in closed form.

use crate::case::{Case, Done};
use crate::error::Failure;
use bochner_kernels::{
    Cosine, ExpsinConfig, Kernel, Lengthscale, LinearConfig, MaternConfig, RbfConfig, Smoothness,
    SpectralMixtureConfig,
};
use bochner_numerics::Real;
use ndarray::{Array2, Ix2};

/// The Gram matrix of `x` and `y`, and its gradients along them and along the parameters that are
/// tensors.
pub(super) fn kernel_matrix<T: Real>(c: &Case<T>) -> Done {
    let kernel = named(c)?;
    let [x, y]: [Array2<T>; 2] = c.arrays(["x", "y"])?;
    c.output("kernel", &kernel.gram(x.view(), y.view())?);
    if let Some(g) = c.cotangent::<Ix2>()? {
        let g = kernel.gram_vjp(x.view(), y.view(), g.view())?;
        c.gradient("x", &g.x);
        c.gradient("y", &g.y);
        if c.word("kernel")? == "spectral_mixture" {
            let mut rest = g.parameters.iter().copied();
            for name in ["weights", "means", "variances"] {
                let count = c.floats(name)?.len();
                c.flat_gradient(name, rest.by_ref().take(count))?;
            }
        }
    }
    Ok(())
}

fn named<T: Real>(c: &Case<T>) -> Result<Box<dyn Kernel<T>>, Failure> {
    let scale = || Ok::<_, Failure>(Lengthscale::Shared(c.real("lengthscale")?));
    let matern = |smoothness| -> Result<Box<dyn Kernel<T>>, Failure> {
        let lengthscale = scale()?;
        let config = MaternConfig {
            smoothness,
            lengthscale,
        };
        Ok(Box::new(config.build()?))
    };
    Ok(match c.word("kernel")? {
        "rbf" => Box::new(
            RbfConfig {
                lengthscale: scale()?,
            }
            .build()?,
        ),
        "matern12" => matern(Smoothness::Half)?,
        "matern32" => matern(Smoothness::ThreeHalves)?,
        "matern52" => matern(Smoothness::FiveHalves)?,
        "expsin" => {
            let config = ExpsinConfig {
                period: c.real("period")?,
                lengthscale: Lengthscale::Shared(c.real("lengthscale")?),
            };
            Box::new(config.build()?)
        }
        "linear" => Box::new(
            LinearConfig {
                lengthscale: scale()?,
            }
            .build()?,
        ),
        "spectral_mixture" => {
            let config = SpectralMixtureConfig {
                weights: c.array("weights")?,
                means: c.array("means")?,
                variances: c.array("variances")?,
                cosine: match c.choice("cosine", &["joint", "product"])? {
                    "joint" => Cosine::Joint,
                    _ => Cosine::Product,
                },
            };
            Box::new(config.build()?)
        }
        _ => {
            return Err(c
                .wrong("kernel", "the name of a kernel in closed form")
                .into());
        }
    })
}
