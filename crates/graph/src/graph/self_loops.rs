//! Edges from a node to itself.

use super::Graph;
use crate::Error;
use crate::error::countable;
use crate::sums::sum_of;
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate, s};

/// A graph with self loops, and what was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithSelfLoops {
    /// The graph in which every node has a self loop.
    pub graph: Graph,
    /// The nodes that got one, in order; their edges are numbered after all others, in this order.
    pub added: Vec<usize>,
    /// The number of nodes that had one (or several) already.
    pub already_there: usize,
}

/// The attributes of self loops that are added to a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LoopAttributes {
    /// The mean of the attributes of the edges that lead to the node; zero if none does.
    #[default]
    Mean,
    /// This number in each column.
    Constant(f64),
}

impl WithSelfLoops {
    /// The attributes of all edges, `[E + L, G]`: those that are given, `[E, G]`, and behind them those of the L self
    /// loops that were added.
    ///
    /// Self loops that were there already keep their attributes. PyTorch Geometric's layers, whose `fill_value` this
    /// is, remove them first.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there is one row of attributes for each edge that was there, and a constant is finite.
    ///
    /// ```
    /// use bochner_graph::ndarray::array;
    /// use bochner_graph::{Graph, LoopAttributes};
    ///
    /// let looped = Graph::from_edges(2, [(0, 1), (0, 1)])?.with_self_loops()?;
    /// let attributes = array![[1.0], [3.0]];
    /// let all = looped.attributes(attributes.view(), LoopAttributes::Mean)?;
    /// assert_eq!(all, array![[1.0], [3.0], [0.0], [2.0]]);
    /// # Ok::<(), bochner_graph::Error>(())
    /// ```
    pub fn attributes<T: Real>(
        &self,
        attributes: ArrayView2<T>,
        fill: LoopAttributes,
    ) -> Result<Array2<T>, Error> {
        let columns = attributes.ncols();
        let given = self.graph.edge_count() - self.added.len();
        argument::shape("attributes", &[given, columns], attributes.shape())?;
        let mut loops = Array2::zeros((self.added.len(), columns));
        match fill {
            LoopAttributes::Constant(value) => {
                let number = T::of(value);
                let allowed = "a number that is finite in the type of the attributes";
                argument::in_range(number.is_finite(), "fill", value, allowed)?;
                loops.fill(number);
            }
            LoopAttributes::Mean => {
                for (&node, mut row) in self.added.iter().zip(loops.rows_mut()) {
                    let rows = self.others(node).map(|edge| attributes.row(edge).to_vec());
                    row.assign(&Array1::from_vec(sum_of(rows, columns)));
                    let share: T = self.share(node);
                    row.mapv_inplace(|sum| sum * share);
                }
            }
        }
        let all = concatenate(Axis(0), &[attributes, loops.view()]);
        Ok(all.expect("as many columns"))
    }

    /// The vector-Jacobian product of [`attributes`](Self::attributes): from `[E + L, G]` to `[E, G]`.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there is one row for each edge.
    pub fn attributes_vjp<T: Real>(
        &self,
        cotangent: ArrayView2<T>,
        fill: LoopAttributes,
    ) -> Result<Array2<T>, Error> {
        let expected = [self.graph.edge_count(), cotangent.ncols()];
        argument::shape("cotangent", &expected, cotangent.shape())?;
        let given = self.graph.edge_count() - self.added.len();
        let mut along = cotangent.slice(s![..given, ..]).to_owned();
        if fill == LoopAttributes::Mean {
            let loops = cotangent.slice(s![given.., ..]);
            for (&node, row) in self.added.iter().zip(loops.rows()) {
                for edge in self.others(node) {
                    along.row_mut(edge).scaled_add(self.share(node), &row);
                }
            }
        }
        Ok(along)
    }

    /// The edges that led to a node before its self loop was added.
    fn others(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let edges = self.graph.in_edges(node);
        edges.filter_map(move |(source, edge)| (source != node).then_some(edge))
    }

    /// One over the number of these edges; any number if there are none.
    fn share<T: Real>(&self, node: usize) -> T {
        T::of(1.0 / (self.graph.in_degree(node) - 1).max(1) as f64)
    }
}

impl Graph {
    /// The graph with an edge from every node to itself. Those that are there stay, and keep their
    /// numbers; the new ones are numbered after them.
    ///
    /// # Errors
    /// [`Error::NotSquare`], or [`Error::TooMany`] if there are too many edges then.
    ///
    /// ```
    /// use bochner_graph::Graph;
    ///
    /// let graph = Graph::from_edges(3, [(0, 1), (1, 1)])?;
    /// let looped = graph.with_self_loops()?;
    /// assert_eq!((looped.added, looped.already_there), (vec![0, 2], 1));
    /// assert_eq!(looped.graph.edges(), [(0, 1), (1, 1), (0, 0), (2, 2)]);
    /// # Ok::<(), bochner_graph::Error>(())
    /// ```
    pub fn with_self_loops(&self) -> Result<WithSelfLoops, Error> {
        self.expect_square("a self loop")?;
        let lacks = |&node: &usize| {
            self.by_target
                .row(node)
                .binary_search(&(node as u32))
                .is_err()
        };
        let added: Vec<usize> = (0..self.targets()).filter(lacks).collect();
        let count = self.edge_count() + added.len();
        countable("edges", count)?;
        let loops = added.iter().map(|&node| (node, node));
        let edges = self.edges().into_iter().chain(loops);
        Ok(WithSelfLoops {
            graph: Self::from_edges(self.targets(), edges)?,
            already_there: self.targets() - added.len(),
            added,
        })
    }
}
