//! `functional_time`: features of time stamps, alone and joined to the inputs of softmax attention.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{Settings, attend, attend_vjp, weights};
use bochner_kernels::TimeFeatures;
use bochner_numerics::Real;
use ndarray::{Array1, Array2, Array3, Array4, Axis, concatenate, s};

/// The features, their kernel, and attention over them.
pub(super) fn functional_time<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let t: Array2<f64> = file.array("t")?;
    let features = match file.choice("features", &["bochner", "mercer"])? {
        "bochner" => TimeFeatures::Bochner {
            frequencies: file.array("frequencies")?,
        },
        _ => {
            let coefficients: Array2<T> = file.array("coefficients")?;
            if coefficients.ncols() != 2 * file.count("degree")? + 1 {
                return Err(file.wrong("degree", "that of the coefficients"));
            }
            TimeFeatures::Mercer {
                half_periods: file.array("half_periods")?,
                coefficients,
            }
        }
    };
    let (batch, time) = t.dim();
    let flat = Array1::from_iter(t.iter().copied());
    let phi = features.features(flat.view()).map_err(Fault::refused)?;
    let phi = phi.into_shape_with_order((batch, time, features.width()));
    let phi = phi.expect("as many as time stamps");
    let mut computed = Computed::default();
    computed.output("phi", &phi);
    let dphi = match file.choice("part", &["features", "attention"])? {
        "features" => by_kernel(file, &phi, &mut computed)?,
        _ => by_attention(file, &phi, &mut computed)?,
    };
    if let Some(dphi) = dphi {
        let dphi = dphi.into_shape_with_order((batch * time, features.width()));
        let dphi = dphi.expect("as many as time stamps");
        let g = features.features_vjp(flat.view(), dphi.view());
        match g.map_err(Fault::refused)? {
            TimeFeatures::Bochner { frequencies } => computed.gradient("frequencies", &frequencies),
            TimeFeatures::Mercer {
                half_periods,
                coefficients,
            } => {
                computed.gradient("half_periods", &half_periods);
                computed.gradient("coefficients", &coefficients);
            }
        }
    }
    Ok(computed)
}

/// The kernel of each sequence; returns the cotangent of the features.
fn by_kernel<T: Real>(
    file: &CaseFile,
    phi: &Array3<T>,
    computed: &mut Computed,
) -> Result<Option<Array3<T>>, Fault> {
    let (batch, time, _) = phi.dim();
    let mut kernel = Array3::zeros((batch, time, time));
    for (mut kernel, phi) in kernel.outer_iter_mut().zip(phi.outer_iter()) {
        kernel.assign(&phi.dot(&phi.t()));
    }
    computed.output("kernel", &kernel);
    let Some(g) = file.cotangent::<T>()? else {
        return Ok(None);
    };
    let g: Array3<T> = crate::tensor::ranked("cotangent", g)?;
    if file.word("cotangent_of")? == "phi" {
        return Ok(Some(g));
    }
    let mut dphi = Array3::zeros(phi.raw_dim());
    for ((mut dphi, phi), g) in (dphi.outer_iter_mut().zip(phi.outer_iter())).zip(g.outer_iter()) {
        dphi.assign(&(&g + &g.t()).dot(&phi));
    }
    Ok(Some(dphi))
}

/// Softmax attention whose queries, keys and values are maps of inputs and features together; returns the
/// cotangent of the features.
fn by_attention<T: Real>(
    file: &CaseFile,
    phi: &Array3<T>,
    computed: &mut Computed,
) -> Result<Option<Array3<T>>, Fault> {
    let h: Array3<T> = file.array("h")?;
    let own = h.dim().2;
    let u = concatenate(Axis(2), &[h.view(), phi.view()]).expect("one number of positions");
    let u = u.as_standard_layout().into_owned();
    let (batch, time, width) = u.dim();
    let rows = u.into_shape_with_order((batch * time, width));
    let rows = rows.expect("row-major");
    let names = ["wq", "wk", "wv"];
    let maps = names.map(|name| file.array::<T, ndarray::Ix3>(name));
    let maps = maps.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mapped = |map: &Array3<T>| {
        let (heads, outputs, _) = map.dim();
        let mut x = Array4::zeros((batch, heads, time, outputs));
        for (m, map) in map.outer_iter().enumerate() {
            let y = rows
                .dot(&map.t())
                .into_shape_with_order((batch, time, outputs));
            x.slice_mut(s![.., m, .., ..])
                .assign(&y.expect("row-major"));
        }
        x
    };
    let [q, k, v] = [&maps[0], &maps[1], &maps[2]].map(mapped);
    let mask = super::attention::mask(file)?;
    let settings = Settings::softmax(&mask);
    let attended = attend(q.view(), k.view(), v.view(), &settings).map_err(Fault::refused)?;
    computed.output("output", &attended.output);
    if file.asks_for("weights") {
        let weights = weights(q.view(), k.view(), &settings).map_err(Fault::refused)?;
        computed.output("weights", &weights);
    }
    let Some(g) = file.cotangent::<T>()? else {
        return Ok(None);
    };
    let g: Array4<T> = crate::tensor::ranked("cotangent", g)?;
    let g = attend_vjp(&attended, g.view()).map_err(Fault::refused)?;
    let mut drows = Array2::zeros(rows.raw_dim());
    for ((name, map), g) in names.into_iter().zip(&maps).zip([g.q, g.k, g.v]) {
        let mut dmap = Array3::zeros(map.raw_dim());
        for (m, (mut dmap, map)) in dmap.outer_iter_mut().zip(map.outer_iter()).enumerate() {
            let g = g.slice(s![.., m, .., ..]).to_owned();
            let g = g
                .into_shape_with_order((batch * time, map.nrows()))
                .expect("row-major");
            dmap.assign(&g.t().dot(&rows));
            drows += &g.dot(&map);
        }
        computed.gradient(name, &dmap);
    }
    let du = drows
        .into_shape_with_order((batch, time, width))
        .expect("row-major");
    computed.gradient("h", &du.slice(s![.., .., ..own]).to_owned());
    Ok(Some(du.slice(s![.., .., own..]).to_owned()))
}
