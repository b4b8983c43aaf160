//! The calls that are tried.

use super::*;

/// A mask and the sizes of the sequences that it is tried on.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) mask: Mask,
    pub(super) batch: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    /// Whether every kernel accepts it.
    pub(super) is_must: bool,
}

impl Case {
    /// Causality, which every kernel accepts.
    pub(super) fn causal(length: usize) -> Self {
        Self {
            name: "causality",
            mask: Mask::causal(),
            batch: 2,
            queries: length,
            keys: length,
            is_must: true,
        }
    }

    /// The case under another mask.
    pub(super) fn under(self, name: &'static str, mask: Mask) -> Self {
        let is_must = false;
        Self {
            name,
            mask,
            is_must,
            ..self
        }
    }

    /// Whether a query of a head sees a key.
    pub(super) fn sees<T: Real>(
        &self,
        settings: &Settings<T>,
        [b, m, i, j]: [usize; 4],
        heads: usize,
    ) -> bool {
        let sizes = [self.queries, self.keys];
        // A scan has no output at positions that are padding.
        let counts =
            !matches!(settings.kernel, Kernel::Scan(_)) || i < self.mask.key_limit(b, self.keys);
        let by_bias = |bias: &Bias<T>| bias.at([b, m, i, j], heads, sizes) != T::neg_infinity();
        counts && self.mask.keeps([b, m, i, j], sizes) && settings.bias.as_ref().is_none_or(by_bias)
    }
}

/// Masks of every kind, with sizes that leave some of their rows without a key, and some keys without a row.
pub(super) fn cases(heads: usize, is_scan: bool) -> Vec<Case> {
    let [queries, keys] = if is_scan { [7, 7] } else { [5, 7] };
    let keeps = |(b, m, i, j): (usize, usize, usize, usize)| {
        i != 1 && j != 2 && !(b + m + i * 2 + j).is_multiple_of(3)
    };
    let matrices = Array4::from_shape_fn((2, heads, queries, keys), keeps);
    let blocks = Array2::from_shape_fn((4, 4), |(i, j)| i != 2 && (i + j) % 2 == 0);
    let window = |mask: Mask, left, right| mask.with_window(left, right).expect("not empty");
    let [padded, empty] = [vec![keys, keys - 3], vec![keys - 3, 0]];
    let blocks = Mask::none()
        .with_blocks(2, blocks.view())
        .expect("not empty");
    let rule = |i: i64, j: i64| i != 4 && (i - j).rem_euclid(3) != 1 && j != 0;
    let all = [
        ("no mask", Mask::none()),
        ("key lengths", Mask::none().with_key_lengths(empty)),
        (
            "causality and key lengths",
            Mask::causal().with_key_lengths(padded),
        ),
        (
            "a window",
            window(Mask::none().with_key_lengths(vec![3, keys]), 1, 1),
        ),
        ("a causal window", window(Mask::none(), 2, 0)),
        ("a prefix", Mask::none().with_causality_after(2)),
        (
            "causal blocks",
            Mask::none().with_causal_blocks(3).expect("not empty"),
        ),
        ("matrices", Mask::none().with_matrices(matrices.view())),
        ("a function of positions", Mask::none().with_pairs(rule)),
        ("blocks", blocks),
    ];
    let square = || Case::causal(keys);
    let of = |(name, mask)| Case {
        queries,
        ..square().under(name, mask)
    };
    let mut cases: Vec<Case> = all.into_iter().map(of).chain([square()]).collect();
    let packed = Mask::causal().with_packed(&[3, 0, 4]);
    cases.push(Case {
        batch: 1,
        ..square().under("packed sequences", packed)
    });
    if !is_scan {
        cases.push(Case {
            name: "causality with more queries than keys",
            queries: 7,
            ..Case::causal(5)
        });
    }
    cases
}
