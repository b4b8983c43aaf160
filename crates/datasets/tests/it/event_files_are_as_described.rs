//! The badges in the directory `BOCHNER_DATA`: users, events and kinds are as published.

use crate::store;
use bochner_datasets::events;
use std::collections::HashMap;

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn badges() {
    let data = events::load(&store()).unwrap();
    assert_eq!((data.names.len(), data.provenance.len()), (22, 11));
    assert_eq!(
        (&*data.names[3], &*data.names[21]),
        ("Popular Question", "Publicist")
    );
    let lengths = || data.sequences.iter().map(|own| own.kinds.len());
    assert_eq!((data.sequences.len(), lengths().sum()), (4468, 327_487));
    assert_eq!((lengths().min(), lengths().max()), (Some(41), Some(736)));
    let mut last: HashMap<usize, usize> = HashMap::new();
    for own in &data.sequences {
        *last.entry(own.kinds[own.kinds.len() - 1]).or_default() += 1;
    }
    // The most frequent last badge is right for 36.6 % of the users.
    let share = *last.values().max().unwrap() as f64 / 4468.0;
    assert!((share - 0.366).abs() < 5e-4, "{share}");
    let tested: usize = data.splits.iter().map(|split| split.test.len()).sum();
    assert_eq!(tested, 4468);
}
