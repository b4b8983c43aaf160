//! Joint distributions fitted to tables.

use bochner_copula::{
    Dependence, Error, Family, GaussianCopula, Joint, JointOptions, Marginal, Univariate,
};
use bochner_numerics::Seed;
use ndarray::{Array2, array};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn truth() -> Joint<Univariate> {
    let r = array![[1.0, 0.7, -0.3], [0.7, 1.0, 0.2], [-0.3, 0.2, 1.0]];
    let marginals = vec![
        Univariate::Gamma {
            shape: 2.0,
            rate: 0.5,
        },
        Univariate::Normal {
            mean: -3.0,
            std_dev: 0.5,
        },
        Univariate::Beta {
            shape_a: 2.0,
            shape_b: 3.0,
        },
    ];
    Joint::new(
        GaussianCopula::from_correlation(r.view()).unwrap(),
        marginals,
    )
    .unwrap()
}

fn table(n: usize) -> Array2<f64> {
    truth()
        .sample(n, &mut Seed::new(1).stream("table"))
        .unwrap()
}

fn refused(table: Array2<f64>, options: &JointOptions) -> String {
    let error = Joint::fit(table.view(), &NAMES, options).unwrap_err();
    error.to_string()
}

#[test]
fn families_parameters_and_correlations_are_found() {
    let table = table(4000);
    for dependence in [
        Dependence::Kendall,
        Dependence::NormalScores,
        Dependence::MaximumLikelihood,
        Dependence::StudentsT,
    ] {
        let options = JointOptions {
            dependence,
            ..Default::default()
        };
        let joint = Joint::fit(table.view(), &NAMES, &options).unwrap().joint;
        for ((j, k), r) in truth().copula().correlation().indexed_iter() {
            let got = joint.copula().correlation()[[j, k]];
            assert!((got - r).abs() < 0.06, "{dependence:?}: {got} {r}");
        }
        for (got, want) in joint.marginals().iter().zip(truth().marginals()) {
            assert_eq!(std::mem::discriminant(got), std::mem::discriminant(want));
            for x in [-2.0, 0.0, 2.0] {
                let (got, want) = (got.at_score(x), want.at_score(x));
                assert!((got - want).abs() < 0.08 * want.abs(), "{got} {want}");
            }
        }
    }
}

#[test]
fn what_is_saved_and_loaded_is_equal_and_checked() {
    for dependence in [Dependence::NormalScores, Dependence::StudentsT] {
        let options = JointOptions {
            columns: [("b", Family::KernelDensity), ("c", Family::Empirical)]
                .map(|(name, family)| (name.to_owned(), family))
                .into(),
            dependence,
            ..Default::default()
        };
        let joint = Joint::fit(table(200).view(), &NAMES, &options)
            .unwrap()
            .joint;
        let text = serde_json::to_string(&joint).unwrap();
        let loaded: Joint<Univariate> = serde_json::from_str(&text).unwrap();
        assert_eq!(loaded, joint);
        let broken = text.replacen(r#""shape":"#, r#""shape":-"#, 1);
        let error = serde_json::from_str::<Joint<Univariate>>(&broken).unwrap_err();
        assert!(error.to_string().starts_with("`shape` is -"), "{error}");
    }
}

#[test]
fn bad_columns_are_refused_by_their_names() {
    let options = JointOptions::default();
    let with = |column: usize, f: fn(usize) -> f64| {
        let mut table = table(50);
        let mut column = table.column_mut(column);
        column.indexed_iter_mut().for_each(|(i, x)| *x = f(i));
        table
    };
    let missing = refused(
        with(1, |i| if i == 7 { f64::NAN } else { i as f64 }),
        &options,
    );
    assert!(missing.starts_with("`b` is NaN at [7]"), "{missing}");
    let constant = refused(with(2, |_| 1.0), &options);
    assert!(constant.starts_with("column `c`: column 2"), "{constant}");
    let discrete = refused(with(1, |i| (i % 4) as f64), &options);
    assert!(
        discrete.starts_with("column `b`: column 1 has 4 different"),
        "{discrete}"
    );
    let gamma = JointOptions {
        families: vec![Family::Gamma],
        ..Default::default()
    };
    let negative = refused(table(50), &gamma);
    assert!(
        negative.starts_with("column `b`: the family Gamma"),
        "{negative}"
    );
    let one = refused(table(1), &options);
    assert!(one.contains("the number given is 1"), "{one}");
    let unknown = JointOptions {
        columns: [("d".to_owned(), Family::Gamma)].into(),
        ..Default::default()
    };
    assert!(refused(table(50), &unknown).starts_with("there is no column `d`"));
    let twice = Joint::fit(table(50).view(), &["a", "b", "a"], &options).unwrap_err();
    assert!(matches!(twice, Error::RepeatedName { name } if name == "a"));
}

#[test]
fn discrete_columns_are_fitted_by_tau() {
    let mut table = table(500);
    table.column_mut(1).mapv_inplace(|x| (4.0 * x).round());
    let options = JointOptions {
        dependence: Dependence::Kendall,
        ..Default::default()
    };
    let fit = Joint::fit(table.view(), &NAMES, &options).unwrap();
    assert!((fit.joint.copula().correlation()[[0, 1]] - 0.7).abs() < 0.1);
}
