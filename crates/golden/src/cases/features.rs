//! `feature_map`, `features_random`: features of any number of heads, and the kernel they give.

use super::is_stationary;
use crate::case::{Case, Done, matrices};
use crate::error::{Failure, Fault};
use bochner_kernels::{
    RandomFeatureMap, SpectralPoints, feature_map, feature_map_vjp, kernel_matrix,
    random_feature_map, random_feature_map_vjp,
};
use bochner_numerics::{Buffers, Real};
use ndarray::{Array2, Array3, ArrayD, ArrayView2, Axis};

/// Features by spectral points, and their kernel.
pub(super) fn by_points<T: Real>(c: &Case<T>) -> Done {
    let names: &[&str] = match is_stationary(c)? {
        true => &["x", "w1"],
        false => &["x", "w1", "w2"],
    };
    let buffers = Buffers::default();
    let forward = |set: &[ArrayView2<T>]| {
        let (x, points) = (set[0], points(set));
        let mut phi = Array2::zeros((x.nrows(), 2 * set[1].nrows()));
        feature_map(x, &points, phi.view_mut(), &buffers)?;
        Ok((phi, kernel_matrix(x, x, &points)?))
    };
    over_sets(c, names, forward, |set, g| {
        let g = feature_map_vjp(set[0], &points(set), g, &buffers)?;
        let all = [Some(g.x), Some(g.points.w1), g.points.w2];
        Ok(all.into_iter().flatten().collect())
    })
}

/// The points of a set: `x` and `w1`, or `x`, `w1` and `w2`.
fn points<'a, T: Real>(set: &[ArrayView2<'a, T>]) -> SpectralPoints<'a, T> {
    match *set {
        [_, w1, w2] => SpectralPoints::Nonstationary { w1, w2 },
        _ => SpectralPoints::Stationary { w: set[1] },
    }
}

/// Random features, and their inner products.
pub(super) fn at_random<T: Real>(c: &Case<T>) -> Done {
    let map = random_map(c)?;
    let forward = |set: &[ArrayView2<T>]| {
        let phi = random_feature_map(set[0], set[1], map)?;
        let products = phi.dot(&phi.t());
        Ok((phi, products))
    };
    over_sets(c, &["x", "w"], forward, |set, g| {
        Ok(random_feature_map_vjp(set[0], set[1], map, g)?.into())
    })
}

/// Features `phi` and their kernel `f` of `x [.., T, d]` and points `[.., R, d]`, which are repeated over the leading
/// axes that they lack; `pull` gives the gradients of one set of matrices along each of them.
fn over_sets<T: Real>(
    c: &Case<T>,
    names: &[&str],
    forward: impl Fn(&[ArrayView2<T>]) -> Result<(Array2<T>, Array2<T>), Failure>,
    pull: impl Fn(&[ArrayView2<T>], ArrayView2<T>) -> Result<Vec<Array2<T>>, Failure>,
) -> Done {
    let sets = c.matrices(names[0])?.len_of(Axis(0));
    let inputs = names.iter().map(|name| c.repeated(name, sets));
    let inputs: Vec<Array3<T>> = inputs.collect::<Result<_, _>>()?;
    let set = |i: usize| -> Vec<ArrayView2<T>> {
        let matrices = inputs.iter().map(|x| x.index_axis(Axis(0), i));
        matrices.collect()
    };
    let made = (0..sets).map(|i| forward(&set(i)));
    let (phis, products): (Vec<_>, Vec<_>) =
        made.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    c.pull(|g: ArrayD<T>| {
        let of_kernel = c.word("cotangent_of")? == "f";
        let mut along = vec![Vec::new(); names.len()];
        for (i, g) in matrices("cotangent", g)?.outer_iter().enumerate() {
            let g = match of_kernel {
                true => (&g + &g.t()).dot(&phis[i]),
                false => g.to_owned(),
            };
            for (along, g) in along.iter_mut().zip(pull(&set(i), g.view())?) {
                along.extend(g);
            }
        }
        for (name, along) in names.iter().zip(along) {
            c.gradient(name, along);
        }
        Ok(())
    })?;
    c.output("phi", phis.into_iter().flatten());
    c.output("f", products.into_iter().flatten());
    Ok(())
}

/// The map that the entries `kind` and `eps` name.
pub(super) fn random_map<T: Real>(c: &Case<T>) -> Result<RandomFeatureMap, Fault> {
    let kinds = ["positive", "hyperbolic", "trig", "relu"];
    Ok(match c.choice("kind", &kinds)? {
        "positive" => RandomFeatureMap::Positive,
        "hyperbolic" => RandomFeatureMap::Hyperbolic,
        "trig" => RandomFeatureMap::Trigonometric,
        _ => RandomFeatureMap::Relu {
            epsilon: c.number("eps")?,
        },
    })
}
