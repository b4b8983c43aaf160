//! burn on its backend `burn-flex`: its operation `attention`, and products with the backend's own softmax between.

use super::BURN;
use crate::Error;
use crate::form::{Form, Inputs, Pass};
use burn_tensor::activation::softmax;
use burn_tensor::module::attention;
use burn_tensor::{Device, Tensor, TensorData};
use ndarray::Array4;
use std::rc::Rc;

/// Queries, keys and values to the output.
type Attention = fn([Tensor<4>; 3], f64) -> Tensor<4>;

pub(super) fn forms(pass: Pass, inputs: &Rc<Inputs>) -> Vec<Form> {
    let ways: [(&'static str, Attention); 2] = [("attention", whole), ("composed", composed)];
    let form = |(name, attention)| match pass {
        Pass::Forward => forward(name, attention, inputs),
        Pass::Training => training(name, attention, inputs),
    };
    ways.map(form).into()
}

/// Under autodiff the backend composes it.
fn whole([q, k, v]: [Tensor<4>; 3], _: f64) -> Tensor<4> {
    attention(q, k, v, None, None, Default::default())
}

/// The queries are scaled, which are fewer than the scores.
fn composed([q, k, v]: [Tensor<4>; 3], scale: f64) -> Tensor<4> {
    softmax(q.mul_scalar(scale).matmul(k.transpose()), 3_usize).matmul(v)
}

fn forward(name: &'static str, attention: Attention, inputs: &Inputs) -> Form {
    let device = Device::flex();
    let all = [&inputs.q, &inputs.k, &inputs.v].map(|array| tensor(array, &device));
    let scale = inputs.scale();
    Form::new(BURN, name, move || {
        let output = attention(all.clone(), scale);
        Ok(Box::new(|| Ok(vec![array(output)?])))
    })
}

fn training(name: &'static str, attention: Attention, inputs: &Inputs) -> Form {
    let device = Device::flex().autodiff();
    let all = [&inputs.q, &inputs.k, &inputs.v].map(|array| tensor(array, &device).require_grad());
    let (cotangent, scale) = (tensor(&inputs.cotangent, &device), inputs.scale());
    Form::new(BURN, name, move || {
        let output = attention(all.clone(), scale);
        let mut gradients = (output.clone() * cotangent.clone()).sum().backward();
        let gradients = all
            .each_ref()
            .map(|input| input.grad_remove(&mut gradients));
        Ok(Box::new(|| {
            let mut results = vec![array(output)?];
            for gradient in gradients {
                results.push(array(gradient.ok_or("burn has no gradient")?)?);
            }
            Ok(results)
        }))
    })
}

fn tensor(array: &Array4<f32>, device: &Device) -> Tensor<4> {
    let data = TensorData::new(
        array.iter().copied().collect::<Vec<f32>>(),
        array.shape().to_vec(),
    );
    Tensor::from_data(data, device)
}

fn array(tensor: Tensor<4>) -> Result<Array4<f32>, Error> {
    let shape: [usize; 4] = tensor.dims();
    let numbers = tensor.into_data().try_into_vec::<f32>();
    let numbers = numbers.map_err(|error| format!("{error:?}"))?;
    Ok(Array4::from_shape_vec(shape, numbers)?)
}
