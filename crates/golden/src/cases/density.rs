//! `implicit_density` and `inference_network`: where spectral points come from.

use super::reshaped;
use crate::case_file::CaseFile;
use crate::comparison::Computed;
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
    fn read(file: &CaseFile) -> Result<Self, Fault> {
        Ok(Self {
            w: [file.array("w1")?, file.array("w2")?, file.array("w3")?],
            b: [file.array("b1")?, file.array("b2")?, file.array("b3")?],
        })
    }

    fn affine(&self) -> [AffineLayer<'_, T>; 3] {
        [0, 1, 2].map(|n| AffineLayer {
            weight: self.w[n].view(),
            bias: self.b[n].view(),
        })
    }
}

fn record<T: Real>(layers: &[AffineGradients<T>; 3], computed: &mut Computed) {
    for (n, layer) in layers.iter().enumerate() {
        computed.gradient(&format!("w{}", n + 1), &layer.weight);
        computed.gradient(&format!("b{}", n + 1), &layer.bias);
    }
}

/// Points from latent draws, `z [.., d]`.
pub(super) fn implicit<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let layers = Layers::<T>::read(file)?;
    let density = ImplicitDensity {
        layers: layers.affine(),
        slope: T::of(file.number("slope")?),
    };
    let z: ArrayD<T> = file.floats("z")?;
    let shape = z.shape().to_vec();
    let z = rows("in.z", z)?;
    let points = density.points(z.view()).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("w", &reshaped(points.into_dyn(), &shape));
    if let Some(g) = file.cotangent()? {
        let g = rows("cotangent", g)?;
        let g = density.points_vjp(z.view(), g.view());
        let g = g.map_err(Fault::refused)?;
        computed.gradient("z", &reshaped(g.z.into_dyn(), &shape));
        record(&g.layers, &mut computed);
    }
    Ok(computed)
}

/// `[.., d]` as `[n, d]`.
fn rows<T: Real>(name: &str, x: ArrayD<T>) -> Result<Array2<T>, Fault> {
    let Some((&width, leading)) = x.shape().split_last() else {
        return Err(Fault::Shape {
            tensor: name.to_owned(),
            expected: "[.., d]".to_owned(),
            got: Vec::new(),
        });
    };
    let n = leading.iter().product();
    let flat = reshaped(x, &[n, width]);
    Ok(flat.into_dimensionality::<Ix2>().expect("two axes"))
}

/// The posterior of the latent variables and draws from it.
pub(super) fn inference<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let layers = Layers::<T>::read(file)?;
    let [hidden, mu, log_sigma] = layers.affine();
    let network = InferenceNetwork {
        hidden,
        mu,
        log_sigma,
        slope: T::of(file.number("slope")?),
        prior_std: T::of(file.number("prior_std")?),
    };
    let (q, k): (Array4<T>, Array4<T>) = (file.array("q")?, file.array("k")?);
    let (q_mask, k_mask) = (file.mask("q_mask")?, file.mask("k_mask")?);
    let features = Features {
        q: q.view(),
        k: k.view(),
        q_kept: Some(q_mask.view()),
        k_kept: Some(k_mask.view()),
    };
    let x: Array4<T> = file.array("x")?;
    let inferred = network.infer(&features);
    let inferred = inferred.map_err(Fault::refused)?;
    let (mu, log_sigma) = (inferred.mu.view(), inferred.log_sigma.view());
    let z = reparameterise(mu, log_sigma, x.view()).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("z", &z);
    computed.output("h", &inferred.h);
    computed.output("hidden", &inferred.hidden);
    computed.output("mu", &inferred.mu);
    computed.output("log_sigma", &inferred.log_sigma);
    if let Some(g) = file.ranked_cotangent::<T, Ix4>()? {
        let draw = reparameterise_vjp(mu, log_sigma, x.view(), g.view()).map_err(Fault::refused)?;
        computed.gradient("x", &draw.x);
        let cotangents = InferredCotangents {
            hidden: None,
            mu: draw.mu.view(),
            log_sigma: draw.log_sigma.view(),
        };
        let g = network.infer_vjp(&features, &inferred, &cotangents);
        let g = g.map_err(Fault::refused)?;
        computed.gradient("q", &g.q);
        computed.gradient("k", &g.k);
        record(&[g.hidden, g.mu, g.log_sigma], &mut computed);
    }
    Ok(computed)
}
