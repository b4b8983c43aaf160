//! The hash of a task.

use super::Task;
use crate::fingerprint::fingerprint;
use bochner_graph::FanOut;

impl Task {
    /// A hash of the edges, features, classes, training nodes, sampling and attributes, in the order that they are
    /// given in.
    pub(super) fn hash(&self) -> String {
        let (graph, features) = (self.graph(), self.features());
        let sizes = [
            graph.targets(),
            graph.edge_count(),
            features.columns(),
            self.classes(),
        ];
        let edges = graph.edges().into_iter().flat_map(<[usize; 2]>::from);
        // No class is a number of its own.
        let labels = self.labels().iter().map(|label| label.map_or(0, |l| l + 1));
        let numbers = sizes.into_iter().chain(edges).chain(labels);
        let numbers = numbers.chain(self.train().iter().copied());
        let sampling = self.sampling().into_iter().flat_map(|sampling| {
            let fan_outs = sampling.fan_outs.iter().map(|fan_out| match fan_out {
                FanOut::All => 0,
                FanOut::AtMost(edges) => edges.saturating_add(1),
            });
            std::iter::once(sampling.batch.get()).chain(fan_outs)
        });
        let numbers = numbers.chain(sampling);
        let entries = features.entries();
        let entries = entries.flat_map(|(row, column, x)| [row as u32, column as u32, x.to_bits()]);
        let attributes = self.attributed().attributes;
        let attributes = attributes.iter().flatten().map(|x| x.to_bits());
        fingerprint(
            numbers
                .map(|number| number as u32)
                .chain(entries)
                .chain(attributes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::task::tests::rings;
    use super::*;
    use bochner_graph::{Graph, SparseFeatures};
    use ndarray::Array2;

    #[test]
    fn every_part_of_a_task_counts() {
        let task = rings(24);
        let labels = task.labels();
        let dense = |change: fn(&mut Array2<f32>)| {
            let mut x = task.features().to_dense();
            change(&mut x);
            SparseFeatures::from_dense(x.view()).unwrap()
        };
        let made = |graph: &Graph, x: SparseFeatures<f32>, labels: &[Option<usize>], train| {
            let task = Task::new(graph.clone(), x, labels.to_vec(), 2, train);
            task.unwrap().hash()
        };
        let (graph, x) = (task.graph(), || task.features().clone());
        let train = || task.train().to_vec();
        let same = made(graph, x(), labels, train());
        assert_eq!(same, task.hash());

        let mut edges = graph.edges();
        edges[0] = (edges[0].0, (edges[0].1 + 1) % 24);
        let other_edges = Graph::from_edges(24, edges).unwrap();
        let mut other_labels = labels.to_vec();
        other_labels[20] = Some(0);
        let other_values = dense(|x| *x *= 2.0);
        let other_places = dense(|x| x.invert_axis(ndarray::Axis(1)));
        let more_classes = Task::new(graph.clone(), x(), labels.to_vec(), 3, train());
        let mut swapped = graph.edges();
        swapped.swap(0, 1);
        let swapped = Graph::from_edges(24, swapped).unwrap();
        let attributes = |x| {
            let task = task
                .clone()
                .with_attributes(Array2::from_elem((graph.edge_count(), 1), x));
            task.unwrap().hash()
        };
        assert_ne!(attributes(1.0), attributes(2.0));
        for other in [
            attributes(1.0),
            more_classes.unwrap().hash(),
            made(&swapped, x(), labels, train()),
            made(&other_edges, x(), labels, train()),
            made(graph, other_values, labels, train()),
            made(graph, other_places, labels, train()),
            made(graph, x(), &other_labels, train()),
            made(graph, x(), labels, vec![0, 1, 12, 14]),
        ] {
            assert_ne!(other, same);
        }
    }
}
