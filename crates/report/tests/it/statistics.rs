//! Estimates and p-values, by hand and by simulation.

use bochner_numerics::{Seed, relative_error, standard_normal};
use bochner_report::statistics::{
    Difference, Estimate, Finding, LEVEL, Paired, holm, independent, line, mean, median,
    partial_conjunction, population_deviation, sample_deviation, sign_test,
};
use bochner_report::suite::{Direction, Metric, Shown};

fn close(got: f64, want: f64) {
    assert!(relative_error(&[got], &[want]) < 1e-10, "{got} != {want}");
}

fn on_splits(values: &[f64]) -> Vec<Difference> {
    let values = values.iter().copied().enumerate();
    values
        .map(|(split, value)| Difference { split, value })
        .collect()
}

#[test]
fn a_comparison_worked_out_by_hand() {
    // d = -3, -1, 1, -1: mean -1, squares 4 + 0 + 4 + 0 = 8, sd = sqrt(8 / 3).
    let paired = Paired::new(&on_splits(&[-3.0, -1.0, 1.0, -1.0]), Some(0.125)).unwrap();
    let sd = (8.0_f64 / 3.0).sqrt();
    assert_eq!((paired.n, paired.wins, paired.ties), (4, 3, 0));
    close(paired.mean, -1.0);
    close(paired.error.unwrap(), sd / 2.0);
    close(paired.corrected_error.unwrap(), sd * 0.375_f64.sqrt());
    let estimate = paired.estimate.unwrap();
    close(estimate.error, sd * 0.375_f64.sqrt());
    assert_eq!(estimate.degrees, 3.0);
    assert_eq!(paired.finding(), Finding::NoDifferenceSeen);
    assert!(Paired::new(&[], None).is_err());
}

#[test]
fn intervals_and_p_values_are_those_of_the_t_distribution() {
    // Mean 7 / 3 and variance 7 / 3, so that t is the root of 7. With two degrees of freedom the two-sided p-value is
    // 1 - t / sqrt(2 + t^2) = 0.118083, and the quantile of 0.975 is 4.302653.
    let estimate = Estimate::new(&[1.0, 2.0, 4.0], None).unwrap();
    close(2.0 * estimate.p_above(0.0), 1.0 - 7_f64.sqrt() / 3.0);
    close(estimate.p_above(0.0) + estimate.p_below(0.0), 1.0);
    let [low, high] = estimate.interval(0.05);
    assert!((low + 1.461_249).abs() < 1e-3 && (high - 6.127_916).abs() < 1e-3);
    // Welch and Satterthwaite, by hand.
    let other = Estimate::new(&[0.0, -1.0, -1.0, -2.0], None).unwrap();
    let both = Estimate::average(&[estimate, other]).unwrap();
    let variances = [7.0 / 3.0 / 3.0, 2.0 / 3.0 / 4.0_f64];
    let degrees = (variances[0] + variances[1]).powi(2)
        / (variances[0].powi(2) / 2.0 + variances[1].powi(2) / 3.0);
    close(both.degrees, degrees);
    close(both.mean, (7.0 / 3.0 - 1.0) / 2.0);
    close(both.error, (variances[0] + variances[1]).sqrt() / 2.0);
}

#[test]
fn two_runs_and_runs_that_do_not_spread_prove_nothing() {
    let two = Paired::new(&on_splits(&[-2.0, -2.1]), None).unwrap();
    assert_eq!(two.finding(), Finding::TooFewRuns);
    let equal = Paired::new(&on_splits(&[-0.3; 10]), None).unwrap();
    assert_eq!(equal.finding(), Finding::NoDifferenceSeen);
    assert_eq!(equal.estimate.unwrap().p_below(0.0), 1.0);
}

#[test]
fn seeds_on_one_split_count_and_seeds_on_several_are_averaged() {
    let of = |runs: &[(usize, f64)]| {
        let runs = runs
            .iter()
            .map(|&(split, value)| Difference { split, value });
        independent(&runs.collect::<Vec<_>>())
    };
    assert_eq!(of(&[(0, 1.0), (0, 3.0), (0, 8.0)]), [1.0, 3.0, 8.0]);
    assert_eq!(of(&[(8, 1.0), (0, 5.0), (8, 3.0)]), [5.0, 2.0]);
}

#[test]
fn p_values_are_combined_and_adjusted_as_by_hand() {
    close(partial_conjunction(&[0.3, 0.01, 0.02], 2), 0.04);
    close(partial_conjunction(&[0.3, 0.01, 0.02], 3), 0.3);
    close(partial_conjunction(&[0.9, 0.8], 1), 1.0);
    // 3 * 0.01, then 2 * 0.02, then 1 * 0.03, never less than the one before.
    let adjusted = holm(&[0.03, 0.01, 0.02]);
    for (got, want) in adjusted.into_iter().zip([0.04, 0.03, 0.04]) {
        close(got, want);
    }
    let [above, below] = sign_test(10, 10);
    close(above, 2f64.powi(-10));
    close(below, 1.0);
    close(sign_test(0, 3)[1], 0.125);
}

#[test]
fn power_is_the_share_of_samples_in_which_an_effect_is_found() {
    const TIMES: usize = 20_000;
    for (n, effect) in [(3, 1.5), (10, 0.0), (10, 0.8), (20, 0.3)] {
        let mut stream = Seed::new(n as u64).stream("differences");
        let found = (0..TIMES).filter(|_| {
            let value = |_| effect + standard_normal::<f64>(&mut stream);
            let values: Vec<f64> = (0..n).map(value).collect();
            Estimate::new(&values, None).unwrap().p_above(0.0) <= LEVEL / 2.0
        });
        let share = found.count() as f64 / TIMES as f64;
        let exact = Estimate {
            mean: 7.0,
            error: 1.0 / (n as f64).sqrt(),
            degrees: (n - 1) as f64,
        };
        let power = exact.power(effect, LEVEL / 2.0).unwrap();
        // Four standard errors of a share of one half.
        assert!((power - share).abs() < 0.015, "{power} {share} at {n} runs");
    }
    let flat = Estimate {
        mean: 1.0,
        error: 0.0,
        degrees: 9.0,
    };
    assert_eq!(flat.power(1.0, LEVEL), None);
}

/// The share of null data sets in which a claim or its opposite is found.
fn alarms(n: usize, correlation: f64, test_share: Option<f64>) -> f64 {
    const TIMES: usize = 20_000;
    let mut stream = Seed::new(n as u64).stream("null differences");
    let mut normal = || standard_normal::<f64>(&mut stream);
    let mut found = 0;
    for _ in 0..TIMES {
        let common = correlation.sqrt() * normal();
        let own = (1.0 - correlation).sqrt();
        let values: Vec<f64> = (0..n).map(|_| common + own * normal()).collect();
        let paired = Paired::new(&on_splits(&values), test_share).unwrap();
        found += usize::from(paired.finding() != Finding::NoDifferenceSeen);
    }
    found as f64 / TIMES as f64
}

#[test]
fn false_alarms_are_as_rare_as_the_level_says() {
    // Three standard errors of a share of 0.05 among 20,000.
    let most = LEVEL + 3.0 * (0.05 * 0.95 / 20_000_f64).sqrt();
    for n in [3, 5, 10] {
        let rate = alarms(n, 0.0, None);
        assert!(rate <= most, "{rate} for {n} runs");
    }
    // Ten folds, one of which is tested and eight of which train: differences correlated by 1 / 9.
    let rate = alarms(10, 1.0 / 9.0, Some(1.0 / 8.0));
    assert!(rate <= most, "{rate} for ten folds");
    // Without the correction folds raise false alarms.
    assert!(alarms(10, 1.0 / 9.0, None) > 2.0 * LEVEL);
}

#[test]
fn deviations_of_2_4_9() {
    // Mean 5, squares 9 + 1 + 16 = 26.
    let values = [2.0, 4.0, 9.0];
    close(mean(&values).unwrap(), 5.0);
    close(
        population_deviation(&values).unwrap(),
        (26.0_f64 / 3.0).sqrt(),
    );
    close(sample_deviation(&values).unwrap(), 13.0_f64.sqrt());
    assert!(mean(&[]).is_err() && sample_deviation(&[1.0]).is_err());
}

#[test]
fn a_line_worked_out_by_hand() {
    // Means 1 and 2; sums of squares 2 and products 3; left over 0.5, -1, 0.5.
    let fitted = line(&[(0.0, 1.0), (1.0, 1.0), (2.0, 4.0)]).unwrap();
    close(fitted.slope, 1.5);
    close(fitted.error, (1.5_f64 / 1.0 / 2.0).sqrt());
    assert!(line(&[(0.0, 1.0), (1.0, 1.0)]).is_err());
    assert!(line(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]).is_err());
}

#[test]
fn the_median_lies_in_the_middle() {
    close(median(&[3.0, 1.0, 2.0]).unwrap(), 2.0);
    close(median(&[4.0, 1.0, 2.0, 3.0]).unwrap(), 2.5);
    assert!(median(&[]).is_err());
}

#[test]
fn a_gain_has_the_sign_of_what_is_shown() {
    let errors = Metric {
        shown: Shown::ErrorAsAccuracy,
        direction: Direction::Smaller,
        ..Metric::ACCURACY
    };
    // One accuracy, recorded as an error and as a share: 0.8 against 0.75.
    let (e, a) = (errors, Metric::ACCURACY);
    let loss =
        |m: Metric, variant, baseline| m.direction.loss(variant) - m.direction.loss(baseline);
    assert!((e.gain(loss(e, 0.2, 0.25)) - 5.0).abs() < 1e-9);
    assert!((a.gain(loss(a, 0.8, 0.75)) - 5.0).abs() < 1e-9);
    assert!((e.show(0.2) - a.show(0.8)).abs() < 1e-9);
    assert_eq!(
        (e.better(), a.better(), Metric::RMSE.better()),
        ("larger", "larger", "smaller")
    );
    assert!(Metric::RMSE.gain(-0.1) < 0.0);
}

#[test]
fn the_best_is_the_first_of_equal_ones() {
    let values = [0.3, 0.1, 0.4, 0.1, 0.4];
    assert_eq!(Direction::Smaller.best(&values), Some(1));
    assert_eq!(Direction::Larger.best(&values), Some(2));
    assert_eq!(Direction::Larger.best(&[]), None);
}
