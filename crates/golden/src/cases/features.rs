//! `feature_map`, `features_random`: features of any number of heads, and the kernel they give.

use super::{is_stationary, sum_to_shape};
use crate::case::{Case, Done, matrices, reshaped, stacked};
use crate::error::{Failure, Fault};
use bochner_kernels::{
    RandomFeatureMap, SpectralPoints, feature_map, feature_map_vjp, kernel_matrix,
    random_feature_map, random_feature_map_vjp,
};
use bochner_numerics::{Buffers, Real};
use ndarray::{Array2, ArrayD, ArrayView2, IxDyn};

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

/// Features `phi` and their kernel `f` of `x [.., T, d]` and points `[.., R, d]`, the leading axes broadcast against
/// each other; `pull` gives the gradients of one set of matrices along each of them.
fn over_sets<T: Real>(
    c: &Case<T>,
    names: &[&str],
    forward: impl Fn(&[ArrayView2<T>]) -> Result<(Array2<T>, Array2<T>), Failure>,
    pull: impl Fn(&[ArrayView2<T>], ArrayView2<T>) -> Result<Vec<Array2<T>>, Failure>,
) -> Done {
    let inputs = names.iter().map(|name| c.floats(name));
    let inputs: Vec<ArrayD<T>> = inputs.collect::<Result<_, _>>()?;
    let shapes = [inputs[0].shape(), inputs[1].shape()];
    let leading = leading_axes(shapes[0], shapes[1]).ok_or_else(|| {
        let expected = format!(
            "[.., R, d] with axes that fit those of in.x, {:?}",
            shapes[0]
        );
        Fault::shape(&format!("in.{}", names[1]), expected, shapes[1])
    })?;
    let inputs = inputs.iter().zip(names);
    let inputs = inputs.map(|(x, name)| spread(&format!("in.{name}"), x, &leading));
    let inputs: Vec<Vec<Array2<T>>> = inputs.collect::<Result<_, _>>()?;
    let set = |i: usize| inputs.iter().map(|all| all[i].view()).collect::<Vec<_>>();
    let sets = 0..inputs[0].len();
    let made = sets
        .map(|i| forward(&set(i)))
        .collect::<Result<Vec<_>, _>>()?;
    let (phis, products): (Vec<_>, Vec<_>) = made.into_iter().unzip();
    c.flat_output("phi", stacked(&phis))?;
    c.flat_output("f", stacked(&products))?;
    let Some(g) = c.cotangent::<IxDyn>()? else {
        return Ok(());
    };
    let mut along = vec![Vec::new(); names.len()];
    for (i, g) in spread("cotangent", &g, &leading)?.into_iter().enumerate() {
        let g = match c.word("cotangent_of")? {
            "f" => (&g + &g.t()).dot(&phis[i]),
            _ => g,
        };
        let pulled = pull(&set(i), g.view())?;
        along
            .iter_mut()
            .zip(pulled)
            .for_each(|(all, g)| all.push(g));
    }
    for (name, along) in names.iter().zip(along) {
        let along = stacked(&along);
        let led = [&leading, &along.shape()[1..]].concat();
        let shape = c.tensor(&format!("in.{name}"))?.shape();
        c.gradient(name, &sum_to_shape(reshaped(along, &led), shape));
    }
    Ok(())
}

/// The leading axes of `[.., T, d]` and `[.., R, d]`, broadcast from the right.
fn leading_axes(x: &[usize], w: &[usize]) -> Option<Vec<usize>> {
    let (x, w) = (x.split_last_chunk::<2>()?.0, w.split_last_chunk::<2>()?.0);
    let axes = x.len().max(w.len());
    let length = |shape: &[usize], axis: usize| {
        let missing = axes - shape.len();
        axis.checked_sub(missing).map_or(1, |axis| shape[axis])
    };
    let joined = (0..axes).map(|axis| match (length(x, axis), length(w, axis)) {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    });
    joined.collect()
}

/// The matrices of an array that is repeated over all leading axes.
fn spread<T: Real>(
    name: &str,
    x: &ArrayD<T>,
    leading: &[usize],
) -> Result<Vec<Array2<T>>, Failure> {
    let fault = || {
        let expected = format!("[.., rows, columns] over the leading axes {leading:?}");
        Fault::shape(name, expected, x.shape())
    };
    let (_, last) = x.shape().split_last_chunk::<2>().ok_or_else(fault)?;
    let full = [leading, last].concat();
    let repeated = x.broadcast(IxDyn(&full)).ok_or_else(fault)?;
    Ok(matrices(name, &repeated.to_owned())?.0)
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
