//! Graphs from lists of edges, and what is made of them.

use bochner_graph::{Batch, Error, Graph, LoopAttributes};
use ndarray::{Array2, array, s};

#[test]
fn both_directions_hold_the_same_edges() {
    let edges = [(2, 0), (0, 0), (1, 3), (2, 0), (0, 3)];
    let graph = Graph::bipartite(4, 3, edges).unwrap();
    assert_eq!(graph.edges(), edges);
    assert!(graph.in_edges(0).eq([(0, 1), (2, 0), (2, 3)]));
    assert!(graph.out_edges(2).eq([(0, 0), (0, 3)]));
    assert!(graph.out_edges(0).eq([(0, 1), (3, 4)]));
    assert_eq!([graph.in_degree(3), graph.in_degree(1)], [2, 0]);
    assert_eq!([graph.out_degree(1), graph.out_degree(2)], [1, 2]);
}

#[test]
fn ends_out_of_range_are_named() {
    assert_eq!(
        Graph::from_edges(2, [(0, 1), (1, 2)]),
        Err(Error::NodeOutOfRange {
            edge: 1,
            end: "target",
            got: 2,
            nodes: 2
        })
    );
    let from = Graph::bipartite(5, 1, [(1, 4)]);
    assert!(matches!(
        from,
        Err(Error::NodeOutOfRange { end: "source", .. })
    ));
    let from = Graph::from_rows(2, &[0, 1], &[2]);
    assert!(matches!(from, Err(Error::NodeOutOfRange { edge: 0, .. })));
}

#[test]
fn offsets_that_do_not_cut_a_list_into_rows_are_named() {
    let refused = |offsets: &[usize]| Graph::from_rows(2, offsets, &[0, 1, 0]).unwrap_err();
    for (offsets, wrong) in [
        (&[][..], 0),
        (&[1, 3], 0),
        (&[0, 2, 1, 3], 2),
        (&[0, 2], 1),
        (&[0, 4], 1),
    ] {
        let error = refused(offsets);
        assert!(
            matches!(error, Error::Offsets { at, .. } if at == wrong),
            "{error}"
        );
    }
    let error = refused(&[]).to_string();
    assert!(error.contains("must be 0, but is missing"), "{error}");
}

#[test]
fn a_graph_may_be_empty() {
    for nodes in [0, 3] {
        let graph = Graph::from_edges(nodes, []).unwrap();
        assert_eq!((graph.targets(), graph.edge_count()), (nodes, 0));
        assert_eq!(
            graph,
            Graph::from_rows(nodes, &vec![0; nodes + 1], &[]).unwrap()
        );
    }
}

#[test]
fn too_many_nodes_are_refused() {
    let limit = u32::MAX as usize;
    let much = Graph::from_edges(limit + 1, []);
    assert!(matches!(
        much,
        Err(Error::TooMany {
            what: "targets",
            ..
        })
    ));
}

#[test]
fn the_first_of_equal_edges_is_kept() {
    let edges = [(1, 1), (0, 1), (1, 1), (2, 0), (1, 1), (0, 1)];
    let graph = Graph::from_edges(3, edges).unwrap();
    assert_eq!(graph.duplicates(), 3);
    let once = graph.without_duplicates();
    assert_eq!((once.removed, &once.kept[..]), (3, &[0, 1, 3][..]));
    assert_eq!(once.graph.edges(), [(1, 1), (0, 1), (2, 0)]);
    assert_eq!(once.graph.without_duplicates().removed, 0);
}

#[test]
fn every_node_has_a_self_loop_afterwards() {
    let graph = Graph::from_edges(4, [(3, 3), (0, 3), (3, 3), (1, 0)]).unwrap();
    let looped = graph.with_self_loops().unwrap();
    assert_eq!((looped.added, looped.already_there), (vec![0, 1, 2], 1));
    let again = looped.graph.with_self_loops().unwrap();
    assert_eq!((again.added, again.already_there), (vec![], 4));
    assert_eq!(again.graph, looped.graph);
    assert_eq!(again.graph.edges()[..4], graph.edges());
}

/// The mean and its gradient, which is its transpose.
#[test]
fn added_self_loops_have_the_mean_of_the_edges_that_arrive() {
    let graph = Graph::from_edges(4, [(3, 3), (0, 3), (1, 0), (2, 0), (2, 0)]).unwrap();
    let looped = graph.with_self_loops().unwrap();
    let given = array![[1.0, 2.0], [5.0, 7.0], [3.0, 0.0], [6.0, 6.0], [0.0, 9.0]];
    let all = |fill| looped.attributes(given.view(), fill).unwrap();
    let mean = all(LoopAttributes::Mean);
    assert_eq!(mean.slice(s![..5, ..]), given);
    assert_eq!(
        mean.slice(s![5.., ..]),
        array![[3.0, 5.0], [0.0, 0.0], [0.0, 0.0]]
    );
    let constant = all(LoopAttributes::Constant(0.5));
    assert!(constant.slice(s![5.., ..]).iter().all(|&x| x == 0.5));
    let cotangent = Array2::from_shape_fn((8, 2), |(i, j)| (3 * i + j) as f64);
    for fill in [LoopAttributes::Mean, LoopAttributes::Constant(0.0)] {
        let along = looped.attributes_vjp(cotangent.view(), fill).unwrap();
        let (got, want) = ((&along * &given).sum(), (all(fill) * &cotangent).sum());
        assert!((got - want).abs() < 1e-12, "{fill:?}");
    }
    let error = looped.attributes(cotangent.view(), LoopAttributes::Mean);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("`attributes` has shape [8, 2]")
    );
    let narrow = given.mapv(|x| x as f32);
    for value in [f64::NAN, 1e300] {
        let error = looped.attributes(narrow.view(), LoopAttributes::Constant(value));
        assert!(error.unwrap_err().to_string().contains("fill"), "{value}");
    }
}

#[test]
fn a_bipartite_graph_has_no_self_loops() {
    let graph = Graph::bipartite(2, 3, [(2, 1)]).unwrap();
    assert!(matches!(
        graph.with_self_loops(),
        Err(Error::NotSquare {
            targets: 2,
            sources: 3,
            ..
        })
    ));
}

#[test]
fn graphs_of_a_batch_stay_apart() {
    let first = Graph::bipartite(2, 1, [(0, 1), (0, 0)]).unwrap();
    let empty = Graph::from_edges(0, []).unwrap();
    let last = Graph::bipartite(1, 3, [(2, 0)]).unwrap();
    let batch = Batch::new([&first, &empty, &last]).unwrap();
    assert_eq!(batch.len(), 3);
    assert_eq!(batch.graph().edges(), [(0, 1), (0, 0), (3, 2)]);
    assert_eq!(
        [batch.targets(0), batch.targets(1), batch.targets(2)],
        [0..2, 2..2, 2..3]
    );
    assert_eq!(
        [batch.sources(0), batch.sources(1), batch.sources(2)],
        [0..1, 1..1, 1..4]
    );
    assert_eq!(
        [batch.edges(0), batch.edges(1), batch.edges(2)],
        [0..2, 2..2, 2..3]
    );
    assert!(Batch::new([]).unwrap().is_empty());
}

#[cfg(feature = "petgraph")]
#[test]
fn directed_edges_of_petgraph_stay_so_and_others_go_both_ways() {
    use petgraph::graph::{DiGraph, NodeIndex, UnGraph};

    let mut directed = DiGraph::<&str, f64>::new();
    let nodes: Vec<NodeIndex> = ["a", "b", "c"].map(|name| directed.add_node(name)).to_vec();
    directed.add_edge(nodes[2], nodes[0], 1.0);
    directed.add_edge(nodes[0], nodes[0], 2.0);
    let graph = Graph::from_petgraph(&directed).unwrap();
    assert_eq!(graph.targets(), 3);
    assert_eq!(graph.edges(), [(2, 0), (0, 0)]);
    let undirected = UnGraph::<(), ()>::from_edges([(1, 1), (0, 2)]);
    let graph = Graph::from_petgraph(&undirected).unwrap();
    assert_eq!(graph.edges(), [(1, 1), (0, 2), (2, 0)]);
}
