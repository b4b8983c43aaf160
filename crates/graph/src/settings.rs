//! The settings of attention along edges.

use crate::error::scorable;
use crate::{EdgeTerm, Error, Graph, Score};
use bochner_numerics::{DropoutMask, Real, argument};
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

/// The way in which the heads' outputs are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// The outputs stand side by side: `[N, H F]`.
    #[default]
    Concatenate,
    /// The outputs are averaged: `[N, F]`.
    Average,
}

/// One kind of attention, with everything but the graph and its nodes' features.
///
/// [`attend`](crate::attend) and the other functions that take the settings check them.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a, T> {
    /// The score of the edges.
    pub score: Score<'a, T>,
    /// The slope of the LeakyReLU below zero, from 0 to 1; 0.2 in the literature.
    pub slope: f64,
    /// The term that attributes of the edges add within the score.
    pub edges: Option<EdgeTerm<'a, T>>,
    /// The way in which the heads are put together.
    pub merge: Merge,
    /// Dropout on the weights: the factor of edge `e` (in the caller's order) and head `h` is that of
    /// element `e H + h`.
    pub dropout: Option<DropoutMask>,
    /// Dropout on what targets receive, the sources' transformed features: the factor of column `n` of
    /// source `j` is that of element `j H F + n`. Scores see them undropped, as in the code that was
    /// published with GAT.
    pub value_dropout: Option<DropoutMask>,
}

impl<'a, T> Settings<'a, T> {
    /// The slope 0.2, heads side by side, no attributes of edges, no dropout.
    pub fn new(score: Score<'a, T>) -> Self {
        Self {
            score,
            slope: 0.2,
            edges: None,
            merge: Merge::Concatenate,
            dropout: None,
            value_dropout: None,
        }
    }
}

/// Sizes that all parts agree on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) heads: usize,
    pub(crate) width: usize,
}

impl Shape {
    /// The number of columns of all heads.
    pub(crate) fn columns(self) -> usize {
        self.heads * self.width
    }
}

impl<T: Real> Settings<'_, T> {
    pub(crate) fn validate(
        &self,
        graph: &Graph,
        targets: &ArrayView2<T>,
        sources: &ArrayView2<T>,
    ) -> Result<Shape, Error> {
        check_slope(self.slope)?;
        self.score.validate()?;
        let shape = Shape {
            heads: self.score.heads(),
            width: self.score.width(),
        };
        let columns = shape.columns();
        argument::shape("targets", &[graph.targets(), columns], targets.shape())?;
        argument::shape("sources", &[graph.sources(), columns], sources.shape())?;
        if let Some(edges) = &self.edges {
            edges.validate(graph.edge_count(), &self.score)?;
        }
        scorable("targets", targets.view())?;
        // The two are often one array in a square graph.
        let same_place =
            sources.as_ptr() == targets.as_ptr() && sources.strides() == targets.strides();
        if !same_place || sources.dim() != targets.dim() {
            scorable("sources", sources.view())?;
        }
        Ok(shape)
    }
}

/// Refuses a slope of the LeakyReLU outside 0 to 1.
pub(crate) fn check_slope(slope: f64) -> Result<(), Error> {
    let holds = (0.0..=1.0).contains(&slope);
    Ok(argument::in_range(holds, "slope", slope, "from 0 to 1")?)
}
