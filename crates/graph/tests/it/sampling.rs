//! A few neighbours of a few nodes, layer by layer.

use bochner_graph::{Error, FanOut, Graph, NeighbourSampler};
use bochner_numerics::Seed;
use proptest::prelude::*;

/// Two rings with chords and self loops on every third node.
fn graph() -> Graph {
    let nodes = 30;
    let ring = (0..nodes).flat_map(|i| [1, 2, 5, 7].map(move |step| ((i + step) % nodes, i)));
    let loops = (0..nodes).step_by(3).map(|i| (i, i));
    Graph::from_edges(nodes, ring.chain(loops)).unwrap()
}

proptest! {
    #[test]
    fn layers_are_parts_of_the_graph(
        targets in proptest::sample::subsequence((0..30).collect::<Vec<_>>(), 0..8),
        most in prop::collection::vec(0..6_usize, 0..4),
        seed in any::<u64>(),
    ) {
        let whole = graph();
        let all = whole.edges();
        let fan_outs: Vec<FanOut> = most.iter().map(|&most| FanOut::AtMost(most)).collect();
        let mut sampler = NeighbourSampler::new(&whole).unwrap();
        let layers = sampler.sample(&targets, &fan_outs, Seed::new(seed)).unwrap();
        prop_assert_eq!(layers.len(), most.len());
        let mut expected = &targets;
        for (layer, &most) in layers.iter().zip(&most).rev() {
            prop_assert_eq!(layer.targets(), &expected[..]);
            for ((source, target), &edge) in layer.graph.edges().into_iter().zip(&layer.edges) {
                prop_assert_eq!((layer.nodes[source], layer.nodes[target]), all[edge]);
            }
            for (i, &target) in layer.targets().iter().enumerate() {
                let own = usize::from(target % 3 == 0);
                let degree = whole.in_degree(target);
                prop_assert_eq!(layer.graph.in_degree(i), most.min(degree - own) + own);
            }
            let mut once = layer.edges.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), layer.edges.len());
            expected = &layer.nodes;
        }
    }
}

#[test]
fn what_is_drawn_for_a_target_does_not_depend_on_the_others() {
    let whole = graph();
    let mut sampler = NeighbourSampler::new(&whole).unwrap();
    let mut drawn = |targets: &[usize], seed| {
        let layers = sampler.sample(targets, &[FanOut::AtMost(2)], Seed::new(seed));
        let layer = layers.unwrap().remove(0);
        let place = targets.iter().position(|&target| target == 4).unwrap();
        let edges = layer.graph.in_edges(place);
        let mut edges: Vec<usize> = edges.map(|(_, edge)| layer.edges[edge]).collect();
        edges.sort_unstable();
        edges
    };
    assert_eq!(drawn(&[4], 1), drawn(&[9, 0, 4, 17], 1));
    assert!((2..9).any(|seed| drawn(&[4], seed) != drawn(&[4], 1)));
}

#[test]
fn every_neighbour_is_as_likely() {
    let whole = Graph::from_edges(9, (1..9).map(|node| (node, 0))).unwrap();
    let mut sampler = NeighbourSampler::new(&whole).unwrap();
    let (mut times, runs) = ([0_u32; 8], 4000);
    for seed in 0..runs {
        let layers = sampler.sample(&[0], &[FanOut::AtMost(3)], Seed::new(seed));
        layers.unwrap()[0]
            .edges
            .iter()
            .for_each(|&edge| times[edge] += 1);
    }
    let (share, runs) = (3.0 / 8.0, runs as f64);
    let deviation = (runs * share * (1.0 - share)).sqrt();
    for times in times {
        assert!(
            (f64::from(times) - runs * share).abs() < 5.0 * deviation,
            "{times}"
        );
    }
}

#[test]
fn with_all_neighbours_nothing_is_missing() {
    let whole = graph();
    let mut sampler = NeighbourSampler::new(&whole).unwrap();
    let targets: Vec<usize> = (0..30).collect();
    let layer = sampler
        .sample(&targets, &[FanOut::All], Seed::new(1))
        .unwrap()
        .remove(0);
    assert_eq!(layer.nodes, targets);
    let mut edges = layer.edges;
    edges.sort_unstable();
    assert!(edges.into_iter().eq(0..whole.edge_count()));
}

#[test]
fn what_is_no_target_is_named() {
    let whole = graph();
    let mut sampler = NeighbourSampler::new(&whole).unwrap();
    for (targets, at) in [([1, 30], 1), ([7, 7], 1), ([usize::MAX, 1], 0)] {
        let got = targets[at];
        let refused = sampler.sample(&targets, &[FanOut::All], Seed::new(1));
        let (what, limit) = ("targets", 30);
        assert_eq!(
            refused,
            Err(Error::NotDistinct {
                what,
                at,
                got,
                limit
            })
        );
    }
    // The sampler remembers nothing of a refused call.
    assert!(
        sampler
            .sample(&[7, 1], &[FanOut::All], Seed::new(1))
            .is_ok()
    );
    let two = Graph::bipartite(2, 3, []).unwrap();
    assert!(matches!(
        NeighbourSampler::new(&two),
        Err(Error::NotSquare { .. })
    ));
}
