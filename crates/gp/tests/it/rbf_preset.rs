//! A process for smooth functions without further structure.

use bochner_gp::rbf_process;
use ndarray::{Array1, Array2, array};

#[test]
fn it_starts_at_the_scales_of_the_data() {
    let x = array![[0.0, 7.0], [6.0, 7.0], [0.0, 15.0], [6.0, 15.0]];
    let y = array![1.0, 1.0, 5.0, 5.0];
    let process = rbf_process(x.view(), y.view()).unwrap();
    let values: Vec<f64> = process.parameters().iter().map(|p| p.value).collect();
    for (got, want) in values.iter().zip([3.0, 0.4, 4.0, 5.0]) {
        assert!((got - want).abs() < 1e-12);
    }
    assert!(process.evidence(x.view(), y.view()).is_ok());
}

#[test]
fn data_without_any_variation_have_a_process_and_no_data_have_none() {
    let process = rbf_process(Array2::ones((3, 1)).view(), Array1::ones(3).view()).unwrap();
    assert_eq!(process.parameters()[2].value, 1.0);
    // The mean of three tenths is no tenth, so that their rounded variance is not zero.
    let (x, y) = (Array2::from_elem((3, 1), 0.1), Array1::from_elem(3, 0.1));
    let process = rbf_process(x.view(), y.view()).unwrap();
    let parameters = process.parameters().into_iter().map(|p| p.value);
    assert_eq!(parameters.skip(2).collect::<Vec<_>>(), [1.0; 2]);
    let one = rbf_process(array![[1.0, 2.0]].view(), array![3.0].view()).unwrap();
    assert_eq!(one.mean(), 3.0);
    let none = rbf_process(Array2::zeros((0, 1)).view(), Array1::zeros(0).view());
    let said = none.unwrap_err().to_string();
    assert!(
        said.starts_with("`x` has shape [0, 1] and so no elements"),
        "{said}"
    );
}

#[test]
fn data_without_scales_are_named() {
    let said =
        |x: Array2<f64>, y: Array1<f64>| rbf_process(x.view(), y.view()).unwrap_err().to_string();
    let flat = said(Array2::zeros((3, 0)), Array1::zeros(3));
    assert!(
        flat.starts_with("`the number of columns of x` is 0"),
        "{flat}"
    );
    let huge = said(array![[0.0], [1.0]], array![0.0, 1e200]);
    assert!(
        huge.contains("variance of y") && huge.contains("scale the values"),
        "{huge}"
    );
    let huge = said(array![[0.0, 0.0], [0.0, 1e200]], array![0.0, 1.0]);
    assert!(huge.contains("variance of column 1 of x"), "{huge}");
    let large = said(array![[0.0, 0.0], [2e154, 2e154]], array![0.0, 1.0]);
    assert!(large.contains("variance of column 0 of x"), "{large}");
    for tiny in [1e-158, 1e-200] {
        let tiny = said(array![[0.0], [1.0]], array![0.0, tiny]);
        assert!(
            tiny.contains("variance of y") && tiny.contains("scale"),
            "{tiny}"
        );
    }
}
