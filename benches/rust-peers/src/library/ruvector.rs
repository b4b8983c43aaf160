//! ruvector-attention: its tiled softmax for one head, and its product of one query; neither has a gradient, and neither
//! uses threads, so the heads are shared out here, as a program would do it.

use super::RUVECTOR;
use crate::Error;
use crate::form::{Form, Held, Inputs};
use ndarray::{Array4, ArrayView2, Axis};
use rayon::prelude::*;
use ruvector_attention::attention::{FlashAttention3, FlashConfig};
use ruvector_attention::{Attention, AttentionResult, ScaledDotProductAttention};
use std::rc::Rc;

/// A matrix as the library takes it: a vector for each row.
type Rows = Vec<Vec<f32>>;

/// Queries, keys and values of one head.
type Head = [Rows; 3];

pub(super) fn forms(inputs: &Inputs) -> Result<Vec<Form>, Error> {
    let heads: Rc<[Head]> = heads(inputs).into();
    let shape = inputs.v.raw_dim();
    let form = |name, attend: fn(&Head) -> AttentionResult<Rows>| {
        let heads = Rc::clone(&heads);
        Form::new(RUVECTOR, name, move || {
            let outputs: AttentionResult<Vec<Rows>> = heads.par_iter().map(attend).collect();
            let outputs = outputs.map_err(|error| error.to_string())?;
            let held: Held = Box::new(move || {
                let numbers = outputs.into_iter().flatten().flatten().collect();
                Ok(vec![Array4::from_shape_vec(shape, numbers)?])
            });
            Ok(held)
        })
    };
    Ok(vec![
        form("FlashAttention3", |[q, k, v]| {
            let blocks = FlashConfig::default();
            Ok(FlashAttention3::forward(q, k, v, &blocks)?.output)
        }),
        form("ScaledDotProductAttention", |[q, k, v]| {
            let [keys, values] =
                [k, v].map(|rows| rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let attention = ScaledDotProductAttention::new(q[0].len());
            q.iter()
                .map(|query| attention.compute(query, &keys, &values))
                .collect()
        }),
    ])
}

fn heads(Inputs { q, k, v, .. }: &Inputs) -> Vec<Head> {
    let rows = |head: ArrayView2<'_, f32>| -> Rows {
        head.axis_iter(Axis(0)).map(|row| row.to_vec()).collect()
    };
    let all = [q, k, v].map(|array| -> Vec<Rows> {
        let examples = array.outer_iter();
        examples
            .flat_map(|example| {
                example
                    .outer_iter()
                    .map(|head| rows(head))
                    .collect::<Vec<_>>()
            })
            .collect()
    });
    let [q, k, v] = all;
    let zipped = q.into_iter().zip(k).zip(v);
    zipped.map(|((q, k), v)| [q, k, v]).collect()
}
