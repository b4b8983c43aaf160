//! Min-max scaling: onto [-1, 1], and back.

use bochner_datasets::{MinMax, Table};
use proptest::prelude::*;

proptest! {
    #[test]
    fn columns_fill_the_interval_and_come_back(
        values in prop::collection::vec(-1e6..1e6_f64, 2..60),
    ) {
        let values = values[..values.len() / 2 * 2].to_vec();
        let table = Table::new(values, 2).unwrap();
        let scale = MinMax::fit(&table);
        let scaled = scale.transform(&table).unwrap();
        for (j, &(min, max)) in scale.ranges().iter().enumerate() {
            let largest = scaled.column(j).fold(f64::NEG_INFINITY, f64::max);
            let smallest = scaled.column(j).fold(f64::INFINITY, f64::min);
            let wanted = if min == max { (0.0, 0.0) } else { (-1.0, 1.0) };
            prop_assert_eq!((smallest, largest), wanted);
        }
        let back = scale.inverse(&scaled).unwrap();
        for (&got, &want) in back.values().iter().zip(table.values()) {
            prop_assert!((got - want).abs() <= 1e-9 * (1.0 + want.abs()));
        }
    }

    #[test]
    fn units_do_not_matter(values in prop::collection::vec(-8i32..8, 1..40)) {
        let scaled = |factor: f64, shift: f64| {
            let values = values.iter().map(|&v| f64::from(v) * factor + shift).collect();
            let table = Table::new(values, 1).unwrap();
            MinMax::fit(&table).transform(&table).unwrap()
        };
        // Powers of two, so that nothing is rounded.
        prop_assert_eq!(scaled(1.0, 0.0), scaled(0.25, 1024.0));
    }
}
