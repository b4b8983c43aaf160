//! `functional_time`: features of time stamps, alone and joined to the inputs of softmax attention.

use crate::case::{Case, Done, matrices};
use bochner_attention::{Settings, Wanted, attend, attend_vjp, weights};
use bochner_kernels::TimeFeatures;
use bochner_numerics::Real;
use ndarray::{Array1, Array2, Array3, Array4, ArrayD, Axis, concatenate};

/// The features, their kernel, and attention over them.
pub(super) fn functional_time<T: Real>(c: &Case<T>) -> Done {
    // Time stamps are in double precision always.
    let t: Array2<f64> = c.doubles("t")?;
    let features = match c.choice("features", &["bochner", "mercer"])? {
        "bochner" => TimeFeatures::Bochner {
            frequencies: c.array("frequencies")?,
        },
        _ => {
            let coefficients: Array2<T> = c.array("coefficients")?;
            if coefficients.ncols() != 2 * c.count("degree")? + 1 {
                return Err(c.wrong("degree", "that of the coefficients").into());
            }
            TimeFeatures::Mercer {
                half_periods: c.array("half_periods")?,
                coefficients,
            }
        }
    };
    match c.choice("part", &["features", "attention"])? {
        "features" => alone(c, &t, &features),
        _ => by_attention(c, &t, &features),
    }
}

/// The features of time stamps by themselves, and the kernel of each sequence.
fn alone<T: Real>(c: &Case<T>, t: &Array2<f64>, features: &TimeFeatures<T>) -> Done {
    let flat: Array1<f64> = t.iter().copied().collect();
    let phi = features.features(flat.view())?;
    let sequences: Vec<_> = phi.axis_chunks_iter(Axis(0), t.ncols()).collect();
    let kernels = sequences.iter().flat_map(|phi| phi.dot(&phi.t()));
    c.output("kernel", kernels);
    c.pull(|g: ArrayD<T>| {
        let of_kernel = c.word("cotangent_of")? == "kernel";
        let mut along = Array2::zeros(phi.dim());
        let sequences = along
            .axis_chunks_iter_mut(Axis(0), t.ncols())
            .zip(&sequences);
        for ((mut along, phi), g) in sequences.zip(matrices("cotangent", g)?.outer_iter()) {
            match of_kernel {
                true => along.assign(&(&g + &g.t()).dot(phi)),
                false => along.assign(&g),
            }
        }
        record_features(c, features.features_vjp(flat.view(), along.view())?);
        Ok(())
    })?;
    c.output("phi", phi);
    Ok(())
}

fn record_features<T: Real>(c: &Case<T>, gradients: TimeFeatures<T>) {
    match gradients {
        TimeFeatures::Bochner { frequencies } => c.gradient("frequencies", frequencies),
        TimeFeatures::Mercer {
            half_periods,
            coefficients,
        } => {
            c.gradient("half_periods", half_periods);
            c.gradient("coefficients", coefficients);
        }
    }
}

/// Softmax attention of projections of `h` beside the features.
fn by_attention<T: Real>(c: &Case<T>, t: &Array2<f64>, features: &TimeFeatures<T>) -> Done {
    let flat: Array1<f64> = t.iter().copied().collect();
    let (names, (batch, time)) = (["wq", "wk", "wv"], t.dim());
    let (phi, h) = (features.features(flat.view())?, c.rows("h")?);
    let rows = concatenate(Axis(1), &[h.view(), phi.view()])?;
    c.output("phi", phi);

    let maps: [Array3<T>; 3] = c.arrays(names)?;
    let heads = maps[0].dim().0;
    let maps = maps.map(|map| {
        let (heads, width, all) = map.dim();
        let shape = (heads * width, all);
        map.into_shape_with_order(shape).expect("row-major")
    });
    let [q, k, v] = maps.each_ref().map(|map| {
        let projected = rows.dot(&map.t());
        let shape = (batch, time, heads, map.nrows() / heads);
        let projected = projected.to_shape(shape).expect("one row a token");
        projected.into_owned().permuted_axes([0, 2, 1, 3])
    });
    let (q, k, v) = (q.view(), k.view(), v.view());
    let settings = Settings::softmax(&super::attention::mask(c)?);
    c.output("weights", weights(&settings, q, k)?);
    let (output, saved) = attend(&settings, q, k, v)?;
    c.output("output", output);
    c.pull(|g: Array4<T>| {
        let g = attend_vjp(&settings, &saved, q, k, v, g.view(), Wanted::default())?;
        let mut along = Array2::zeros(rows.raw_dim());
        for ((name, map), g) in names.into_iter().zip(&maps).zip([g.q, g.k, g.v]) {
            let g = g.permuted_axes([0, 2, 1, 3]);
            let g = g.to_shape((batch * time, map.nrows()))?;
            along += &g.dot(map);
            c.gradient(name, g.t().dot(&rows));
        }
        let (h, phi) = along.view().split_at(Axis(1), h.ncols());
        c.gradient("h", h.iter().copied());
        record_features(c, features.features_vjp(flat.view(), phi)?);
        Ok(())
    })
}
