//! A kernel of some columns of the points.

use crate::testing::{parts, refused};
use bochner_kernels::{Columns, ColumnsConfig, Kernel};
use bochner_numerics::check::random;
use ndarray::{Array2, Axis};

fn columns(columns: &[usize]) -> Columns<f64> {
    let (columns, base) = (columns.to_vec(), parts().remove(0));
    ColumnsConfig { columns, base }.build().unwrap()
}

#[test]
fn it_is_the_kernel_of_these_columns() {
    let (x, y) = (random((4, 5), "x"), random((6, 5), "y"));
    let [few_x, few_y] = [&x, &y].map(|x: &Array2<f64>| x.select(Axis(1), &[4, 0, 1]));
    let want = parts()[0].gram(few_x.view(), few_y.view());
    assert_eq!(columns(&[4, 0, 1]).gram(x.view(), y.view()), want);
}

#[test]
fn columns_that_are_not_there_are_refused() {
    let x = random((2, 3), "x");
    assert_eq!(
        refused(columns(&[0, 1, 3]).gram(x.view(), x.view())),
        "columns"
    );
    let (columns, base) = (Vec::new(), parts().remove(0));
    assert_eq!(refused(ColumnsConfig { columns, base }.build()), "columns");
}
