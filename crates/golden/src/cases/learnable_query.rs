//! `learnable_query`: attention of queries that are parameters, on arrays and by the layer.

use super::heads::{joined, split};
use super::transformer::sequences;
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{
    Mask, MultiHeadConfig, Pass, Softmax,
    layer::LearnableQueryLayer,
    learnable_query::{LearnableQuery, QueryScale},
};
use bochner_models::dfdx::prelude::{Backward, HasShape, SumTo, Trace};
use bochner_models::dfdx::tensor::Cpu;
use bochner_models::dfdx::tensor_ops::Device;
use bochner_nn::{Element, Parameters};
use bochner_numerics::Seed;
use ndarray::{Array2, Array3, Array4, Axis, Ix4, concatenate, s};

/// Outputs, weights and gradients.
pub(super) fn learnable_query<T: Element>(file: &CaseFile) -> Result<Computed, Fault>
where
    Cpu: Device<T>,
{
    let q: Array3<T> = file.array("q")?;
    let [k, v]: [Array4<T>; 2] = [file.array("k")?, file.array("v")?];
    let mut mask = Mask::none();
    if file.choice("mask", &["none", "lengths"])? == "lengths" {
        mask = mask.with_key_lengths(file.lengths("lengths")?);
    }
    let scale = match file.choice("scale", &["none", "inverse_sqrt"])? {
        "none" => QueryScale::None,
        _ => QueryScale::InverseSqrt,
    };
    let on_arrays = LearnableQuery { scale };
    let pooled = on_arrays.attend(q.view(), k.view(), v.view(), &mask);
    let pooled = pooled.map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("output", &pooled.output);
    if file.asks_for("weights") {
        let weights = on_arrays.weights(q.view(), k.view(), &mask);
        computed.output("weights", &weights.map_err(Fault::refused)?);
    }
    let cotangent = file.ranked_cotangent::<T, Ix4>()?;
    if let Some(g) = &cotangent {
        let g = pooled.vjp(g.view()).map_err(Fault::refused)?;
        computed.gradient("q", &g.queries);
        computed.gradient("k", &g.k);
        computed.gradient("v", &g.v);
    }
    by_layer((&q, &k, &v), scale, &mask, cotangent, &mut computed)?;
    Ok(computed)
}

/// The layer whose maps pick the given heads out of a sequence that holds keys and values side by side.
fn by_layer<T: Element>(
    (q, k, v): (&Array3<T>, &Array4<T>, &Array4<T>),
    scale: QueryScale,
    mask: &Mask,
    cotangent: Option<Array4<T>>,
    computed: &mut Computed,
) -> Result<(), Fault>
where
    Cpu: Device<T>,
{
    let ((heads, count, d), dv) = (q.dim(), v.dim().3);
    let (of_keys, of_values) = (heads * d, heads * dv);
    let embed = of_keys + of_values;
    let config = MultiHeadConfig {
        heads,
        variant: Softmax {
            scale: (scale == QueryScale::None).then_some(1.0),
        }
        .into(),
        key_width: Some(d),
        value_width: Some(dv),
        bias: false,
        ..MultiHeadConfig::default()
    };
    let (device, seed) = (Cpu::default(), Seed::new(0));
    let rng = &mut seed.stream("initial values");
    let layer =
        LearnableQueryLayer::<usize, T, usize>::try_new(&device, (count, embed), config, rng);
    let mut layer = layer.map_err(Fault::refused)?;
    layer.for_each_mut("", &mut |name, parameter| {
        let one = |holds: bool| if holds { T::one() } else { T::zero() };
        let shape = parameter.dims();
        let values = Array2::from_shape_fn((shape[0], shape[1]), |(i, j)| match name {
            "queries" if j < of_keys => q[[j / d, i, j % d]],
            "queries" => T::zero(),
            "attention.value.weight" => one(j == of_keys + i),
            _ => one(i == j),
        });
        parameter.write(&values.iter().copied().collect::<Vec<_>>());
    });
    let memory = concatenate(Axis(2), &[joined(k).view(), joined(v).view()]);
    let memory = sequences(memory.expect("one number of positions"));
    let pass = Pass::Evaluation { seed };
    let seen = layer.inspect(memory.clone(), mask, pass);
    computed.output("weights", &seen.map_err(Fault::refused)?.weights);
    let attended = layer.attend(memory.leaky_trace(), mask, pass);
    let output = attended.map_err(Fault::refused)?.output;
    let array = |x: Vec<T>, shape| Array3::from_shape_vec(shape, x).expect("of the tensor's shape");
    let rows = array(output.as_vec(), *output.shape());
    computed.output("output", &split(rows.slice(s![.., .., ..of_values]), heads));
    if let Some(g) = cotangent {
        let mut whole = Array3::zeros(rows.raw_dim());
        whole.slice_mut(s![.., .., ..of_values]).assign(&joined(&g));
        let gradients = (output * sequences(whole)).sum().backward();
        let of_queries = array(gradients.get(&layer.queries).as_vec(), (1, count, embed));
        let of_queries = split(of_queries.slice(s![.., .., ..of_keys]), heads);
        computed.gradient("q", &of_queries.index_axis(Axis(0), 0).to_owned());
        let of_memory = array(gradients.get(&memory).as_vec(), *memory.shape());
        let (keys, values) = of_memory.view().split_at(Axis(2), of_keys);
        computed.gradient("k", &split(keys, heads));
        computed.gradient("v", &split(values, heads));
    }
    Ok(())
}
