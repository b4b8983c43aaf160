//! The settings of a graph convolution, its parameters and their initial values.

use crate::layers::attention::Bias;
use crate::layers::{glorot, mask};
use crate::{Graph, LayerError};
use bochner_numerics::{ArgumentError, DropoutMask, Real, Seed, argument};
use bochner_ops::Mode;
use bochner_spectral::ParameterSpec;
use ndarray::{Array1, ArrayD, Ix2};
use serde::{Deserialize, Serialize};

/// Settings of a layer of graph convolutional networks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub struct GraphConvolutionConfig {
    /// The number of columns of the features.
    pub inputs: usize,
    /// The number of columns of the output.
    pub outputs: usize,
    /// The rate of the dropout on the features that come in, at least 0 and below 1.
    #[serde(default)]
    #[serde(alias = "input_dropout")]
    pub input_dropout: f64,
    /// The vector that is added to the output.
    #[serde(default)]
    pub bias: Bias,
}

bochner_numerics::checked_when_read!(GraphConvolutionConfig);

impl GraphConvolutionConfig {
    pub(super) fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("inputs", self.inputs)?;
        argument::at_least_one("outputs", self.outputs)?;
        argument::rate("input_dropout", self.input_dropout)
    }

    /// The parameters: `weight` $W$, `[Fin, Fout]`, and with a bias, `bias` $b$, `[Fout]`.
    pub fn parameters(&self) -> Vec<ParameterSpec> {
        let weight = ParameterSpec::new("weight", &[self.inputs, self.outputs]);
        let bias = || ParameterSpec::new("bias", &[self.outputs]);
        let bias = (self.bias == Bias::Learned).then(bias);
        [weight].into_iter().chain(bias).collect()
    }

    /// Initial values of the [parameters](Self::parameters): a weight after Glorot and Bengio (2010) and a bias
    /// of zero.
    ///
    /// # Errors
    /// [`LayerError::Graph`] for a size of zero or a rate out of range.
    pub fn initial<T: Real>(&self, seed: Seed) -> Result<Vec<ArrayD<T>>, LayerError> {
        self.validate()?;
        let map = [self.inputs, self.outputs];
        let weight = glorot::array(Ix2(self.inputs, self.outputs), map, seed.child("weight"));
        let bias = || Array1::zeros(self.outputs).into_dyn();
        let bias = (self.bias == Bias::Learned).then(bias);
        Ok([weight.into_dyn()].into_iter().chain(bias).collect())
    }

    pub(super) fn dropout(&self, mode: Mode) -> Option<DropoutMask> {
        mask(self.input_dropout, mode.child("input dropout"))
    }

    /// Checks a graph and the shape of its nodes' features.
    pub(super) fn check(&self, graph: &Graph, nodes: [usize; 2]) -> Result<(), LayerError> {
        self.validate()?;
        graph.expect_square("a convolution")?;
        let wanted = [graph.targets(), self.inputs];
        Ok(argument::shape("features", &wanted, &nodes)?)
    }
}
