use bochner_numerics::argument::*;

#[test]
fn the_first_element_that_is_not_finite_is_found_by_its_index() {
    let mut values = [0.0; 24];
    assert_eq!(finite("x", &[2, 3, 4], &values), Ok(()));
    values[17] = f64::INFINITY;
    values[23] = f64::NAN;
    let Err(ArgumentError::NotFinite { index, got, .. }) = finite("x", &[2, 3, 4], &values) else {
        panic!("infinity is finite");
    };
    assert_eq!((index, got), (vec![1, 1, 1], f64::INFINITY));
}

#[test]
fn ranges_end_where_they_say() {
    assert!(positive("x", f64::MIN_POSITIVE).is_ok() && non_negative("x", -0.0).is_ok());
    assert!(rate("x", 0.0).is_ok() && rate("x", 0.999).is_ok());
    for wrong in [f64::NAN, f64::INFINITY, -1e-300] {
        assert!(positive("x", wrong).is_err() && non_negative("x", wrong).is_err());
        assert!(rate("x", wrong).is_err());
    }
    assert!(positive("x", 0.0).is_err() && rate("x", 1.0).is_err());
    assert!(index("x", 2, 3).is_ok() && index("x", 3, 3).is_err());
    assert!(at_least_one("x", 1).is_ok() && at_least_one("x", 0).is_err());
    assert!(not_empty("x", &[]).is_ok() && not_empty("x", &[1, 0]).is_err());
    assert!(shape("x", &[1, 2], &[1, 2]).is_ok() && shape("x", &[1, 2], &[2, 1]).is_err());
    assert!(heads(1, 6).is_ok() && heads(6, 6).is_ok());
    assert!([0, 4, 12].map(|count| heads(count, 6).is_err()) == [true; 3]);
}

#[test]
fn tiny_numbers_are_printed_shortly() {
    let error = positive("sigma", -1e-300).unwrap_err().to_string();
    assert_eq!(error, "`sigma` is -1e-300, but must be finite and above 0");
}

#[test]
fn counts_and_lengths_are_printed_as_such() {
    let error = in_range(false, "points", 3.0, "even")
        .unwrap_err()
        .to_string();
    assert_eq!(error, "`points` is 3, but must be even");
    let error = shape("inputs", &[3], &[2]).unwrap_err().to_string();
    let start = "`inputs` has length 2, but must have length 3: ";
    assert!(
        error.starts_with(start) && !error.contains("axes"),
        "{error}"
    );
}

#[test]
fn errors_know_their_argument() {
    let errors = [
        shape("x", &[1], &[2]),
        at_least_one("x", 0),
        positive("x", 0.0),
        finite("x", &[1], &[f64::NAN]),
        index("x", 1, 1),
    ];
    assert!(
        errors
            .map(Result::unwrap_err)
            .iter()
            .all(|error| error.name() == "x")
    );
}
