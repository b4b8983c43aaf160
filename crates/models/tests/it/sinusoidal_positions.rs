//! Sinusoidal positions.

use bochner_models::positions::sinusoidal_positions;

const BASE: f64 = 10_000.0;

/// The encoding of a shifted position is a rotation of each pair of columns, the same for all positions.
#[test]
fn a_shift_is_a_rotation() {
    let width = 6;
    let of = |t| sinusoidal_positions::<f64>(&[t], width, BASE).unwrap();
    for (t, shift) in [(0, 3), (17, 40), (59, 1)] {
        let (now, later) = (of(t), of(t + shift));
        for pair in 0..width / 2 {
            let angle = shift as f64 / BASE.powf(2.0 * pair as f64 / width as f64);
            let [s, c] = [now[[0, 2 * pair]], now[[0, 2 * pair + 1]]];
            let want = s * angle.cos() + c * angle.sin();
            assert!((later[[0, 2 * pair]] - want).abs() < 1e-13);
        }
    }
}

#[test]
fn an_odd_width_ends_in_a_sine_and_a_distant_position_is_exact() {
    let far = 1_000_003;
    let encoded = sinusoidal_positions::<f32>(&[far], 3, BASE).unwrap();
    let slow = far as f64 / BASE.powf(2.0 / 3.0);
    let want = [(far as f64).sin(), (far as f64).cos(), slow.sin()];
    assert_eq!(encoded.row(0).to_vec(), want.map(|x| x as f32));
}

#[test]
fn tables_that_cannot_be_are_refused() {
    assert!(sinusoidal_positions::<f32>(&[], 4, BASE).is_err());
    assert!(sinusoidal_positions::<f32>(&[1], 0, BASE).is_err());
    for base in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(sinusoidal_positions::<f32>(&[1], 4, base).is_err());
    }
}
