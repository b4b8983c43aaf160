//! Biases: their gradients, pairs that they hide, and what does not fit.

use bochner_engine::ndarray::{Array, Array2, Array4, ArrayView, Dimension, Ix2, Ix4, s};
use bochner_engine::numerics::check::{assert_gradient, random};
use bochner_engine::{Bias, Error, Mask, Settings, Wanted, alibi_slopes, attend, attend_vjp};

fn has_its_gradient<D: Dimension>(
    numbers: Array<f64, D>,
    bias: impl Fn(ArrayView<f64, D>) -> Result<Bias<f64>, Error>,
) -> Result<(), Error> {
    [1, 2]
        .into_iter()
        .try_for_each(|kv_heads| has_its_gradient_with(kv_heads, &numbers, &bias))
}

fn has_its_gradient_with<D: Dimension>(
    kv_heads: usize,
    numbers: &Array<f64, D>,
    bias: impl Fn(ArrayView<f64, D>) -> Result<Bias<f64>, Error>,
) -> Result<(), Error> {
    let (q, cotangent) = (random([2, 2, 4, 3], "q"), random([2, 2, 4, 3], "cotangent"));
    let [k, v] = ["k", "v"].map(|name| random([2, kv_heads, 6, 3], name));
    let mask = Mask::causal().with_key_lengths(vec![6, 4]);
    let of = |numbers: ArrayView<f64, D>| {
        Ok::<_, Error>(Settings {
            bias: Some(bias(numbers)?),
            ..Settings::softmax(&mask)
        })
    };
    let settings = of(numbers.view())?;
    let (_, saved) = attend(&settings, q.view(), k.view(), v.view())?;
    let wanted = Wanted {
        bias: true,
        ..Wanted::default()
    };
    let all = attend_vjp(
        &settings,
        &saved,
        q.view(),
        k.view(),
        v.view(),
        cotangent.view(),
        wanted,
    )?;
    let got = all
        .bias
        .expect("it was wanted")
        .into_dimensionality::<D>()
        .expect("shaped as the numbers");
    assert_gradient(&got, numbers, |numbers| {
        let output = attend(&of(numbers).expect("finite"), q.view(), k.view(), v.view())
            .expect("as before")
            .0;
        (&output * &cotangent).sum()
    });
    // What is read of a pair is its number.
    let one = settings.bias.expect("set").at([1, 1, 2, 3], 2, [4, 6]);
    assert!(numbers.iter().any(|&x| x == one));
    Ok(())
}

#[test]
fn biases_have_their_gradients() -> Result<(), Error> {
    for shape in [[1, 1, 4, 6], [2, 1, 4, 6], [1, 2, 4, 6], [2, 2, 4, 6]] {
        has_its_gradient::<Ix4>(random(shape, "bias"), |numbers| Bias::fixed(numbers))?;
        // In another order of memory, too.
        let turned: Array4<f64> = random([shape[3], shape[2], shape[1], shape[0]], "bias");
        has_its_gradient::<Ix4>(turned.reversed_axes(), |numbers| Bias::fixed(numbers))?;
    }
    has_its_gradient::<Ix2>(random([2, 5], "table"), |numbers| Bias::relative(numbers))?;
    has_its_gradient::<Ix2>(random([2, 3], "table"), |numbers| {
        Bias::by_distance(numbers, 4, |d| d.unsigned_abs() as usize / 2)
    })
}

#[test]
fn tables_have_the_columns_that_are_asked_for() {
    let table = Array2::<f32>::zeros((2, 4));
    assert!(Bias::by_distance(table.view(), 2, |_| 4).is_err());
    assert!(Bias::relative(table.view()).is_err());
    for wrong in [f32::NAN, f32::INFINITY] {
        assert!(Bias::fixed(Array4::from_elem([1, 1, 2, 2], wrong).view()).is_err());
        assert!(Bias::relative(Array2::from_elem((2, 3), wrong).view()).is_err());
    }
}

/// Under causality and a matrix of its own, and whatever a hidden key and its value hold.
#[test]
fn minus_infinity_hides_a_pair() -> Result<(), Error> {
    let (q, cotangent) = (random([2, 2, 7, 3], "q"), random([2, 2, 7, 3], "cotangent"));
    let [mut k, mut v]: [Array4<f64>; 2] = ["k", "v"].map(|name| random([2, 2, 9, 3], name));
    k.slice_mut(s![.., .., 4, ..]).fill(f64::NAN);
    v.slice_mut(s![.., .., 4, ..]).fill(f64::NAN);
    let hidden = |i: usize, j: usize| j == 4 || (3 * i + j) % 4 == 1;
    let numbers = Array4::from_shape_fn([1, 1, 7, 9], |(_, _, i, j)| match hidden(i, j) {
        true => f64::NEG_INFINITY,
        false => 0.0,
    });
    for mask in [Mask::causal(), Mask::none()] {
        let biased = Settings {
            bias: Some(Bias::fixed(numbers.view())?),
            ..Settings::softmax(&mask)
        };
        let kept = Array2::from_shape_fn([7, 9], |(i, j)| {
            !hidden(i, j) && mask.keeps([0, 0, i, j], [7, 9])
        });
        let masked = Settings::softmax(&Mask::none().with_matrix(kept.view()));
        let run = |settings: &Settings<f64>| {
            let [q, k, v] = [&q, &k, &v].map(|x| x.view());
            let (output, saved) = attend(settings, q, k, v)?;
            let (cotangent, none) = (cotangent.view(), Wanted::default());
            let all = attend_vjp(settings, &saved, q, k, v, cotangent, none)?;
            Ok::<_, Error>([output.to_owned(), all.q, all.k, all.v])
        };
        for (got, want) in run(&biased)?.into_iter().zip(run(&masked)?) {
            assert!(
                got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-13),
                "{mask:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn slopes_are_those_of_the_paper() {
    assert_eq!(alibi_slopes(8)[..3], [0.5, 0.25, 0.125]);
    assert_eq!(alibi_slopes(1), [0.5_f64.powi(8)]);
    // Four heads of four, and the first and third of eight.
    let six = [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125];
    assert_eq!(alibi_slopes(6), six);
}

#[test]
fn biases_that_do_not_fit_are_named() {
    let x: Array4<f64> = random([2, 2, 3, 4], "x");
    let of = |bias| Settings {
        bias: Some(bias),
        ..Settings::softmax(&Mask::none())
    };
    let refused = |bias: Result<Bias<f64>, Error>| {
        let refused =
            bias.and_then(|bias| attend(&of(bias), x.view(), x.view(), x.view()).map(drop));
        refused.unwrap_err().to_string()
    };
    for shape in [[1, 1, 4, 3], [3, 1, 3, 3], [1, 3, 3, 3]] {
        let error = refused(Bias::fixed(Array4::zeros(shape).view()));
        assert!(error.contains("bias"), "{error}");
    }
    for table in [
        Array2::zeros([3, 5]),
        Array2::zeros([2, 4]),
        Array2::from_elem([2, 3], f64::NAN),
    ] {
        refused(Bias::relative(table.view()));
    }
    refused(Bias::fixed(
        Array4::from_elem([1, 1, 1, 1], f64::INFINITY).view(),
    ));
}
