//! candle: its fused attention for processors, which has no gradient, and products with a softmax between.

use super::CANDLE;
use crate::Error;
use crate::form::{Form, Inputs, Pass};
use candle_core::{D, Device, Result, Tensor, Var};
use candle_nn::attention::{AttnMask, flash_attn};
use candle_nn::ops::{softmax, softmax_last_dim};
use ndarray::Array4;

pub(super) fn forms(pass: Pass, inputs: &Inputs) -> Result<Vec<Form>> {
    let all = [&inputs.q, &inputs.k, &inputs.v].map(tensor);
    let [q, k, v] = all;
    let (all, scale) = ([q?, k?, v?], inputs.scale());
    match pass {
        Pass::Forward => Ok(vec![
            // Positions before heads: the order in which the function takes them.
            fused(
                "flash_attn",
                each(&all, |x| x.transpose(1, 2)?.contiguous())?,
                scale,
            ),
            fused(
                "flash_attn, heads first",
                each(&all, |x| x.transpose(1, 2))?,
                scale,
            ),
            Form::new(CANDLE, "composed", move || {
                let output = composed(&all, scale, softmax_last_dim)?;
                Ok(Box::new(move || Ok(vec![array(&output)?])))
            }),
        ]),
        Pass::Training => Ok(vec![training(&all, tensor(&inputs.cotangent)?, scale)?]),
    }
}

fn each(all: &[Tensor; 3], change: impl Fn(&Tensor) -> Result<Tensor>) -> Result<[Tensor; 3]> {
    let [q, k, v] = all;
    Ok([change(q)?, change(k)?, change(v)?])
}

fn fused(name: &'static str, [q, k, v]: [Tensor; 3], scale: f64) -> Form {
    Form::new(CANDLE, name, move || {
        let output = flash_attn::<f32>(&q, &k, &v, scale as f32, AttnMask::None, None, None)?;
        Ok(Box::new(move || Ok(vec![array(&output)?])))
    })
}

/// The queries are scaled, which are fewer than the scores.
fn composed(
    [q, k, v]: &[Tensor; 3],
    scale: f64,
    softmax: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    softmax(&(q * scale)?.matmul(&k.t()?)?)?.matmul(v)
}

/// With the softmax that has a gradient.
fn training(all: &[Tensor; 3], cotangent: Tensor, scale: f64) -> Result<Form> {
    let variables = each(all, |x| Ok(Var::from_tensor(x)?.into_inner()))?;
    Ok(Form::new(CANDLE, "composed", move || {
        let output = composed(&variables, scale, |scores| softmax(scores, D::Minus1))?;
        let gradients = (&output * &cotangent)?.sum_all()?.backward()?;
        let missing = || "candle has no gradient";
        let of = variables
            .each_ref()
            .map(|input| gradients.get(input).cloned());
        Ok(Box::new(move || {
            let mut results = vec![array(&output)?];
            for gradient in of {
                results.push(array(&gradient.ok_or_else(missing)?)?);
            }
            Ok(results)
        }))
    }))
}

fn tensor(array: &Array4<f32>) -> Result<Tensor> {
    Tensor::from_iter(array.iter().copied(), &Device::Cpu)?.reshape(array.dim())
}

fn array(tensor: &Tensor) -> std::result::Result<Array4<f32>, Error> {
    let numbers = tensor.flatten_all()?.to_vec1::<f32>()?;
    Ok(Array4::from_shape_vec(tensor.dims4()?, numbers)?)
}
