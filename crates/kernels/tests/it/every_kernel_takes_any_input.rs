//! A kernel does not depend on the layout, the precision and the number of its inputs.

use crate::kernels::with_compositions;
use crate::testing::{gradients_agree, values_are_replaced_or_refused};
use bochner_kernels::{
    AnyKernel, ColumnsConfig, ExpsinConfig, GramGradients, Kernel, Lengthscale, LinearConfig,
    MaternConfig, PolynomialConfig, RationalQuadraticConfig, RbfConfig, Smoothness,
};
use bochner_numerics::check::random;
use bochner_numerics::{Real, Tolerance};
use ndarray::{Array2, Axis, array, concatenate, s};

fn all<T: Real>() -> Vec<AnyKernel<T>> {
    let mut all = with_compositions(0.8, 1.3);
    let expsin = ExpsinConfig {
        period: T::of(1.7),
        lengthscale: Lengthscale::Shared(T::of(0.9)),
    };
    all.push(expsin.build().unwrap().into());
    all
}

/// The kernels with other settings, whose gradients take other paths.
fn variants() -> Vec<AnyKernel<f64>> {
    let mut variants: Vec<AnyKernel<f64>> = Vec::new();
    for (shared, alpha) in [(1.3, 0.7), (20.0, 40.0)] {
        let lengthscale = Lengthscale::Shared(shared);
        let rational = RationalQuadraticConfig {
            lengthscale: lengthscale.clone(),
            alpha,
        };
        let linear = LinearConfig {
            lengthscale: lengthscale.clone(),
        };
        variants.extend([
            rational.build().unwrap().into(),
            linear.build().unwrap().into(),
            RbfConfig { lengthscale }.build().unwrap().into(),
        ]);
    }
    for smoothness in Smoothness::ALL {
        let lengthscale = Lengthscale::Shared(1.3);
        let config = MaternConfig {
            smoothness,
            lengthscale,
        };
        variants.push(config.build().unwrap().into());
    }
    let each = || Lengthscale::PerDimension(vec![0.7, 1.9]);
    for degree in [1, 3] {
        let config = PolynomialConfig {
            lengthscale: each(),
            offset: 0.8,
            degree,
        };
        variants.push(config.build().unwrap().into());
    }
    let expsin = ExpsinConfig {
        period: 1.7,
        lengthscale: each(),
    };
    variants.push(expsin.build().unwrap().into());
    // A column that is seen twice takes both gradients.
    for columns in [vec![1, 0], vec![0, 0]] {
        let base = RbfConfig {
            lengthscale: each(),
        };
        let base = base.build().unwrap().into();
        variants.push(ColumnsConfig { columns, base }.build().unwrap().into());
    }
    variants
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for mut kernel in all().into_iter().chain(variants()) {
        gradients_agree(&mut kernel, &random((4, 2), "x"), &random((5, 2), "y"));
        values_are_replaced_or_refused(&mut kernel);
    }
}

/// A copy in column-major order.
fn turned(x: &Array2<f64>) -> Array2<f64> {
    x.t().as_standard_layout().into_owned().reversed_axes()
}

#[test]
fn the_memory_layout_does_not_matter() {
    let (x, y, g) = (
        random((3, 2), "x"),
        random((4, 2), "y"),
        random((3, 4), "g"),
    );
    let (tx, ty, tg) = (turned(&x), turned(&y), turned(&g));
    for kernel in all() {
        assert_eq!(
            kernel.gram(x.view(), y.view()),
            kernel.gram(tx.view(), ty.view())
        );
        assert_eq!(
            kernel.gram_vjp(x.view(), y.view(), g.view()),
            kernel.gram_vjp(tx.view(), ty.view(), tg.view()),
            "{kernel:?}"
        );
    }
}

#[test]
fn the_value_is_an_entry_of_the_matrix() {
    let (x, y) = (random((3, 2), "x"), random((4, 2), "y"));
    for kernel in all::<f64>() {
        let k = kernel.gram(x.view(), y.view()).unwrap();
        let value = kernel.value(x.row(2), y.row(1)).unwrap();
        assert!(
            (value - k[[2, 1]]).abs() <= 1e-15 * value.abs(),
            "{kernel:?}"
        );
    }
}

#[test]
fn no_points_give_no_entries_and_zero_gradients() {
    let (none, y) = (random::<f64, _>((0, 2), "none"), random((4, 2), "y"));
    for kernel in all() {
        assert_eq!(kernel.gram(none.view(), y.view()).unwrap().dim(), (0, 4));
        for (left, right) in [(&none, &y), (&y, &none), (&none, &none)] {
            let g = Array2::zeros((left.nrows(), right.nrows()));
            let vjp = kernel
                .gram_vjp(left.view(), right.view(), g.view())
                .unwrap();
            let count = kernel.parameters().len();
            assert_eq!(vjp.parameters, vec![0.0; count], "{kernel:?}");
            assert_eq!(vjp.y, Array2::<f64>::zeros(right.dim()));
        }
    }
}

#[test]
fn a_row_that_is_not_finite_spoils_no_other() {
    let (mut x, y) = (random::<f64, _>((5, 2), "x"), random((4, 2), "y"));
    for kernel in all() {
        let want = kernel.gram(x.view(), y.view()).unwrap();
        let kept = x.row(2).to_owned();
        x.row_mut(2).fill(f64::NAN);
        let got = kernel.gram(x.view(), y.view()).unwrap();
        x.row_mut(2).assign(&kept);
        for i in 0..5 {
            if i == 2 {
                assert!(got.row(i).iter().all(|k| k.is_nan()), "{kernel:?}");
            } else {
                assert_eq!(got.row(i), want.row(i), "{kernel:?}");
            }
        }
    }
}

#[test]
fn coincident_points_have_finite_gradients() {
    let x = array![[0.3, -0.4], [0.3, -0.4], [1.0, 2.0]];
    let g = random::<f64, _>((3, 3), "g");
    for kernel in all() {
        let GramGradients { x, y, parameters } =
            kernel.gram_vjp(x.view(), x.view(), g.view()).unwrap();
        let all = x.iter().chain(&y).chain(&parameters);
        assert!(all.into_iter().all(|g| g.is_finite()), "{kernel:?}");
    }
}

#[test]
fn a_constant_column_adds_nothing_to_a_distance() {
    let scaled = |lengthscales: &[f64]| -> [AnyKernel<f64>; 2] {
        let lengthscale = Lengthscale::PerDimension(lengthscales.to_vec());
        let matern = MaternConfig {
            smoothness: Smoothness::ThreeHalves,
            lengthscale: lengthscale.clone(),
        };
        let rbf = RbfConfig { lengthscale };
        [rbf.build().unwrap().into(), matern.build().unwrap().into()]
    };
    let (x, y) = (random((3, 1), "x"), random((4, 1), "y"));
    let [wide_x, wide_y] = [&x, &y].map(|points| {
        let constant = Array2::from_elem(points.dim(), 7.0);
        concatenate![Axis(1), points.view(), constant]
    });
    let g = random((3, 4), "g");
    for (with, without) in scaled(&[0.9, 1.4]).iter().zip(&scaled(&[0.9])) {
        assert_eq!(
            with.gram(wide_x.view(), wide_y.view()),
            without.gram(x.view(), y.view())
        );
        let vjp = with.gram_vjp(wide_x.view(), wide_y.view(), g.view());
        assert_eq!(vjp.unwrap().parameters[1], 0.0, "{with:?}");
    }
}

#[test]
fn single_precision_is_as_close_as_it_can_be() {
    let (x, y, g) = (
        random((3, 2), "x"),
        random((4, 2), "y"),
        random((3, 4), "g"),
    );
    let [sx, sy, sg] = [&x, &y, &g].map(|a: &Array2<f64>| a.mapv(|v| v as f32));
    let (outputs, gradients) = (Tolerance::outputs::<f32>(), Tolerance::gradients::<f32>());
    let close = |tolerance: Tolerance, got: &[f32], want: &[f64]| {
        let bound = tolerance.bound(want.iter().copied());
        let mut pairs = got.iter().zip(want);
        got.len() == want.len() && pairs.all(|(g, w)| (f64::from(*g) - w).abs() <= bound)
    };
    for (single, double) in all::<f32>().into_iter().zip(all::<f64>()) {
        let got = single.gram(sx.view(), sy.view()).unwrap();
        let want = double.gram(x.view(), y.view()).unwrap();
        let (got, want) = (got.as_slice().unwrap(), want.as_slice().unwrap());
        assert!(close(outputs, got, want), "{single:?}");
        let got = single.gram_vjp(sx.view(), sy.view(), sg.view()).unwrap();
        let want = double.gram_vjp(x.view(), y.view(), g.view()).unwrap();
        for (got, want) in [(&got.x, &want.x), (&got.y, &want.y)] {
            let (got, want) = (got.as_slice().unwrap(), want.as_slice().unwrap());
            assert!(close(gradients, got, want), "{single:?}");
        }
        assert!(
            close(gradients, &got.parameters, &want.parameters),
            "{single:?}"
        );
    }
}

/// Numbers so large that intermediate results overflow: a kernel refuses them by name or gives numbers.
#[test]
fn no_nan_comes_out_of_finite_points() {
    fn holds<T: Real>(large: [f64; 2]) {
        let numbers = [0.0, 1.0, -large[0], large[1]].map(T::of);
        let points = Array2::from_shape_fn((16, 2), |(i, n)| numbers[[i / 4, i % 4][n]]);
        let kernels: Vec<AnyKernel<T>> = all();
        let mut products: Vec<AnyKernel<T>> = all();
        for (i, a) in kernels.iter().enumerate() {
            for b in &kernels[..i] {
                products.push(a.clone() * b.clone());
            }
        }
        let rows = (0..16).step_by(3).map(|i| points.slice(s![i..=i, ..]));
        let rows: Vec<_> = rows.chain([points.view()]).collect();
        for kernel in &products {
            let mut given = 0;
            for g in [T::zero(), T::one(), T::of(-large[0])] {
                for (x, y) in rows.iter().flat_map(|x| rows.iter().map(move |y| (*x, *y))) {
                    let g = Array2::from_elem((x.nrows(), y.nrows()), g);
                    let (Ok(k), Ok(got)) = (kernel.gram(x, y), kernel.gram_vjp(x, y, g.view()))
                    else {
                        continue;
                    };
                    given += 1;
                    let mut all = (got.x.iter().chain(&got.y))
                        .chain(&got.parameters)
                        .chain(&k);
                    assert!(
                        all.all(|v| !v.is_nan()),
                        "{kernel:?}, {x}, {y}, {g}: {k}, {got:?}"
                    );
                }
            }
            assert!(given > 0, "{kernel:?} refuses all points");
        }
    }
    holds::<f64>([1e160, 1.7e308]);
    holds::<f32>([1e20, 3e38]);
}
