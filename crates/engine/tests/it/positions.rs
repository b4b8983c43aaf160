//! Rotary positions, by their formula.

use bochner_engine::{PositionCode, Rotary, RotaryPairing};
use proptest::prelude::*;

fn rotaries() -> impl Strategy<Value = Rotary> {
    let pairing = prop_oneof![
        Just(RotaryPairing::Halves),
        Just(RotaryPairing::Interleaved)
    ];
    let width = prop_oneof![Just(None), Just(Some(2)), Just(Some(6))];
    (1.0..1e6, width, pairing, 0.1..2.0).prop_map(|(base, width, pairing, scale)| Rotary {
        base,
        width,
        pairing,
        scale,
    })
}

fn rows(width: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1.0..1.0, width)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn encoded(rotary: &Rotary, positions: &[usize], rows: &[f64]) -> Vec<f64> {
    let mut rows = rows.to_vec();
    rotary.encode(positions, 8, &mut rows);
    rows
}

/// The formula, pair by pair.
fn plain(rotary: &Rotary, position: usize, row: &[f64]) -> Vec<f64> {
    let (mut y, turned) = (row.to_vec(), rotary.width.unwrap_or(row.len()));
    for j in 0..turned / 2 {
        let (a, b) = match rotary.pairing {
            RotaryPairing::Halves => (j, j + turned / 2),
            RotaryPairing::Interleaved => (2 * j, 2 * j + 1),
        };
        let slowness = rotary.base.powf(2.0 * j as f64 / turned as f64);
        let (sin, cos) = (rotary.scale * position as f64 / slowness).sin_cos();
        (y[a], y[b]) = (row[a] * cos - row[b] * sin, row[a] * sin + row[b] * cos);
    }
    y
}

proptest! {
    #[test]
    fn rows_turn_by_the_formula(rotary in rotaries(), rows in rows(48), shift in 0..1000_usize) {
        // Two heads of three positions.
        let positions = [shift, 0, 7];
        let got = encoded(&rotary, &positions, &rows);
        for (i, (got, row)) in got.chunks(8).zip(rows.chunks(8)).enumerate() {
            for (got, want) in got.iter().zip(plain(&rotary, positions[i % 3], row)) {
                prop_assert!((got - want).abs() < 1e-11);
            }
        }
        prop_assert_eq!(encoded(&rotary, &[0], &rows[..8]), &rows[..8]);
    }

    #[test]
    fn products_depend_on_differences_of_positions(
        rotary in rotaries(), q in rows(8), k in rows(8), (i, j) in (0..100_usize, 0..100_usize),
        shift in 0..5_000_000_usize,
    ) {
        let product = |shift| {
            let [q, k] = [(&q, i), (&k, j)].map(|(x, t)| encoded(&rotary, &[t + shift], x));
            dot(&q, &k)
        };
        prop_assert!((product(0) - product(shift)).abs() < 2e-8);
    }

    /// The rotation is linear: the product of a cotangent with an encoded row is that of its pull-back with the row.
    #[test]
    fn the_vjp_is_the_transpose(rotary in rotaries(), x in rows(24), g in rows(24), t in 0..10_000_usize) {
        let positions = [t, t + 1, 0];
        let mut pulled = g.clone();
        rotary.encode_vjp(&positions, 8, &mut pulled);
        let want = dot(&g, &encoded(&rotary, &positions, &x));
        prop_assert!((dot(&pulled, &x) - want).abs() < 1e-12);
    }
}

#[test]
fn wide_rows_turn_in_blocks() {
    // More than two blocks of 32 angles.
    let (rotary, width) = (Rotary::default(), 134);
    let row: Vec<f64> = (0..width).map(|n| (n as f64).sin()).collect();
    let mut got = row.clone();
    rotary.encode(&[9], width, &mut got);
    for (got, want) in got.iter().zip(plain(&rotary, 9, &row)) {
        assert!((got - want).abs() < 1e-13);
    }
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let check = |rotary: Rotary, width| PositionCode::<f32>::check(&rotary, width);
    let of = |base, scale, width| Rotary {
        base,
        scale,
        width,
        ..Rotary::default()
    };
    assert!(check(Rotary::default(), 8).is_ok() && check(of(2.0, 0.5, Some(4)), 7).is_ok());
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let base = check(of(wrong, 1.0, None), 8).unwrap_err();
        let scale = check(of(1e4, wrong, None), 8).unwrap_err();
        assert_eq!((base.name(), scale.name()), ("base", "scale"));
    }
    let columns = [(None, 7), (Some(3), 8), (Some(0), 8), (Some(10), 8)];
    for (width, of_rows) in columns {
        let error = check(of(1e4, 1.0, width), of_rows).unwrap_err();
        assert!(error.name().contains("width"), "{error}");
    }
}
