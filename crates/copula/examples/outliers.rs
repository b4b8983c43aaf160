//! The dependence that three fits find when the marginals are skewed and some observations are wrong.
//!
//! `cargo run --package bochner-copula --example outliers`

#![allow(clippy::print_stdout)]

use bochner_copula::ndarray::{Array2, ArrayView2, array};
use bochner_copula::statrs::distribution::Gamma;
use bochner_copula::{Error, GaussianCopula, Joint, pseudo_observations};
use bochner_numerics::Seed;

const TRUE: f64 = 0.7;

fn main() -> Result<(), Error> {
    let copula = GaussianCopula::from_correlation(array![[1.0, TRUE], [TRUE, 1.0]].view())?;
    let gamma = |shape| Gamma::new(shape, 1.0).expect("the shape is positive");
    let joint = Joint::new(copula, vec![gamma(0.5), gamma(3.0)])?;
    let clean = joint.sample(1000, &mut Seed::new(1).stream("data"))?;

    println!("correlation {TRUE}: found by");
    println!("wrong rows  Pearson  normal scores  Kendall's tau");
    for wrong in [0, 10, 50, 100] {
        let mut x = clean.clone();
        for i in 0..wrong {
            x[[i, 0]] = 50.0;
            x[[i, 1]] = 0.0;
        }
        let [scores, tau] = [
            GaussianCopula::fit_normal_scores(x.view())?,
            GaussianCopula::fit_kendall(x.view())?,
        ]
        .map(|fit| fit.copula.correlation()[[0, 1]]);
        let pearson = pearson(x.view());
        println!("{wrong:10}  {pearson:7.3}  {scores:13.3}  {tau:13.3}");
    }

    let u: Array2<f64> = pseudo_observations(clean.view())?;
    let both = u.rows().into_iter().filter(|u| u[0] > 0.95 && u[1] > 0.95);
    println!(
        "{} of 1000 are in the top twentieth of both; independent ones: 2.5",
        both.count()
    );
    Ok(())
}

fn pearson(x: ArrayView2<f64>) -> f64 {
    let centred = [0, 1].map(|m| &x.column(m) - x.column(m).sum() / x.nrows() as f64);
    let [a, b] = &centred;
    a.dot(b) / (a.dot(a) * b.dot(b)).sqrt()
}
