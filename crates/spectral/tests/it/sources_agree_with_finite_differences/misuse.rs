//! Errors of sources that are given what does not fit them.

use super::*;

/// The copula would speak of a factor that the caller has never seen.
#[test]
fn nan_is_named_where_it_was_given() {
    let source = Implicit::default();
    let problem = Problem::new(&source);
    let named = |problem: &Problem, start: &str| {
        let drawn = source.draw(
            &problem.features(),
            &problem.parameters,
            problem.noise.clone(),
        );
        let error = drawn.unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    };
    let mut bad = problem.clone();
    bad.q[[1, 0, 2, 1]] = f64::NAN;
    named(&bad, "`q` is NaN at [1, 0, 2, 1]");
    let mut bad = problem.clone();
    bad.k[[0, 2, 3, 0]] = f64::INFINITY;
    named(&bad, "`k` is inf at [0, 2, 3, 0]");
    let mut bad = problem.clone();
    bad.parameters[0] = f64::NAN;
    named(&bad, "`parameter inference.weight1` is NaN at [0, 0]");
    // A position that does not count may hold anything.
    let mut padded = problem.clone();
    padded.k[[0, 0, 2, 0]] = f64::NAN;
    assert_eq!(padded.draw(&source).points, problem.draw(&source).points);
}

/// The backward pass takes the draw of this source for these features and parameters, and no other.
#[test]
fn a_foreign_draw_is_refused() {
    for source in sources() {
        let source = source.as_ref();
        let problem = Problem::new(source);
        let drawn = problem.draw(source);
        let vjp = |problem: &Problem| {
            let (features, cotangents) = (problem.features(), cotangents(&drawn));
            source.draw_vjp(&features, &problem.parameters, &drawn, cotangents)
        };
        assert!(vjp(&problem).is_ok());
        if drawn.latent.is_none() {
            continue;
        }
        let mut other = problem.clone();
        other.parameters[0] += 0.5;
        assert_eq!(vjp(&other), Err(Error::ForeignDraw), "{source:?}");
        if format!("{source:?}").contains("Inferred") {
            let mut other = problem.clone();
            other.k[[0, 1, 0, 1]] += 0.5;
            assert_eq!(vjp(&other), Err(Error::ForeignDraw), "{source:?}");
        }
    }
    let [three, four] = [3, 4].map(|points| Direct {
        points,
        ..Direct::default()
    });
    let (of_three, of_four) = (Problem::new(&three), Problem::new(&four));
    let drawn = of_three.draw(&three);
    let got = four.draw_vjp(
        &of_four.features(),
        &of_four.parameters,
        &drawn,
        cotangents(&drawn),
    );
    assert_eq!(got, Err(Error::ForeignDraw));
}

#[test]
fn a_cotangent_of_no_entropy_is_refused() {
    for source in sources() {
        let (source, problem) = (source.as_ref(), Problem::new(source.as_ref()));
        let drawn = problem.draw(source);
        let mut given = cotangents(&drawn);
        if given.entropy.is_some() {
            continue;
        }
        given.entropy = Some(Array1::ones(BATCH));
        let got = source.draw_vjp(&problem.features(), &problem.parameters, &drawn, given);
        let error = got.unwrap_err().to_string();
        assert!(error.contains("entropy"), "{error}");
    }
}

#[test]
fn points_that_are_parameters_take_no_noise_and_read_shapes_alone() {
    let source = Direct {
        points: 4,
        ..Direct::default()
    };
    let problem = Problem::new(&source);
    let noise = Array4::zeros((BATCH, SIZE.heads, 1, SIZE.width));
    let error = source
        .draw(&problem.features(), &problem.parameters, noise)
        .unwrap_err();
    assert!(
        error.to_string().starts_with("`noise` has shape"),
        "{error}"
    );
    let k: Array4<f64> = Array4::zeros((BATCH, SIZE.heads + 1, 4, SIZE.width));
    let features = Features::new(problem.q.view(), k.view());
    let error = source.draw(&features, &problem.parameters, problem.noise.clone());
    assert!(error.unwrap_err().to_string().starts_with("`k` has shape"));
}

#[test]
fn sizes_of_zero_have_no_initial_values() {
    for source in sources() {
        for (size, name) in [
            (Size { heads: 0, ..SIZE }, "`heads` is 0"),
            (Size { width: 0, ..SIZE }, "`width` is 0"),
        ] {
            let got = source.initial(size, &mut Seed::new(1).stream("start"));
            let error = got.unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
