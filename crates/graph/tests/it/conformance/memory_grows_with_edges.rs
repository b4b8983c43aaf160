//! Memory grows with edges and with nodes, never with pairs of nodes.

use crate::conformance::case::{Case, ENGINES, Kind, Size, random_graph};
use bochner_numerics::allocations::{Counting, peak};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that attention and its gradients hold at once, on one thread: another one's would
/// not be seen.
fn bytes(kind: Kind, nodes: usize, edges: usize) -> f64 {
    let size = Size {
        heads: 2,
        width: 8,
        points: 4,
    };
    let case = Case::<f32>::new(random_graph(nodes, nodes, edges), kind, size);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    let (_, bytes) = pool.build().unwrap().install(|| peak(|| case.gradients()));
    bytes as f64
}

/// Asserts that the step from two to four units costs twice the step from one to two.
fn assert_linear(what: &str, [one, two, four]: [f64; 3]) {
    let growth = (four - two) / (two - one);
    assert!((1.8..2.3).contains(&growth), "{what}: {growth}");
}

#[test]
fn with_edges_and_with_nodes() {
    for kind in ENGINES {
        let with_edges = [1, 2, 4].map(|n| bytes(kind, 2000, 20_000 * n));
        assert_linear(&format!("{kind:?}, edges"), with_edges);
        let with_nodes = [1, 2, 4].map(|n| bytes(kind, 4000 * n, 4000));
        assert_linear(&format!("{kind:?}, nodes"), with_nodes);
    }
}
