//! On all months of carbon dioxide at Mauna Loa, a fit goes the same way in years and in days.
//!
//! Twenty steps show it, and all 627 months enter each of them. The example `carbon_dioxide` goes on to the maximum.

use bochner_datasets::regression::co2;
use bochner_gp::{FitConfig, seasonal_process};
use ndarray::{Array1, Array2};

fn months() -> (Array2<f64>, Array1<f64>) {
    let directory = std::env::var_os("BOCHNER_DATA");
    let directory = directory.expect("BOCHNER_DATA names the directory of the data files");
    let path = std::path::Path::new(&directory).join("co2").join(co2::FILE);
    let months = co2::parse(co2::FILE, &std::fs::read(path).unwrap()).unwrap();
    let measured = months
        .iter()
        .filter_map(|month| Some((month.date, month.ppm?)));
    let (years, ppm): (Vec<f64>, Vec<f64>) = measured.unzip();
    let years = Array2::from_shape_vec((years.len(), 1), years).unwrap();
    (years, ppm.into())
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn the_first_steps_are_the_same_in_years_and_in_days() {
    let (years, ppm) = months();
    assert_eq!(ppm.len(), 627);
    let config = FitConfig {
        steps: 20,
        fixed: vec!["mean".to_owned()],
        ..FitConfig::default()
    };
    let paths = [1.0, 365.25].map(|days| {
        let x = &years * days;
        let mut process = seasonal_process(x.view(), ppm.view(), days).unwrap();
        let fit = process.fit(x.view(), ppm.view(), &config).unwrap();
        let norms: Vec<_> = fit.trace.iter().map(|step| step.gradient_norm).collect();
        let values = fit.trace.iter().map(|step| step.evidence.log_likelihood);
        (values.collect::<Vec<_>>(), norms)
    });
    let [(in_years, norms_in_years), (in_days, norms_in_days)] = &paths;
    assert_eq!((in_years.len(), in_days.len()), (21, 21));
    assert!(in_years[20] > in_years[0] + 1.0, "{in_years:?}");
    for (a, b) in in_years.iter().zip(in_days) {
        assert!((a - b).abs() < 1e-4, "{in_years:?} {in_days:?}");
    }
    for (a, b) in norms_in_years.iter().zip(norms_in_days) {
        assert!((a / b - 1.0).abs() < 1e-3, "{paths:?}");
    }
}
