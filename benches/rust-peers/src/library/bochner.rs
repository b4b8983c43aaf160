//! bochner: one call for the output, and one for the gradients.

use super::OURS;
use crate::Error;
use crate::form::{Form, Held, Inputs, Pass};
use bochner_attention::{Mask, Settings, Workspace, attend, attend_vjp, engine::attend_into};
use ndarray::Array4;
use std::rc::Rc;

pub(super) fn form(pass: Pass, inputs: Rc<Inputs>) -> Form {
    let settings = Settings::softmax(&Mask::none());
    match pass {
        Pass::Forward => Form::new(OURS, "attend_into", move || forward(&inputs, &settings)),
        Pass::Training => Form::new(OURS, "attend, attend_vjp", move || {
            training(&inputs, &settings)
        }),
    }
}

fn forward(Inputs { q, k, v, .. }: &Inputs, settings: &Settings<f32>) -> Result<Held, Error> {
    let mut output = Array4::zeros(v.raw_dim());
    let workspace = Workspace::new();
    attend_into(
        q.view(),
        k.view(),
        v.view(),
        settings,
        &workspace,
        output.view_mut(),
    )?;
    Ok(Box::new(|| Ok(vec![output])))
}

fn training(inputs: &Inputs, settings: &Settings<f32>) -> Result<Held, Error> {
    let Inputs { q, k, v, cotangent } = inputs;
    let attended = attend(q.view(), k.view(), v.view(), settings)?;
    let gradients = attend_vjp(&attended, cotangent.view())?;
    let output = attended.output;
    Ok(Box::new(|| {
        Ok(vec![output, gradients.q, gradients.k, gradients.v])
    }))
}
