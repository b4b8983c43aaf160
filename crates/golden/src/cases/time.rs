//! `functional_time`: features of time stamps, alone and joined to the inputs of softmax attention.

use super::heads::{joined, split};
use crate::case::{Case, Done, matrices, stacked};
use crate::error::Fault;
use bochner_attention::time_input::{TimeBasis, TimeInput};
use bochner_attention::{Settings, Wanted, attend, attend_vjp, weights};
use bochner_kernels::TimeFeatures;
use bochner_numerics::Real;
use bochner_ops::{apply, apply_vjp};
use ndarray::{Array1, Array2, Array3, ArrayD, Axis, Ix4, IxDyn, concatenate, s};

/// The features, their kernel, and attention over them.
pub(super) fn functional_time<T: Real>(c: &Case<T>) -> Done {
    // Time stamps are in double precision always.
    let t: Array2<f64> = (**c).array("t")?;
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
        _ => by_attention(c, t, &features),
    }
}

/// The features of time stamps by themselves, and the kernel of each sequence.
fn alone<T: Real>(c: &Case<T>, t: &Array2<f64>, features: &TimeFeatures<T>) -> Done {
    let flat = Array1::from_iter(t.iter().copied());
    let phi = features.features(flat.view())?;
    c.flat_output("phi", phi.iter().copied())?;
    let sequences: Vec<_> = phi.axis_chunks_iter(Axis(0), t.ncols()).collect();
    let kernels: Vec<Array2<T>> = sequences.iter().map(|phi| phi.dot(&phi.t())).collect();
    c.output("kernel", &stacked(&kernels));
    let Some(g) = c.cotangent::<IxDyn>()? else {
        return Ok(());
    };
    let mut along = matrices("cotangent", &g)?.0;
    if c.word("cotangent_of")? == "kernel" {
        for (g, phi) in along.iter_mut().zip(&sequences) {
            *g = (&*g + &g.t()).dot(phi);
        }
    }
    let along: Vec<_> = along.iter().map(|g| g.view()).collect();
    let along = concatenate(Axis(0), &along)?;
    match features.features_vjp(flat.view(), along.view())? {
        TimeFeatures::Bochner { frequencies } => c.gradient("frequencies", &frequencies),
        TimeFeatures::Mercer {
            half_periods,
            coefficients,
        } => {
            c.gradient("half_periods", &half_periods);
            c.gradient("coefficients", &coefficients);
        }
    }
    Ok(())
}

/// Softmax attention of projections of `h` beside the features, as the operation on a layer's input gives them.
fn by_attention<T: Real>(c: &Case<T>, t: Array2<f64>, features: &TimeFeatures<T>) -> Done {
    let names = ["wq", "wk", "wv"];
    let maps: [Array3<T>; 3] = c.arrays(names)?;
    let heads = maps[0].dim().0;
    let mut inputs = vec![c.floats("h")?];
    let width = inputs[0].len_of(Axis(2));
    // The operation has the logarithms of the half-periods and the roots of the coefficients.
    let basis = match features {
        TimeFeatures::Bochner { frequencies } => {
            inputs.push(frequencies.clone().into_dyn());
            TimeBasis::Bochner
        }
        TimeFeatures::Mercer {
            half_periods,
            coefficients,
        } => {
            let of = |f: fn(f64) -> f64| move |x: T| T::of(f(x.as_f64()));
            inputs.push(half_periods.mapv(of(f64::ln)).into_dyn());
            inputs.push(coefficients.mapv(of(f64::sqrt)).into_dyn());
            TimeBasis::Mercer
        }
    };
    let views: Vec<_> = inputs.iter().map(|x| x.view()).collect();
    let map = TimeInput::new(t, basis)?;
    let (mut made, saved) = apply(&map, &views).map_err(Fault::refused)?;
    let u: Array3<T> = made.remove(0).into_dimensionality()?;
    let (batch, time, all) = u.dim();
    c.output("phi", &u.slice(s![.., .., width..]));

    let rows = u.into_shape_with_order((batch * time, all))?;
    let maps = maps.map(|map| {
        let (heads, width, all) = map.dim();
        map.into_shape_with_order((heads * width, all))
            .expect("row-major")
    });
    let [q, k, v] = [0, 1, 2].map(|n| {
        let projected = rows.dot(&maps[n].t());
        let shape = (batch, time, projected.ncols());
        let projected = projected.into_shape_with_order(shape).expect("row-major");
        split(projected.view(), heads)
    });
    let (q, k, v) = (q.view(), k.view(), v.view());
    let settings = Settings::softmax(&super::attention::mask(c)?);
    c.output("weights", &weights(&settings, q, k)?);
    let (output, saved_pairs) = attend(&settings, q, k, v)?;
    c.output("output", &output);
    let Some(g) = c.cotangent::<Ix4>()? else {
        return Ok(());
    };
    let wanted = Wanted::default();
    let g = attend_vjp(&settings, &saved_pairs, q, k, v, g.view(), wanted)?;
    let mut along_rows = Array2::zeros(rows.raw_dim());
    for ((name, map), g) in names.into_iter().zip(&maps).zip([g.q, g.k, g.v]) {
        let g = joined(&g).into_shape_with_order((batch * time, map.nrows()))?;
        along_rows += &g.dot(map);
        c.flat_gradient(name, g.t().dot(&rows))?;
    }
    let along = along_rows
        .into_shape_with_order((batch, time, all))?
        .into_dyn();
    let wanted = vec![true; views.len()];
    let g = apply_vjp(&map, &views, &saved, &[along.view()], &wanted);
    let g = g.map_err(Fault::refused)?;
    let g: Vec<ArrayD<T>> = g.into_iter().flatten().collect();
    c.gradient("h", &g[0]);
    match features {
        TimeFeatures::Bochner { .. } => c.gradient("frequencies", &g[1]),
        TimeFeatures::Mercer { half_periods, .. } => {
            c.gradient("half_periods", &(&g[1] / &half_periods.view().into_dyn()));
            let two_roots = inputs[2].mapv(|root| root + root);
            c.gradient("coefficients", &(&g[2] / &two_roots));
        }
    }
    Ok(())
}
