//! The weights, points and correlations inside a layer.

use super::GraphAttention;
use crate::layers::nodes::{AttributedGraph, Nodes};
use crate::{EdgeWeights, LayerError};
use bochner_nn::Element;
use ndarray::Array3;

/// The weights, points and correlations that [`GraphAttention::inspect`] returns.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphInspection<T> {
    /// The weights of all edges, with the edges that they belong to.
    pub weights: EdgeWeights<T>,
    /// The spectral points w of a stationary kernel, or w1 of a non-stationary one, `[H, R, 2F]`; none
    /// of scores without points.
    pub points: Option<Array3<T>>,
    /// The correlation of the heads, for each latent dimension, `[2F, H, H]`; of points that are drawn
    /// jointly over the heads.
    pub correlation: Option<Array3<T>>,
}

impl<E: Element> GraphAttention<E> {
    /// Weights, spectral points and correlation of the heads in evaluation.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn inspect<'g, 'n>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
        nodes: impl Into<Nodes<'n, E>>,
    ) -> Result<GraphInspection<E>, LayerError> {
        let graph = graph.into();
        let (_, passed) = self.pass(graph, nodes.into())?;
        let (points, correlation) = match &passed.drawn {
            None => (None, None),
            Some(drawn) => (Some(drawn.first_points()), drawn.correlation()?),
        };
        Ok(GraphInspection {
            weights: passed.kept.weights(graph.graph),
            points,
            correlation,
        })
    }
}
