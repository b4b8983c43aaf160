//! `kernel_matrix`: the kernels in closed form.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_kernels::{
    Cosine, ExpsinConfig, Kernel, Lengthscale, LinearConfig, MaternConfig, RbfConfig, Smoothness,
    SpectralMixtureConfig,
};
use bochner_numerics::Real;
use ndarray::{Array1, Array2, Ix2};

/// The Gram matrix of `x` and `y`, and its gradients along them and along the parameters that are
/// tensors.
pub(super) fn kernel_matrix<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let kernel = Named::<T>::read(file)?;
    let (x, y): (Array2<T>, Array2<T>) = (file.array("x")?, file.array("y")?);
    let mut computed = Computed::default();
    let gram = kernel.kernel.gram(x.view(), y.view());
    computed.output("kernel", &gram.map_err(Fault::refused)?);
    if let Some(g) = file.ranked_cotangent::<T, Ix2>()? {
        let g = kernel.kernel.gram_vjp(x.view(), y.view(), g.view());
        let g = g.map_err(Fault::refused)?;
        computed.gradient("x", &g.x);
        computed.gradient("y", &g.y);
        if let Some(shape) = kernel.components {
            along_components(&g.parameters, shape, &mut computed);
        }
    }
    Ok(computed)
}

struct Named<T> {
    kernel: Box<dyn Kernel<T>>,
    /// `(Q, d)` of a spectral mixture.
    components: Option<(usize, usize)>,
}

impl<T: Real> Named<T> {
    fn read(file: &CaseFile) -> Result<Self, Fault> {
        match file.word("kernel")? {
            "rbf" => {
                let lengthscale = lengthscale(file)?;
                plain(RbfConfig { lengthscale }.build())
            }
            "matern12" => matern(file, Smoothness::Half),
            "matern32" => matern(file, Smoothness::ThreeHalves),
            "matern52" => matern(file, Smoothness::FiveHalves),
            "expsin" => {
                let config = ExpsinConfig {
                    period: T::of(file.number("period")?),
                    lengthscale: T::of(file.number("lengthscale")?),
                };
                plain(config.build())
            }
            "linear" => {
                let lengthscale = lengthscale(file)?;
                plain(LinearConfig { lengthscale }.build())
            }
            "spectral_mixture" => mixture(file),
            _ => Err(file.wrong("kernel", "the name of a kernel in closed form")),
        }
    }
}

fn plain<T: Real, K: Kernel<T> + 'static>(
    built: Result<K, bochner_kernels::Error>,
) -> Result<Named<T>, Fault> {
    Ok(Named {
        kernel: Box::new(built.map_err(Fault::refused)?),
        components: None,
    })
}

fn lengthscale<T: Real>(file: &CaseFile) -> Result<Lengthscale<T>, Fault> {
    Ok(Lengthscale::Shared(T::of(file.number("lengthscale")?)))
}

fn matern<T: Real>(file: &CaseFile, smoothness: Smoothness) -> Result<Named<T>, Fault> {
    let config = MaternConfig {
        smoothness,
        lengthscale: lengthscale(file)?,
    };
    plain(config.build())
}

fn mixture<T: Real>(file: &CaseFile) -> Result<Named<T>, Fault> {
    let means: Array2<T> = file.array("means")?;
    let components = Some(means.dim());
    let config = SpectralMixtureConfig {
        weights: file.array("weights")?,
        means,
        variances: file.array("variances")?,
        cosine: match file.choice("cosine", &["joint", "product"])? {
            "joint" => Cosine::Joint,
            _ => Cosine::Product,
        },
    };
    Ok(Named {
        components,
        ..plain(config.build())?
    })
}

/// Weights, means and variances follow each other in the list of parameters.
fn along_components<T: Real>(
    parameters: &[T],
    (count, width): (usize, usize),
    computed: &mut Computed,
) {
    let (weights, rest) = parameters.split_at(count);
    let (means, variances) = rest.split_at(count * width);
    computed.gradient("weights", &Array1::from(weights.to_vec()));
    for (name, values) in [("means", means), ("variances", variances)] {
        let values = Array2::from_shape_vec((count, width), values.to_vec());
        computed.gradient(name, &values.expect("one for each coordinate"));
    }
}
