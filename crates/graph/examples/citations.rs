//! Cleans up a small citation graph and transforms its sparse features.

#![allow(clippy::print_stdout)]

use bochner_graph::ndarray::Array2;
use bochner_graph::{Error, Features, Graph, SparseFeatures};
use bochner_numerics::{DropoutMask, Seed, standard_normal};

fn main() -> Result<(), Error> {
    let cited = [(0, 1), (0, 2), (1, 2), (0, 1), (3, 3), (2, 4), (4, 2)];
    let graph = Graph::from_edges(5, cited)?;
    println!(
        "{} edges, {} of them repeated",
        graph.edge_count(),
        graph.duplicates()
    );
    let once = graph.without_duplicates();
    let looped = once.graph.with_self_loops()?;
    println!(
        "removed {}, added {} self loops, {} was there already",
        once.removed,
        looped.added.len(),
        looped.already_there
    );
    for target in 0..looped.graph.targets() {
        let sources: Vec<usize> = looped.graph.in_edges(target).map(|(j, _)| j).collect();
        println!("node {target} attends to {sources:?}");
    }

    let words = SparseFeatures::new(
        6,
        &[0, 2, 3, 5, 6, 6],
        &[0, 4, 1, 4, 5, 2],
        vec![1.0_f32; 6],
    )?;
    let mut stream = Seed::new(1).stream("weight");
    let weight = Array2::from_shape_simple_fn((6, 3), || standard_normal(&mut stream));
    let dropout = DropoutMask::new(0.5, Seed::new(2)).expect("below one");
    let words = words.row_normalised();
    println!("{:6.3}", Features::Sparse(&words).product(weight.view())?);
    let dropped = words.dropped_out(&dropout);
    println!(
        "after dropout\n{:6.3}",
        Features::Sparse(&dropped).product(weight.view())?
    );
    Ok(())
}
