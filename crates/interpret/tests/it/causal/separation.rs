//! Separation in graphs.

use super::testing::parsed;
use bochner_interpret::{Error, Independence, Separation};

/// Returns the oracle's answer: are nodes 0 and 1 independent in a graph of four nodes, given these?
fn separated(text: &str, given: &[usize]) -> bool {
    let graph = parsed(4, text);
    let oracle = Separation::new(&graph, &[0, 1, 2, 3], &[]).unwrap();
    let forth = oracle.independent(0, 1, given).unwrap();
    assert_eq!(forth, oracle.independent(1, 0, given).unwrap());
    forth
}

#[test]
fn chains_forks_and_colliders() {
    for through in ["0 --> 2, 2 --> 1", "2 --> 0, 2 --> 1", "0 --- 2, 2 --- 1"] {
        assert!(!separated(through, &[]) && separated(through, &[2]));
    }
    let collider = "0 --> 2, 1 --> 2, 2 --> 3";
    assert!(separated(collider, &[]));
    assert!(!separated(collider, &[2]) && !separated(collider, &[3]));
    let latent = "0 --> 2, 2 <-> 3, 1 --> 3";
    assert!(separated(latent, &[]) && separated(latent, &[2]) && separated(latent, &[3]));
    assert!(!separated(latent, &[2, 3]));
}

#[test]
fn selection_opens_what_it_is_an_effect_of() {
    let graph = parsed(4, "0 --> 3, 1 --> 3, 1 --> 2");
    let free = Separation::new(&graph, &[0, 1, 2], &[]).unwrap();
    let selected = Separation::new(&graph, &[0, 1, 2], &[3]).unwrap();
    assert!(free.independent(0, 2, &[]).unwrap());
    assert!(!selected.independent(0, 2, &[]).unwrap());
    assert!(selected.independent(0, 2, &[1]).unwrap());
}

#[test]
fn graphs_that_imply_nothing_are_refused() {
    let circle = parsed(2, "0 o-> 1");
    let refused = Separation::new(&circle, &[0, 1], &[]);
    assert!(matches!(refused, Err(Error::Undecided { nodes: [0, 1] })));
    let cycle = parsed(3, "0 --> 1, 1 --> 2, 2 --> 0");
    assert!(matches!(
        Separation::new(&cycle, &[0, 1], &[]),
        Err(Error::Cyclic { .. })
    ));
    let chain = parsed(3, "0 --> 1, 1 --> 2");
    let error = Separation::new(&chain, &[0, 3], &[]).unwrap_err();
    assert!(matches!(error, Error::Argument(_)));
    let said = "`observed or selected nodes` holds the index 3";
    assert!(error.to_string().starts_with(said), "{error}");
    let refused = Separation::new(&chain, &[0, 1], &[1]);
    assert!(matches!(refused, Err(Error::RepeatedNode { node: 1 })));
    let oracle = Separation::new(&chain, &[0, 1], &[]).unwrap();
    assert!(matches!(
        oracle.independent(0, 2, &[]),
        Err(Error::Argument(_))
    ));
}
