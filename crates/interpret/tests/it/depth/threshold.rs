//! Thresholds of depth and width.

use bochner_interpret::{DepthFit, depth_threshold, log3_separation_bound, parameter_count};

#[test]
fn the_published_table_comes_out() {
    let fit = DepthFit::default();
    for (depth, width, millions) in [
        (6.0, 215.0, 3.34),
        (12.0, 300.0, 13.0),
        (18.0, 419.0, 37.9),
        (24.0, 585.0, 98.4),
        (30.0, 816.0, 240.0),
        (36.0, 1138.0, 559.0),
        (48.0, 2215.0, 2830.0),
    ] {
        assert_eq!(fit.width_at(depth).unwrap().round(), width);
        let got = fit.parameters_at(depth).unwrap() / 1e6;
        assert!((got / millions - 1.0).abs() < 4e-3, "{got} {millions}");
    }
    for (parameters, depth, width) in [
        (125e6, 25.6, 638.0),
        (1.3e9, 42.2, 1603.0),
        (175e9, 80.5, 13459.0),
        (1e12, 94.7, 29657.0),
    ] {
        assert!((fit.depth_of(parameters).unwrap() - depth).abs() < 0.05);
        assert_eq!(fit.width_of(parameters).unwrap().round(), width);
    }
    for (width, threshold) in [(1024.0, 6.31), (4096.0, 7.57)] {
        assert!((depth_threshold(width).unwrap() - threshold).abs() < 5e-3);
    }
}

#[test]
fn inverses_undo_what_they_invert() {
    for fit in [DepthFit::default(), DepthFit { a: -3.0, b: 0.5 }] {
        for depth in [1e-6, 0.3, 1.0, 7.0, 96.0, 200.0] {
            let width = fit.width_at(depth).unwrap();
            assert!((fit.depth_at(width).unwrap() - depth).abs() < 1e-9);
            let found = fit.depth_of(fit.parameters_at(depth).unwrap()).unwrap();
            assert!((found / depth - 1.0).abs() < 1e-12, "{found} {depth}");
        }
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let fit = DepthFit::default();
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(depth_threshold(wrong).is_err() && fit.depth_at(wrong).is_err());
        assert!(fit.depth_of(wrong).is_err() && fit.parameters_at(wrong).is_err());
    }
    assert!(DepthFit { b: 0.0, ..fit }.width_at(1.0).is_err());
    // Products that overflow: here the width alone does not.
    for (depth, width) in [(1e10, 1e300), (1e308, 2.0), (1.0, 1e154)] {
        let refused = parameter_count(depth, width).unwrap_err().to_string();
        assert!(refused.starts_with("`width`"), "{refused}");
    }
    assert!(parameter_count(1.0, 1e153).unwrap().is_finite());
    // Depths that overflow with fits that are hardly ones, and bounds that are no numbers to be multiplied.
    assert!(DepthFit { b: 5e-324, ..fit }.depth_at(1e3).is_err());
    assert!(DepthFit { a: -1e308, ..fit }.depth_of(1e9).is_err());
    let flat = DepthFit { b: 5e-324, ..fit };
    assert!(flat.depth_of(1e9).is_ok_and(|depth| depth > 0.0));
    assert_eq!(log3_separation_bound(1, 0, u32::MAX), 0.0);
    assert_eq!(log3_separation_bound(7, 2, u32::MAX), f64::INFINITY);
    assert!(fit.width_at(1e4).unwrap().is_finite() && fit.parameters_at(1e4).is_err());
    assert!(
        fit.width_at(1e6)
            .unwrap_err()
            .to_string()
            .starts_with("`depth`")
    );
}

#[test]
fn the_bound_of_one_layer_is_the_sum_of_width_and_heads() {
    // log3 9 = 2; two layers have its fourth power, three its thirteenth.
    for (depth, want) in [(0, 0.0), (1, 2.0), (2, 8.0), (3, 26.0)] {
        let got = log3_separation_bound(7, 2, depth);
        assert!((got - want).abs() < 1e-12, "{depth}: {got}");
    }
}
