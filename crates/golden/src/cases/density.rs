//! `implicit_density` and `inference_network`: the sources of spectral points.

use crate::case::{Case, Done, record, rows};
use crate::error::Fault;
use bochner_numerics::Real;
use bochner_spectral::{
    AffineGradients, AffineLayer, Features, ImplicitDensity, InferenceNetwork, InferredCotangents,
    reparameterise, reparameterise_vjp,
};
use ndarray::{Array1, Array2, Array4, ArrayD};

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

fn record_layers<T: Real>(c: &Case<T>, layers: [AffineGradients<T>; 3]) {
    for (n, layer) in (1..).zip(layers) {
        c.gradient(&format!("w{n}"), layer.weight);
        c.gradient(&format!("b{n}"), layer.bias);
    }
}

/// Points from latent draws, `z [.., d]`.
pub(super) fn implicit<T: Real>(c: &Case<T>) -> Done {
    let (layers, z) = (Layers::read(c)?, c.rows("z")?);
    let density = ImplicitDensity {
        layers: layers.affine(),
        slope: c.real("slope")?,
    };
    c.output("w", density.points(z.view())?);
    c.pull(|g: ArrayD<T>| {
        let g = density.points_vjp(z.view(), rows("cotangent", g)?.view())?;
        c.gradient("z", g.z);
        record_layers(c, g.layers);
        Ok(())
    })
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
    c.output("z", reparameterise(mu, log_sigma, x.view())?);
    c.pull(|g: Array4<T>| {
        let draw = reparameterise_vjp(mu, log_sigma, x.view(), g.view())?;
        let cotangents = InferredCotangents {
            hidden: None,
            mu: draw.mu.view(),
            log_sigma: draw.log_sigma.view(),
        };
        let g = network.infer_vjp(&features, &inferred, &cotangents)?;
        record!(c.gradient, draw => x);
        record_layers(c, [g.hidden, g.mu, g.log_sigma]);
        c.gradient("q", g.q);
        c.gradient("k", g.k);
        Ok(())
    })?;
    record!(c.output, inferred => h, hidden, mu, log_sigma);
    Ok(())
}
