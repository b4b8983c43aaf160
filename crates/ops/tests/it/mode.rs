//! The mode of a forward pass: training or evaluation.

use bochner_numerics::Seed;
use bochner_ops::Mode;

#[test]
fn parts_have_seeds_of_their_own() {
    let seed = Seed::new(1);
    let mode = Mode::Training(seed);
    assert_eq!(mode.child("a"), Mode::Training(seed.child("a")));
    assert_eq!(mode.nth(2), Mode::Training(seed.nth(2)));
    let [a, b, c] = [mode.child("a"), mode.child("b"), mode.nth(0)];
    assert!(mode != a && a != b && b != c && c != mode.nth(1));
    assert_eq!(Mode::Evaluation.child("a").nth(1), Mode::Evaluation);
}
