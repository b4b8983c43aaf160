//! Spectral points as parameters.

use super::pairs::Pairs;
use super::{Fault, R};
use bochner_attention::{
    Cotangents, Error, Forward, Gradients, Inputs, Inspection, Mechanism, ParameterSpec, Pass, Size,
};
use bochner_numerics::standard_normal;
use ndarray::{Array3, Array4, Axis};
use rand::RngCore;

#[derive(Debug)]
pub(super) struct Direct {
    pub(super) fault: Option<Fault>,
}

fn points(inputs: &Inputs<f64>, parameters: &[f64]) -> [Array4<f64>; 2] {
    let Size { heads, width } = inputs.size();
    let (w1, w2) = parameters.split_at(parameters.len() / 2);
    [w1, w2].map(|w| {
        let w = Array3::from_shape_vec((heads, R, width), w.to_vec()).unwrap();
        w.insert_axis(Axis(0))
    })
}

impl Mechanism<f64> for Direct {
    fn validate(&self) -> Result<(), Error> {
        Ok(())
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        let shape = [size.heads, R, size.width];
        ["w1", "w2"]
            .map(|name| ParameterSpec::new(name, &shape))
            .into()
    }

    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<f64>, Error> {
        let specs = self.parameters(size);
        let count = specs.iter().map(ParameterSpec::count).sum();
        Ok((0..count).map(|_| standard_normal(rng)).collect())
    }

    fn forward(
        &self,
        inputs: &Inputs<f64>,
        parameters: &[f64],
        pass: &Pass,
    ) -> Result<Forward<f64>, Error> {
        let points = points(inputs, parameters);
        let output = Pairs::new(inputs, &points, pass, self.fault).output();
        Ok(Forward::unpenalised(output, ()))
    }

    fn backward(
        &self,
        inputs: &Inputs<f64>,
        parameters: &[f64],
        pass: &Pass,
        _: &Forward<f64>,
        cotangent: Cotangents<f64>,
    ) -> Result<Gradients<f64>, Error> {
        let points = points(inputs, parameters);
        let g = Pairs::new(inputs, &points, pass, self.fault).pull_back(cotangent.output);
        Ok(Gradients {
            q: g.q,
            k: g.k,
            v: g.v,
            parameters: g.points.into_iter().flatten().collect(),
        })
    }

    fn inspect(
        &self,
        inputs: &Inputs<f64>,
        parameters: &[f64],
        pass: &Pass,
    ) -> Result<Inspection<f64>, Error> {
        let points = points(inputs, parameters);
        let weights = Pairs::new(inputs, &points, pass, self.fault).weights();
        let [w1, w2] = points;
        Ok(Inspection {
            weights,
            points: Some((w1, w2)),
            correlation: None,
        })
    }
}
