//! Attention along edges: weights, sums and their gradients over slices.

mod backward;
mod classic;
mod cotangent;
mod dynamic;
mod edge_sums;
mod edge_term;
mod forward;
mod kernel;
mod preactivation;
mod rows;
mod scorer;

pub(crate) use cotangent::{Cotangent, unit};

use crate::features::dense;
use crate::score::{EdgeTermGradients, Half, PointsGradients};
use crate::settings::Shape;
use crate::{Error, Graph, Score, Settings};
use bochner_numerics::Real;
use classic::Classic;
use dynamic::Dynamic;
use kernel::Kernel;
use ndarray::{Array2, ArrayView2};
use preactivation::Preactivation;
use std::borrow::Cow;

/// Edges of a piece of work, together with its nodes.
const PIECE: usize = 1024;

/// The arguments of a forward pass, with the features in row-major order.
#[derive(Debug)]
pub(crate) struct Call<'a, 'b, T: Real> {
    pub(crate) graph: &'a Graph,
    pub(crate) settings: Settings<'b, T>,
    pub(crate) shape: Shape,
    targets: Cow<'a, [T]>,
    sources: Cow<'a, [T]>,
}

/// The values that are kept between the passes.
#[derive(Debug)]
pub(crate) struct Prepared<T> {
    score: PreparedScore<T>,
    /// The sources' features after dropout, `[Ns, H F]`, where they are dropped.
    values: Option<Vec<T>>,
}

/// The weights of all edges, `[E, H]` by place.
#[derive(Debug)]
pub(crate) struct Alpha<T> {
    /// The weights whose sum over the edges of a target is one.
    pub(crate) normalised: Vec<T>,
    /// The weights after dropout, if there is any.
    dropped: Option<Vec<T>>,
}

impl<T> Alpha<T> {
    /// The weights that the values are multiplied by.
    fn applied(&self) -> &[T] {
        self.dropped.as_deref().unwrap_or(&self.normalised)
    }
}

/// The parts of the scores that do not depend on both ends of an edge.
#[derive(Debug)]
enum PreparedScore<T> {
    Classic(Preactivation<T>),
    Dynamic(dynamic::Prepared<T>),
    Kernel(Box<kernel::Prepared<T>>),
}

/// The gradients of a call.
pub(crate) struct Parts<T> {
    /// `[Nt, H F]`.
    pub(crate) targets: Vec<T>,
    /// `[Ns, H F]`.
    pub(crate) sources: Vec<T>,
    /// The gradient along `a` of the score, in its shape.
    pub(crate) a: Vec<T>,
    pub(crate) points: Option<PointsGradients<T>>,
    pub(crate) edges: Option<EdgeTermGradients<T>>,
}

impl<'a, 'b, T: Real> Call<'a, 'b, T> {
    pub(crate) fn new(
        graph: &'a Graph,
        targets: ArrayView2<'a, T>,
        sources: ArrayView2<'a, T>,
        settings: &Settings<'b, T>,
    ) -> Result<Self, Error> {
        let shape = settings.validate(graph, &targets, &sources)?;
        Ok(Self {
            graph,
            settings: *settings,
            shape,
            targets: elements(targets),
            sources: elements(sources),
        })
    }

    pub(crate) fn prepare(&self) -> Result<Prepared<T>, Error> {
        let values = self.settings.value_dropout.as_ref().map(|dropout| {
            let mut values = self.sources.to_vec();
            dense::drop_out(&mut values, dropout);
            values
        });
        Ok(Prepared {
            score: self.prepare_score()?,
            values,
        })
    }

    fn prepare_score(&self) -> Result<PreparedScore<T>, Error> {
        let term = self.settings.edges.as_ref();
        let numbers = || term.map(|term| edge_term::numbers_by_place(self.graph, term));
        Ok(match &self.settings.score {
            Score::Classic { a } => {
                PreparedScore::Classic(Preactivation::new(self, &elements(a.view()), numbers()))
            }
            Score::Dynamic { a } => {
                let vectors = term.map(|term| edge_term::vectors_by_place(self.graph, term));
                let edge = vectors.transpose()?;
                PreparedScore::Dynamic(dynamic::Prepared::new(a.view(), edge))
            }
            Score::Kernel { .. } | Score::Gaussian { .. } => {
                PreparedScore::Kernel(Box::new(kernel::Prepared::new(self, numbers())?))
            }
        })
    }

    /// The weights of all edges and what the targets receive.
    pub(crate) fn forward(&self, prepared: &Prepared<T>) -> (Alpha<T>, Vec<T>) {
        let values = self.values(prepared);
        match &prepared.score {
            PreparedScore::Classic(own) => forward::attend(self, &Classic::new(self, own), values),
            PreparedScore::Dynamic(own) => forward::attend(self, &Dynamic::new(self, own), values),
            PreparedScore::Kernel(own) => forward::attend(self, &Kernel::new(self, own), values),
        }
    }

    /// The scores of all edges.
    pub(crate) fn scores(&self, prepared: &Prepared<T>) -> Vec<T> {
        match &prepared.score {
            PreparedScore::Classic(own) => forward::scores(self, &Classic::new(self, own)),
            PreparedScore::Dynamic(own) => forward::scores(self, &Dynamic::new(self, own)),
            PreparedScore::Kernel(own) => forward::scores(self, &Kernel::new(self, own)),
        }
    }

    /// The gradients, from the weights and the cotangent of each head's output, `[Nt, H F]`.
    pub(crate) fn backward(
        &self,
        prepared: &Prepared<T>,
        alpha: &Alpha<T>,
        cotangent: &[T],
    ) -> Result<Parts<T>, Error> {
        let values = self.values(prepared);
        let (along_scores, mut along_values) = backward::pull_back(self, alpha, cotangent, values);
        if let Some(dropout) = &self.settings.value_dropout {
            dense::drop_out(&mut along_values, dropout);
        }
        Ok(match &prepared.score {
            PreparedScore::Classic(own) => {
                Classic::new(self, own).pull_back(self, along_scores, along_values)
            }
            PreparedScore::Dynamic(own) => {
                Dynamic::new(self, own).pull_back(self, along_scores, along_values)
            }
            PreparedScore::Kernel(own) => {
                Kernel::new(self, own).pull_back(self, along_scores, along_values)?
            }
        })
    }

    /// The values that targets receive of the sources, `[Ns, H F]`.
    fn values<'p>(&'p self, prepared: &'p Prepared<T>) -> &'p [T] {
        prepared.values.as_deref().unwrap_or(&self.sources)
    }

    fn slope(&self) -> T {
        T::of(self.settings.slope)
    }

    fn nodes(&self, half: Half) -> usize {
        self.features(half).len() / self.shape.columns()
    }

    /// The features of the targets or of the sources.
    fn features(&self, half: Half) -> &[T] {
        match half {
            Half::Target => &self.targets,
            Half::Source => &self.sources,
        }
    }

    /// The gradients along the term of a score in which it is a number.
    fn pull_back_edges(&self, along_numbers: &[T]) -> Option<EdgeTermGradients<T>> {
        let term = self.settings.edges.as_ref()?;
        Some(edge_term::pull_back_numbers(
            self.graph,
            term,
            along_numbers,
        ))
    }
}

/// Reorders rows from the places of edges in the graph to the caller's order.
pub(crate) fn by_edge<T: Real>(graph: &Graph, x: &[T], columns: usize) -> Array2<T> {
    let mut rows = Array2::zeros((graph.edge_count(), columns));
    for (place, &edge) in graph.order.iter().enumerate() {
        let x = &x[place * columns..][..columns];
        let mut row = rows.row_mut(edge as usize);
        row.iter_mut().zip(x).for_each(|(to, &x)| *to = x);
    }
    rows
}

/// The elements in row-major order.
fn elements<T: Real>(x: ArrayView2<'_, T>) -> Cow<'_, [T]> {
    match x.to_slice() {
        Some(slice) => slice.into(),
        None => x.iter().copied().collect(),
    }
}
