//! The parts of a mask, by their formulas.

use bochner_engine::ndarray::{Array2, Array4, array};
use bochner_engine::{Error, Mask};

#[test]
fn causality_aligns_the_last_query_with_the_last_key() {
    let mask = Mask::none().with_causality();
    let kept = |queries, keys| -> Vec<usize> {
        (0..queries)
            .map(|i| mask.kept_keys_of([0, 0, i], [queries, keys]).count())
            .collect()
    };
    assert_eq!(kept(3, 3), [1, 2, 3]);
    assert_eq!(kept(2, 4), [3, 4]);
    assert_eq!(kept(4, 2), [0, 0, 1, 2]);
}

#[test]
fn windows_prefixes_and_blocks_keep_what_their_formulas_say() {
    let sizes = (1..7).flat_map(|queries| (1..7).map(move |keys| (queries, keys)));
    for (queries, keys) in sizes {
        for (a, c) in [(1, 2), (2, 0), (0, 3), (4, 1), (3, usize::MAX)] {
            let after_prefix = Mask::none().with_causality_after(a);
            let in_blocks = Mask::none().with_causal_blocks(a + 1).unwrap();
            let window = Mask::none().with_window(a, c).unwrap();
            let all = (0..queries).flat_map(|i| (0..keys).map(move |j| (i, j)));
            for (i, j) in all {
                let keeps = |mask: &Mask| mask.keeps([0, 0, i, j], [queries, keys]);
                let own = i as f64 + keys as f64 - queries as f64;
                let (key, size) = (j as f64, a as f64 + 1.0);
                assert_eq!(keeps(&after_prefix), j < a || key <= own);
                let seen = (key / size).floor() <= (own / size).floor();
                assert_eq!(keeps(&in_blocks), seen, "{i} {j} of {queries} {keys}");
                let near = -(a as f64) <= key - own && key - own <= c as f64;
                assert_eq!(keeps(&window), near, "{i} {j} of {queries} {keys}");
                assert_eq!(keeps(&window.clone().with_causality()), near && key <= own);
            }
        }
    }
}

/// Mechanisms that see the whole sequence refuse what is causal.
#[test]
fn what_keeps_no_later_key_is_causal() {
    let none = Mask::none();
    let masks = [
        none.clone(),
        none.clone().with_causality(),
        none.clone().with_window(2, 0).unwrap(),
        none.clone().with_window(usize::MAX, 0).unwrap(),
        none.clone().with_window(2, 1).unwrap(),
        none.clone().with_window(0, 3).unwrap(),
        none.clone().with_window(2, 0).unwrap().with_packed(&[4, 3]),
    ];
    for mask in masks {
        let keeps = |(i, j)| mask.keeps([0, 0, i, j], [7, 7]);
        let mut later = (0..7).flat_map(|i| (i + 1..7).map(move |j| (i, j)));
        assert_eq!(mask.is_causal(), !later.any(keeps), "{mask:?}");
    }
    // The last window counts.
    let mask = none.with_window(2, 0).unwrap().with_window(2, 2).unwrap();
    assert!(!mask.is_causal());
}

#[test]
fn packed_sequences_keep_what_each_would_keep_alone() {
    let lengths = [3, 0, 1, 70];
    let total = lengths.iter().sum();
    for mask in [
        Mask::none(),
        Mask::none().with_causality_after(2),
        Mask::none().with_causal_blocks(2).unwrap(),
        Mask::none().with_causality().with_window(1, 1).unwrap(),
    ] {
        let packed = mask.clone().with_packed(&lengths);
        assert!(packed.check([1, 1, total, total]).is_ok());
        let of = |t: usize| match t {
            0..3 => (0, 0),
            3 => (2, 3),
            _ => (3, 4),
        };
        for (i, j) in (0..total * total).map(|n| (n / total, n % total)) {
            let ((n, first), (other, _)) = (of(i), of(j));
            let own = || mask.keeps([0, 0, i - first, j - first], [lengths[n]; 2]);
            let want = n == other && own();
            let got = packed.keeps([0, 0, i, j], [total, total]);
            assert_eq!(got, want, "{i} {j} {mask:?}");
        }
    }
}

/// The later positions of a window are not seen under causality: without earlier ones nothing would be left but the
/// query itself. A prefix or a block lets some of them in.
#[test]
fn a_window_that_causality_empties_is_refused() {
    let window = |mask: Mask, left, right| mask.with_window(left, right).unwrap();
    let causal = || Mask::none().with_causality();
    for right in [1, 3, usize::MAX] {
        // In either order.
        for mask in [
            window(causal(), 0, right),
            window(Mask::none(), 0, right).with_causality(),
        ] {
            let error = mask.check([1, 1, 4, 4]).unwrap_err().to_string();
            assert!(error.contains("0 to the left"), "{error}");
        }
        for mask in [
            window(Mask::none(), 0, right),
            window(causal(), 1, right),
            window(Mask::none().with_causality_after(2), 0, right),
            window(Mask::none().with_causal_blocks(2).unwrap(), 0, right),
        ] {
            assert!(mask.check([1, 1, 4, 4]).is_ok(), "{mask:?}");
            let keeps = |(i, j)| i != j && mask.keeps([0, 0, i, j], [4, 4]);
            assert!((0..16).map(|n| (n / 4, n % 4)).any(keeps), "{mask:?}");
        }
    }
}

#[test]
fn parts_are_joined_by_and() {
    let mask = Mask::none()
        .with_key_lengths(vec![2])
        .with_causality()
        .with_matrix(array![[true, true, true], [false, true, true], [true, true, true]].view());
    let kept: Vec<Vec<bool>> = (0..3)
        .map(|i| (0..3).map(|j| mask.keeps([0, 0, i, j], [3, 3])).collect())
        .collect();
    assert_eq!(
        kept,
        [
            [true, false, false],
            [false, true, false],
            [true, true, false]
        ]
    );
}

#[test]
fn misfits_are_named() {
    let wrong = [
        Mask::none().with_key_lengths(vec![1]),
        Mask::none().with_key_lengths(vec![1, 5]),
        Mask::none().with_query_lengths(vec![4, 1]),
        Mask::none().with_matrix(Array2::from_elem((3, 3), true).view()),
        Mask::none().with_matrix(Array2::from_elem((2, 4), true).view()),
        Mask::none().with_matrices(Array4::from_elem((3, 1, 3, 4), true).view()),
        Mask::none().with_matrices(Array4::from_elem((1, 2, 3, 4), true).view()),
        Mask::none().with_packed(&[3, 1]),
    ];
    for mask in wrong {
        assert!(
            matches!(mask.check([2, 1, 3, 4]), Err(Error::Mask { .. })),
            "{mask:?}"
        );
    }
    let matrices = Mask::none().with_matrices(Array4::from_elem((3, 1, 3, 4), true).view());
    let says = |batch, heads| {
        let refused = matrices.check([batch, heads, 3, 4]);
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        says(1, 4),
        "the number of matrices must be 1 for the examples and 1 or 4 for the heads, not 3 for the examples and 1 for \
         the heads"
    );
    assert!(says(2, 1).contains("must be 1 or 2 for the examples and 1 for the heads"));
    let packed = |lengths: &[usize]| Mask::none().with_packed(lengths).check([1, 1, 4, 4]);
    assert!(packed(&[3, 1]).is_ok());
    for lengths in [&[3, 2][..], &[3], &[], &[5, usize::MAX]] {
        let error = packed(lengths).unwrap_err().to_string();
        assert!(error.contains("add up to 4"), "{error}");
    }
    assert!(Mask::none().with_window(0, 0).is_err());
    assert!(Mask::none().with_causal_blocks(0).is_err());
    assert!(
        Mask::none()
            .with_key_lengths(vec![0, 4])
            .check([2, 1, 3, 4])
            .is_ok()
    );
}
