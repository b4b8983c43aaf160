//! The smallest set of nodes that explains a prediction.

use super::testing::parsed;
use bochner_interpret::{Error, smallest_explanation};

#[test]
fn sets_are_asked_for_by_size_and_distance() {
    // Node 2 is reached through the collider 1, node 4 not at all.
    let graph = parsed(5, "0 <-> 1, 1 <-o 2, 0 <-o 3, 3 o-> 4");
    let mut asked = Vec::new();
    let found = smallest_explanation(&graph, 0, 9, |set| {
        asked.push(set.to_vec());
        Ok::<_, Error>(false)
    });
    assert_eq!(found.unwrap(), None);
    assert_eq!(
        asked,
        [vec![1], vec![3], vec![1, 3], vec![1, 2], vec![1, 2, 3]]
    );
    let found = smallest_explanation(&graph, 0, 9, |set| Ok::<_, Error>(set.contains(&2)));
    assert_eq!(found.unwrap(), Some(vec![1, 2]));
    // All others together are a set as well.
    // Walks pass colliders and triangles alone, and sets of a size come by the sum of their distances.
    for (nodes, text, want) in [
        (4, "0 <-> 1, 1 <-> 2, 1 o-o 3, 2 o-o 3", vec![1, 2, 3]),
        (5, "0 <-> 1, 0 <-> 4, 1 <-> 2, 1 <-> 3", vec![1, 2, 4]),
    ] {
        let graph = parsed(nodes, text);
        let found = smallest_explanation(&graph, 0, 9, |set| Ok::<_, Error>(set.len() == 3));
        assert_eq!(found.unwrap(), Some(want), "{text}");
    }
    let graph = parsed(3, "0 <-o 1, 0 <-o 2");
    let found = smallest_explanation(&graph, 0, 9, |set| Ok::<_, Error>(set.len() == 2));
    assert_eq!(found.unwrap(), Some(vec![1, 2]));
}

#[test]
fn a_prediction_that_fails_ends_the_search_with_its_error() {
    let graph = parsed(4, "0 <-o 1, 0 <-o 2, 0 <-o 3");
    let mut asked = 0;
    let found = smallest_explanation(&graph, 0, 3, |set| {
        asked += 1;
        match set {
            [2] => Err(Error::NothingKept),
            _ => Ok(false),
        }
    });
    assert!(matches!(found, Err(Error::NothingKept)));
    assert_eq!(asked, 2);
}

#[test]
fn targets_that_are_not_there_are_refused() {
    let graph = parsed(2, "0 o-o 1");
    let of = |target, largest| smallest_explanation(&graph, target, largest, |_| Ok(true));
    assert_eq!(of(1, 1).unwrap(), Some(vec![0]));
    assert!(matches!(of(2, 1), Err(Error::Argument(_))));
    assert!(matches!(of(1, 0), Err(Error::Argument(_))));
}
