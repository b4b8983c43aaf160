//! The formula written plainly.

use super::*;
use crate::conformance::*;
use ndarray::{Array1, Array3, Axis, s};

/// The scores `[B, M, T]`, and the values.
fn scores(form: CatForm, inputs: &Streams<f64>) -> Result<(Array3<f64>, Array4<f64>), Error> {
    if form != CatForm::AveragedKey {
        let [scores, v] = inputs.get()?;
        return Ok((scores.index_axis_move(Axis(3), 0).to_owned(), v.to_owned()));
    }
    let [q, k, v] = inputs.get()?;
    let (batch, heads, time, width) = q.dim();
    let score = |(b, m, i)| {
        let n = inputs.mask.key_limit(b, time);
        let keys = k.slice(s![b, m, ..n, ..]);
        let mean = keys.mean_axis(Axis(0))?;
        let product = (&q.slice(s![b, m, i, ..]) * &mean).sum();
        Some(product / (width as f64).sqrt())
    };
    let scores = Array3::from_shape_fn((batch, heads, time), |at| score(at).unwrap_or(0.0));
    Ok((scores, v.to_owned()))
}

impl Conformance for Cat {
    fn examples() -> Vec<Self> {
        vec![
            Self::default(),
            Self::convolution(),
            Self::causal(),
            Self::averaged_key(),
        ]
    }

    fn reference(&self, inputs: &Streams<f64>, _: &[f64], pass: &Pass) -> Result<Reference, Error> {
        let (scores, v) = scores(self.form, inputs)?;
        let (batch, heads, time, width) = v.dim();
        let dropout = pass.weight_dropout()?;
        let mut weights = Array4::zeros((batch, heads, time, time));
        let mut output = Array4::zeros((batch, heads, time, width));
        for (b, m, i) in ndarray::indices((batch, heads, time)) {
            let n = inputs.mask.key_limit(b, time);
            if i >= n {
                continue;
            }
            let seen = match self.form {
                CatForm::Causal => i + 1,
                _ => n,
            };
            let z = scores.slice(s![b, m, ..seen]);
            let highest = z.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let relative = z.mapv(|z| (z - highest).exp());
            let total = relative.sum();
            for (l, w) in relative.iter().enumerate() {
                let j = match self.form {
                    CatForm::Correlation | CatForm::AveragedKey => (i + l) % n,
                    CatForm::Convolution | CatForm::Causal => (i + n - l) % n,
                };
                let w = w / total;
                weights[[b, m, i, j]] = w;
                let index = ((b * heads + m) * time + l) as u64;
                let kept = dropout.map_or(1.0, |dropout| dropout.factor(index));
                let mut row = output.slice_mut(s![b, m, i, ..]);
                row.scaled_add(w * kept, &v.slice(s![b, m, j, ..]));
            }
        }
        Ok(Reference {
            output,
            weights: Some(weights),
            penalty: Array1::zeros(batch),
        })
    }
}
