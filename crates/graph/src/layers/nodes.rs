//! The arguments of a layer: a graph, the features of its nodes and the attributes of its edges.

use crate::{Features, Graph, SparseFeatures};
use bochner_numerics::{ArgumentError, DropoutMask, Real, argument};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewD, Ix1, Ix2};

/// A graph, with the attributes of its edges where a layer takes some.
#[derive(Clone, Copy, Debug)]
pub struct AttributedGraph<'a, T> {
    /// The graph.
    pub graph: &'a Graph,
    /// The attributes, `[E, G]`, in the caller's order of the edges. They get no gradient; an
    /// [`OperationGraph`] says where they do.
    pub attributes: Option<ArrayView2<'a, T>>,
}

impl<'a, T> From<&'a Graph> for AttributedGraph<'a, T> {
    fn from(graph: &'a Graph) -> Self {
        Self {
            graph,
            attributes: None,
        }
    }
}

/// The graph of an operation, and the place of its edges' attributes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum OperationGraph<'a, T> {
    /// The attributes, if there are any, are known. They get no gradient.
    Known(AttributedGraph<'a, T>),
    /// The attributes, `[E, G]`, are an input of the operation, between the features and the parameters, and get a
    /// gradient.
    AttributesAsInput(&'a Graph),
}

impl<'a, T, G: Into<AttributedGraph<'a, T>>> From<G> for OperationGraph<'a, T> {
    fn from(graph: G) -> Self {
        Self::Known(graph.into())
    }
}

/// Features of the nodes of a graph, along which no gradient is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Nodes<'a, T> {
    /// The features of the nodes of a graph whose targets are its sources.
    Same(Features<'a, T>),
    /// The features of the nodes of a bipartite graph.
    Apart {
        /// The features of the targets.
        targets: Features<'a, T>,
        /// The features of the sources.
        sources: Features<'a, T>,
    },
}

impl<'a, T, F: Into<Features<'a, T>>> From<F> for Nodes<'a, T> {
    fn from(features: F) -> Self {
        Self::Same(features.into())
    }
}

impl<'a, T: Real> Nodes<'a, T> {
    /// The features of the targets, and of the sources where they are others.
    pub(super) fn ends(self) -> Vec<Features<'a, T>> {
        match self {
            Self::Same(features) => vec![features],
            Self::Apart { targets, sources } => vec![targets, sources],
        }
    }
}

/// Features that an operation owns.
#[derive(Clone, Debug)]
pub(super) enum OwnedFeatures<T> {
    Dense(Array2<T>),
    Sparse(SparseFeatures<T>),
}

impl<T: Real> OwnedFeatures<T> {
    pub(super) fn dropped_out(features: Features<T>, dropout: Option<&DropoutMask>) -> Self {
        match (features, dropout) {
            (Features::Dense(x), None) => Self::Dense(x.to_owned()),
            (Features::Dense(x), Some(dropout)) => Self::Dense(crate::dropped_out(x, dropout)),
            (Features::Sparse(x), None) => Self::Sparse(x.clone()),
            (Features::Sparse(x), Some(dropout)) => Self::Sparse(x.dropped_out(dropout)),
        }
    }

    pub(super) fn view(&self) -> Features<'_, T> {
        match self {
            Self::Dense(x) => Features::Dense(x.view()),
            Self::Sparse(x) => Features::Sparse(x),
        }
    }
}

/// The nodes of an operation: features that are kept, or tensors among its inputs.
#[derive(Debug)]
pub(super) struct GivenNodes<T> {
    /// The features after their dropout; none if the nodes are tensors.
    features: Vec<OwnedFeatures<T>>,
    /// The shapes of the tensors.
    tensors: Vec<[usize; 2]>,
    /// The dropout of the tensors.
    dropout: Option<DropoutMask>,
}

impl<T: Real> GivenNodes<T> {
    /// Features after their dropout.
    pub(super) fn features(features: Vec<OwnedFeatures<T>>) -> Self {
        Self {
            features,
            tensors: Vec::new(),
            dropout: None,
        }
    }

    /// The first inputs, of these shapes, before their dropout.
    pub(super) fn tensors(shapes: &[[usize; 2]], dropout: Option<DropoutMask>) -> Self {
        Self {
            features: Vec::new(),
            tensors: shapes.to_vec(),
            dropout,
        }
    }

    pub(super) fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    /// The shapes of an operation's parameters, given those of all its inputs.
    ///
    /// # Errors
    /// [`ArgumentError::Shape`] if the tensors before the parameters have other shapes than the operation was
    /// made for.
    pub(super) fn shapes_of_parameters<'s, 'i>(
        &self,
        inputs: &'s [&'i [usize]],
    ) -> Result<&'s [&'i [usize]], ArgumentError> {
        let count = self.tensors.len();
        let (tensors, parameters) = inputs.split_at(count.min(inputs.len()));
        argument::shape("tensors of features", &[count], &[tensors.len()])?;
        for (expected, got) in self.tensors.iter().zip(tensors) {
            argument::shape("features", expected, got)?;
        }
        Ok(parameters)
    }

    /// The tensors after dropout, where there is any.
    pub(super) fn drop_out(&self, tensors: &[ArrayViewD<T>]) -> Vec<OwnedFeatures<T>> {
        let Some(dropout) = &self.dropout else {
            return Vec::new();
        };
        let dropped = |x| OwnedFeatures::dropped_out(Features::Dense(matrix(x)), Some(dropout));
        tensors.iter().map(dropped).collect()
    }

    /// The features that the layer reads, given the result of [`drop_out`](Self::drop_out).
    pub(super) fn views<'a>(
        &'a self,
        tensors: &'a [ArrayViewD<'_, T>],
        dropped: &'a [OwnedFeatures<T>],
    ) -> Vec<Features<'a, T>> {
        match (&self.features[..], dropped) {
            ([], []) => tensors.iter().map(|x| Features::Dense(matrix(x))).collect(),
            ([], kept) | (kept, _) => kept.iter().map(OwnedFeatures::view).collect(),
        }
    }

    /// The gradient along a tensor, from the gradient along the tensor after dropout.
    pub(super) fn through_dropout(&self, mut x: Array2<T>) -> Array2<T> {
        if let Some(dropout) = &self.dropout {
            crate::features::dense::drop_out(elements_of(&mut x), dropout);
        }
        x
    }
}

/// An input as a matrix.
///
/// # Panics
/// If it has another number of axes.
pub(crate) fn matrix<'a, T>(array: &'a ArrayViewD<'_, T>) -> ArrayView2<'a, T> {
    let view = array.view().into_dimensionality::<Ix2>();
    view.expect("two axes")
}

/// The elements of an array that this crate has allocated.
///
/// # Panics
/// If it is not in row-major order.
pub(super) fn elements_of<T>(array: &mut Array2<T>) -> &mut [T] {
    let elements = array.as_slice_mut();
    elements.expect("allocated in row-major order")
}

/// An input as a vector.
///
/// # Panics
/// If it has another number of axes.
pub(super) fn vector<'a, T>(array: &'a ArrayViewD<'_, T>) -> ArrayView1<'a, T> {
    let view = array.view().into_dimensionality::<Ix1>();
    view.expect("one axis")
}
