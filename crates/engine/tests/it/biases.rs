//! Gradients of biases, however examples and heads share them.

use bochner_engine::ndarray::{Array, Array2, Array4, ArrayView, Dimension, Ix2, Ix4};
use bochner_engine::numerics::check::{assert_gradient, random};
use bochner_engine::{Bias, Error, Mask, Settings, Wanted, attend, attend_vjp};

fn has_its_gradient<D: Dimension>(
    numbers: Array<f64, D>,
    bias: impl Fn(ArrayView<f64, D>) -> Result<Bias<f64>, Error>,
) -> Result<(), Error> {
    let (q, cotangent) = (random([2, 2, 4, 3], "q"), random([2, 2, 4, 3], "cotangent"));
    let [k, v] = ["k", "v"].map(|name| random([2, 2, 6, 3], name));
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
    assert_gradient(&got, &numbers, |numbers| {
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
    })?;
    let columns = Array2::from_shape_fn((4, 6), |(i, j)| (i * j % 4) as u32);
    has_its_gradient::<Ix2>(random([2, 4], "table"), |numbers| {
        Bias::indexed(numbers, columns.view())
    })
}

#[test]
fn tables_have_the_columns_that_are_asked_for() {
    let table = Array2::<f32>::zeros((2, 4));
    let columns = Array2::from_elem((2, 2), 4);
    assert!(Bias::indexed(table.view(), columns.view()).is_err());
    assert!(Bias::by_distance(table.view(), 2, |_| 4).is_err());
    assert!(Bias::relative(table.view()).is_err());
    for wrong in [f32::NAN, f32::INFINITY] {
        assert!(Bias::fixed(Array4::from_elem([1, 1, 2, 2], wrong).view()).is_err());
        assert!(Bias::relative(Array2::from_elem((2, 3), wrong).view()).is_err());
    }
}
