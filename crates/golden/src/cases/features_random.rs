//! `features_random`: random features of any number of heads, and their inner products.

use super::feature_map::{leading_axes, spread};
use super::{reshaped, sum_to_shape};
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_kernels::{RandomFeatureMap, random_feature_map, random_feature_map_vjp};
use bochner_numerics::Real;
use ndarray::{Array2, Array3, ArrayD, Axis};

/// `x [.., T, d]` and frequencies `[.., m, d]`, the leading axes broadcast against each other.
pub(super) fn features_random<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let map = map(file)?;
    let (x, w): (ArrayD<T>, ArrayD<T>) = (file.floats("x")?, file.floats("w")?);
    let leading = leading_axes(x.shape(), w.shape()).ok_or_else(|| Fault::Shape {
        tensor: "in.w".to_owned(),
        expected: format!(
            "[.., m, d] with axes that fit those of in.x, {:?}",
            x.shape()
        ),
        got: w.shape().to_vec(),
    })?;
    let shapes = [x.shape().to_vec(), w.shape().to_vec()];
    let (x, w) = (spread("in.x", &x, &leading)?, spread("in.w", &w, &leading)?);
    let cotangent = file.cotangent()?;
    let cotangent = cotangent.map(|g| spread("cotangent", &g, &leading));
    let cotangent: Option<Array3<T>> = cotangent.transpose()?;
    let (mut phis, mut products) = (Vec::new(), Vec::new());
    let (mut along_x, mut along_w) = (Vec::new(), Vec::new());
    for set in 0..x.dim().0 {
        let (x, w) = (x.index_axis(Axis(0), set), w.index_axis(Axis(0), set));
        let phi = random_feature_map(x, w, map).map_err(Fault::refused)?;
        products.push(phi.dot(&phi.t()));
        if let Some(g) = &cotangent {
            let g = g.index_axis(Axis(0), set);
            let g = match file.word("cotangent_of")? {
                "f" => (&g + &g.t()).dot(&phi),
                _ => g.to_owned(),
            };
            let pulled = random_feature_map_vjp(x, w, map, g.view());
            let [own_x, own_w] = pulled.map_err(Fault::refused)?;
            along_x.push(own_x);
            along_w.push(own_w);
        }
        phis.push(phi);
    }
    let led = |sets: &[Array2<T>]| {
        let views: Vec<_> = sets.iter().map(|x| x.view()).collect();
        let all = ndarray::stack(Axis(0), &views).expect("one shape");
        let shape = [&leading, &all.shape()[1..]].concat();
        reshaped(all.into_dyn(), &shape)
    };
    let mut computed = Computed::default();
    computed.output("phi", &led(&phis));
    computed.output("f", &led(&products));
    if cotangent.is_some() {
        computed.gradient("x", &sum_to_shape(led(&along_x), &shapes[0]));
        computed.gradient("w", &sum_to_shape(led(&along_w), &shapes[1]));
    }
    Ok(computed)
}

/// The map that the entries `kind` and `eps` name.
pub(super) fn map(file: &CaseFile) -> Result<RandomFeatureMap, Fault> {
    let kinds = ["positive", "hyperbolic", "trig", "relu"];
    Ok(match file.choice("kind", &kinds)? {
        "positive" => RandomFeatureMap::Positive,
        "hyperbolic" => RandomFeatureMap::Hyperbolic,
        "trig" => RandomFeatureMap::Trigonometric,
        _ => RandomFeatureMap::Relu {
            epsilon: file.number("eps")?,
        },
    })
}
