//! `implicit_density` and `inference_network`: the sources of spectral points.

use crate::case::{Case, Done, reshaped};
use crate::error::Fault;
use bochner_numerics::Real;
use bochner_spectral::{
    AffineGradients, AffineLayer, Features, ImplicitDensity, InferenceNetwork, InferredCotangents,
    reparameterise, reparameterise_vjp,
};
use ndarray::{Array1, Array2, Array4, ArrayD, Ix2, Ix4};

/// Three linear layers, `w1, b1, w2, b2, w3, b3`.
struct Layers<T> {
    w: [Array2<T>; 3],
    b: [Array1<T>; 3],
}

impl<T: Real> Layers<T> {
    fn read(c: &Case<T>) -> Result<Self, Fault> {
        Ok(Self {
            w: c.arrays(["w1", "w2", "w3"])?,
            b: c.arrays(["b1", "b2", "b3"])?,
        })
    }

    fn affine(&self) -> [AffineLayer<'_, T>; 3] {
        [0, 1, 2].map(|n| AffineLayer {
            weight: self.w[n].view(),
            bias: self.b[n].view(),
        })
    }
}

fn record<T: Real>(c: &Case<T>, layers: &[AffineGradients<T>; 3]) {
    for (n, layer) in (1..).zip(layers) {
        c.gradient(&format!("w{n}"), &layer.weight);
        c.gradient(&format!("b{n}"), &layer.bias);
    }
}

/// Points from latent draws, `z [.., d]`.
pub(super) fn implicit<T: Real>(c: &Case<T>) -> Done {
    let layers = Layers::read(c)?;
    let density = ImplicitDensity {
        layers: layers.affine(),
        slope: c.real("slope")?,
    };
    let z = rows("in.z", c.floats("z")?)?;
    c.flat_output("w", density.points(z.view())?)?;
    if let Some(g) = c.cotangent()? {
        let g = density.points_vjp(z.view(), rows("cotangent", g)?.view())?;
        c.flat_gradient("z", g.z)?;
        record(c, &g.layers);
    }
    Ok(())
}

/// `[.., d]` as `[n, d]`.
fn rows<T: Real>(name: &str, x: ArrayD<T>) -> Result<Array2<T>, Fault> {
    let Some((&width, leading)) = x.shape().split_last() else {
        return Err(Fault::shape(name, "[.., d]", &[]));
    };
    let n = leading.iter().product();
    let flat = reshaped(x, &[n, width]);
    Ok(flat.into_dimensionality::<Ix2>().expect("two axes"))
}

/// The posterior of the latent variables and draws from it.
pub(super) fn inference<T: Real>(c: &Case<T>) -> Done {
    let layers = Layers::read(c)?;
    let [hidden, mu, log_sigma] = layers.affine();
    let network = InferenceNetwork {
        hidden,
        mu,
        log_sigma,
        slope: c.real("slope")?,
        prior_std: c.real("prior_std")?,
    };
    let [q, k, x]: [Array4<T>; 3] = c.arrays(["q", "k", "x"])?;
    let (q_mask, k_mask) = (c.mask("q_mask")?, c.mask("k_mask")?);
    let features = Features {
        q: q.view(),
        k: k.view(),
        q_kept: Some(q_mask.view()),
        k_kept: Some(k_mask.view()),
    };
    let inferred = network.infer(&features)?;
    let (mu, log_sigma) = (inferred.mu.view(), inferred.log_sigma.view());
    c.output("z", &reparameterise(mu, log_sigma, x.view())?);
    c.output("h", &inferred.h);
    c.output("hidden", &inferred.hidden);
    c.output("mu", &mu);
    c.output("log_sigma", &log_sigma);
    if let Some(g) = c.cotangent::<Ix4>()? {
        let draw = reparameterise_vjp(mu, log_sigma, x.view(), g.view())?;
        c.gradient("x", &draw.x);
        let cotangents = InferredCotangents {
            hidden: None,
            mu: draw.mu.view(),
            log_sigma: draw.log_sigma.view(),
        };
        let g = network.infer_vjp(&features, &inferred, &cotangents)?;
        c.gradient("q", &g.q);
        c.gradient("k", &g.k);
        record(c, &[g.hidden, g.mu, g.log_sigma]);
    }
    Ok(())
}
