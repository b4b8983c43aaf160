//! `functional_time`: features of time stamps, alone and joined to the inputs of a layer with softmax attention.

use super::heads::{joined, split};
use super::transformer::sequences;
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{
    MultiHead, MultiHeadConfig, Pass,
    time_input::{TimeBasis, TimeInput},
};
use bochner_kernels::TimeFeatures;
use bochner_models::dfdx::prelude::{Backward, SumTo, Trace};
use bochner_models::dfdx::tensor::{Cpu, OwnedTape, TensorFromVec};
use bochner_models::dfdx::tensor_ops::Device;
use bochner_nn::{Element, Parameters, TapeInputs, record_one};
use bochner_numerics::{Real, Seed};
use ndarray::{Array1, Array2, Array3, Ix3, Ix4, s};

/// The features, their kernel, and attention over them.
pub(super) fn functional_time<T: Element>(file: &CaseFile) -> Result<Computed, Fault>
where
    Cpu: Device<T>,
{
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
    let mut computed = Computed::default();
    match file.choice("part", &["features", "attention"])? {
        "features" => alone(file, &t, &features, &mut computed)?,
        _ => by_attention(file, t, &features, &mut computed)?,
    }
    Ok(computed)
}

/// The features of time stamps by themselves.
fn alone<T: Real>(
    file: &CaseFile,
    t: &Array2<f64>,
    features: &TimeFeatures<T>,
    computed: &mut Computed,
) -> Result<(), Fault> {
    let (batch, time) = t.dim();
    let flat = Array1::from_iter(t.iter().copied());
    let phi = features.features(flat.view()).map_err(Fault::refused)?;
    let phi = phi.into_shape_with_order((batch, time, features.width()));
    let phi = phi.expect("as many as time stamps");
    computed.output("phi", &phi);
    let Some(dphi) = by_kernel(file, &phi, computed)? else {
        return Ok(());
    };
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
    Ok(())
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

/// Softmax attention of a layer behind the map of time stamps, whose output map leaves the heads as they are.
fn by_attention<T: Element>(
    file: &CaseFile,
    t: Array2<f64>,
    features: &TimeFeatures<T>,
    computed: &mut Computed,
) -> Result<(), Fault>
where
    Cpu: Device<T>,
{
    let h: Array3<T> = file.array("h")?;
    let (batch, time, own) = h.dim();
    let names = ["wq", "wk", "wv"];
    let maps = names.map(|name| file.array::<T, Ix3>(name));
    let maps = maps.into_iter().collect::<Result<Vec<_>, _>>()?;
    let ((heads, key_width, _), (_, value_width, _)) = (maps[0].dim(), maps[2].dim());
    let (device, seed, embed) = (Cpu::default(), Seed::new(0), own + features.width());
    let config = MultiHeadConfig {
        heads,
        key_width: Some(key_width),
        value_width: Some(value_width),
        bias: false,
        ..MultiHeadConfig::default()
    };
    let layer = MultiHead::<usize, T>::try_new(&device, embed, config, &mut seed.stream("none"));
    let mut layer = layer.map_err(Fault::refused)?;
    let mut given = maps.iter();
    layer.for_each_mut("", &mut |_, parameter| {
        let values = match given.next() {
            Some(map) => map.iter().copied().collect(),
            None => identity(&parameter.dims()),
        };
        parameter.write(&values);
    });

    let h = sequences(h);
    let (basis, first, second) = match features {
        TimeFeatures::Bochner { frequencies } => (TimeBasis::Bochner, frequencies.clone(), None),
        TimeFeatures::Mercer {
            half_periods,
            coefficients,
        } => {
            let logs = half_periods.mapv(|x| T::of(x.as_f64().ln()));
            let roots = coefficients.mapv(|x| T::of(x.as_f64().sqrt()));
            (TimeBasis::Mercer, logs, Some(roots))
        }
    };
    let count = first.len();
    let first = device.tensor_from_vec(first.to_vec(), (count,));
    let second = second.map(|x| device.tensor_from_vec(x.iter().copied().collect(), x.dim()));
    let map = TimeInput::new(t, basis).map_err(Fault::refused)?;
    let inputs = TapeInputs::<T, OwnedTape<T, Cpu>>::new().with(h.leaky_trace());
    let inputs = inputs.and_then(|inputs| inputs.with(first.clone()));
    let inputs = inputs.and_then(|inputs| match &second {
        Some(second) => inputs.with(second.clone()),
        None => Ok(inputs),
    });
    let u = inputs.and_then(|inputs| record_one(map, inputs, (batch, time, embed)));
    let u = u.map_err(Fault::refused)?;
    let array = |x: Vec<T>, shape| Array3::from_shape_vec(shape, x).expect("of the tensor's shape");
    let seen = array(u.as_vec(), (batch, time, embed));
    computed.output("phi", &seen.slice(s![.., .., own..]).to_owned());

    let (mask, pass) = (super::attention::mask(file)?, Pass::Evaluation { seed });
    if file.asks_for("weights") {
        let weights = layer.inspect_self(sequences(seen), &mask, pass);
        computed.output("weights", &weights.map_err(Fault::refused)?.weights);
    }
    let attended = layer.attend_self(u, &mask, pass);
    let output = attended.map_err(Fault::refused)?.output;
    let rows = array(output.as_vec(), (batch, time, embed));
    let of_heads = s![.., .., ..heads * value_width];
    computed.output("output", &split(rows.slice(of_heads), heads));
    let Some(g) = file.ranked_cotangent::<T, Ix4>()? else {
        return Ok(());
    };
    let mut whole = Array3::zeros(rows.raw_dim());
    whole.slice_mut(of_heads).assign(&joined(&g));
    let gradients = (output * sequences(whole)).sum().backward();
    computed.gradient("h", &array(gradients.get(&h).as_vec(), (batch, time, own)));
    for ((name, given), map) in names.into_iter().zip(&maps).zip(&layer.maps) {
        computed.gradient(
            name,
            &array(gradients.get(&map.weight).as_vec(), given.dim()),
        );
    }
    // The gradients along half-periods and coefficients, given those along their logarithms and roots.
    let along = Array1::from_vec(gradients.get(&first).as_vec());
    match features {
        TimeFeatures::Bochner { .. } => computed.gradient("frequencies", &along),
        TimeFeatures::Mercer {
            half_periods,
            coefficients,
        } => {
            computed.gradient("half_periods", &(along / half_periods));
            let second = second.expect("made of the coefficients");
            let along = Array2::from_shape_vec(coefficients.dim(), gradients.get(&second).as_vec());
            let along = along.expect("of the tensor's shape");
            let two = T::of(2.0);
            let roots = coefficients.mapv(|x| two * T::of(x.as_f64().sqrt()));
            computed.gradient("coefficients", &(along / roots));
        }
    }
    Ok(())
}

/// The first columns of the identity, row by row.
fn identity<T: Real>(shape: &[usize]) -> Vec<T> {
    let entries = (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| i == j));
    entries
        .map(|holds| if holds { T::one() } else { T::zero() })
        .collect()
}
