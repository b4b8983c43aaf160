//! A kernel as data: every kernel and composition of this crate in one type that serde reads and writes.

use crate::testing::{gradients_agree, parts, values_are_replaced_or_refused};
use bochner_kernels::{AnyKernel, ColumnsConfig, Kernel, ScaleConfig};
use bochner_numerics::check::random;

#[test]
fn operators_make_one_flat_sum_and_one_flat_product() {
    let [a, b, c]: [AnyKernel<f64>; 3] = parts().try_into().unwrap();
    let (x, y) = (random((4, 3), "x"), random((5, 3), "y"));
    let gram = |kernel: &AnyKernel<f64>| kernel.gram(x.view(), y.view()).unwrap();
    let (a, b, c) = (&a, &b, &c);
    let sum = a.clone() + b.clone() + c.clone();
    assert_eq!(gram(&sum), gram(a) + gram(b) + gram(c));
    assert!(matches!(&sum, AnyKernel::Sum(sum) if sum.parts().len() == 3));
    let product = a.clone() * (b.clone() * c.clone());
    assert_eq!(gram(&product), gram(a) * gram(b) * gram(c));
    assert!(matches!(&product, AnyKernel::Product(product) if product.parts().len() == 3));
    let mut both = a.clone() * b.clone() + c.clone();
    assert_eq!(gram(&both), gram(a) * gram(b) + gram(c));
    gradients_agree(&mut both, &x, &y);
    values_are_replaced_or_refused(&mut both);
}

#[test]
fn a_kernel_from_outside_computes_but_is_not_written() {
    let base = AnyKernel::Custom(Box::new(parts().remove(0)));
    let kernel: AnyKernel<f64> = ScaleConfig {
        variance: 2.0,
        base,
    }
    .build()
    .unwrap()
    .into();
    let x = random((4, 3), "x");
    let want = parts()[0].gram(x.view(), x.view()).unwrap() * 2.0;
    assert_eq!(kernel.gram(x.view(), x.view()).unwrap(), want);
    let refused = serde_json::to_string(&kernel).unwrap_err().to_string();
    assert!(refused.contains("Custom"), "{refused}");
}

#[test]
fn the_names_are_those_of_files() {
    let unknown = serde_json::from_str::<AnyKernel<f64>>(r#"{"wavelet": {}}"#).unwrap_err();
    let names = AnyKernel::<f64>::NAMES.join("`, `");
    let said = unknown.to_string();
    assert!(
        said.contains(&format!("expected one of `{names}` at")),
        "{said}"
    );
}

#[test]
fn what_is_written_is_read_again() {
    let (columns, base) = (vec![2, 0, 1], parts().remove(0));
    let columns = ColumnsConfig { columns, base }.build().unwrap();
    let base = columns * parts().remove(1);
    let scaled = ScaleConfig {
        variance: 1.7,
        base,
    }
    .build()
    .unwrap();
    let kernel = scaled + parts().remove(2);
    let text = serde_json::to_string(&kernel).unwrap();
    let read: AnyKernel<f64> = serde_json::from_str(&text).unwrap();
    let (x, y) = (random((4, 3), "x"), random((5, 3), "y"));
    assert_eq!(
        kernel.gram(x.view(), y.view()),
        read.gram(x.view(), y.view())
    );
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}
