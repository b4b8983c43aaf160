use bochner_numerics::product::Right;
use bochner_numerics::{Mat, MatMut, Panels, Real, Seed, matmul, standard_normal};

/// The sizes of blocks in `product`, and the smaller ones that it has in Miri.
const TERMS: usize = if cfg!(miri) { 6 } else { 384 };
const ROWS: usize = if cfg!(miri) { 13 } else { 240 };
const FAR: usize = if cfg!(miri) { 4 } else { 512 };
const ENOUGH: usize = if cfg!(miri) { 5 } else { 32 };

fn random<T: Real>(n: usize, purpose: &str) -> Vec<T> {
    if cfg!(miri) {
        // In Miri a draw takes milliseconds.
        let first = usize::from(purpose.as_bytes()[0]);
        let number = |i| T::of((37 * i % 101) as f64 / 50.0 - 1.0);
        return (first..first + n).map(number).collect();
    }
    let mut stream = Seed::new(1).stream(purpose);
    (0..n).map(|_| standard_normal(&mut stream)).collect()
}

/// A matrix of shape `[rows, cols]`, as it is or as a transposed view.
fn view<T>(data: &[T], rows: usize, cols: usize, transposed: bool) -> Mat<'_, T> {
    match transposed {
        true => Mat::new(data, cols, rows).t(),
        false => Mat::new(data, rows, cols),
    }
}

/// Shapes around the edges of tiles, panels, blocks of rows and runs of terms of every instruction set.
const SHAPES: &[(usize, usize, usize)] = if cfg!(miri) {
    &[
        (1, 1, 1),
        (3, 2, 40),
        (12, 1, 32),
        (11, 1, 33),
        (ENOUGH, 3, FAR + 1),
        (ROWS + 1, FAR + 3, 17),
    ]
} else {
    &[
        (1, 1, 1),
        (3, 5, 2),
        (17, 33, 9),
        (12, 8, 32),
        (64, 40, 70),
        (11, 3, 33),
        (13, 6, 8),
        (25, 6, 4),
        (ROWS + 5, 7, 16),
        (5, TERMS + 3, 31),
        (ENOUGH, 4, FAR + 1),
        (ROWS + 1, FAR + 3, 33),
    ]
};

fn agrees_with_the_definition<T: Real>(tolerance: f64) {
    let (alpha, beta) = (T::of(0.5), T::of(-2.0));
    for &(m, k, n) in SHAPES {
        let (a, b): (Vec<T>, Vec<T>) = (random(m * k, "a"), random(k * n, "b"));
        let c: Vec<T> = random(m * n, "c");
        for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
            let (left, right) = (view(&a, m, k, ta), view(&b, k, n, tb));
            let sum = |i, j| -> f64 {
                (0..k)
                    .map(|l| left.get(i, l).as_f64() * right.get(l, j).as_f64())
                    .sum()
            };
            let sums: Vec<_> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
            let mut got = c.clone();
            matmul(alpha, left, right, beta, MatMut::new(&mut got, m, n));
            for (at, got) in got.iter().enumerate() {
                let want = 0.5 * sums[at] - 2.0 * c[at].as_f64();
                let error = (got.as_f64() - want).abs();
                assert!(error < tolerance, "{m} x {k} x {n}: {error}");
            }
        }
    }
}

#[test]
fn products_agree_with_the_definition() {
    agrees_with_the_definition::<f32>(1e-4);
    agrees_with_the_definition::<f64>(1e-12);
}

/// The bits of rows and columns of a product are those of the product of rows and columns.
#[test]
fn packing_and_cutting_change_no_bit() {
    let (m, more, panels) = if cfg!(miri) { (14, 1, 1) } else { (30, 9, 3) };
    let (k, n) = (TERMS + more, panels * Panels::<f32>::ALIGNMENT + 7);
    let (a, b): (Vec<f32>, Vec<f32>) = (random(m * k, "a"), random(k * n, "b"));
    let (left, right) = (Mat::new(&a, m, k), Mat::new(&b, k, n));
    let product = |left: Mat<f32>, right: Right<f32>, n: usize| {
        let m = left.shape().0;
        let mut c = vec![f32::NAN; m * n];
        matmul(1.0, left, right, 0.0, MatMut::new(&mut c, m, n));
        c
    };
    let whole = product(left, right.into(), n);
    let panels = Panels::new(right);
    assert_eq!(product(left, (&panels).into(), n), whole);
    let (rows, columns) = (5..m - 2, Panels::<f32>::ALIGNMENT..n - 3);
    let part = product(
        left.row_range(rows.clone()),
        panels.columns(columns.clone()).into(),
        columns.len(),
    );
    let row = |i: usize| &whole[i * n..][columns.clone()];
    assert_eq!(part, rows.map(row).collect::<Vec<_>>().concat());
}

#[test]
fn nothing_is_packed_at_first() {
    let panels = Panels::<f64>::default();
    assert_eq!(panels.shape(), (0, 0));
    matmul(
        1.0,
        Mat::new(&[], 3, 0),
        &panels,
        0.0,
        MatMut::new(&mut [], 3, 0),
    );
}

#[test]
fn columns_can_be_appended_and_cut_off() {
    let (rows, columns) = (5, 2 * Panels::<f64>::ALIGNMENT + 3);
    let x: Vec<f64> = random(columns * rows, "x");
    let part = |range: std::ops::Range<usize>| Mat::new(&x, columns, rows).row_range(range).t();
    let ones = [1.0; 5];
    let sums = |panels: &Panels<f64>| {
        let mut sums = vec![0.0; panels.shape().1];
        let target = MatMut::new(&mut sums, 1, panels.shape().1);
        matmul(1.0, Mat::new(&ones, 1, rows), panels, 0.0, target);
        sums
    };
    let whole = sums(&Panels::new(part(0..columns)));
    let mut panels = Panels::default();
    for cut in [0, 7, columns, 33] {
        panels.truncate(cut);
        for start in (panels.shape().1..columns).step_by(11) {
            panels.append(part(start..(start + 11).min(columns)));
        }
        assert_eq!(
            (panels.shape(), sums(&panels)),
            ((rows, columns), whole.clone())
        );
    }
    // The first ones can go, too; what follows is appended as before.
    let first = Panels::<f64>::ALIGNMENT;
    panels.remove_first(first, columns);
    assert_eq!(panels.shape(), (rows, columns - first));
    assert_eq!(sums(&panels), whole[first..]);
    panels.remove_first(first, columns);
    panels.append(part(0..columns));
    let want = [&whole[2 * first..], &whole[..]].concat();
    assert_eq!(sums(&panels), want);
}

#[test]
fn marked_columns_are_kept_in_order() {
    let columns = 2 * Panels::<f64>::ALIGNMENT + 3;
    let x: Vec<f64> = random(columns * 2, "x");
    let matrix = Mat::new(&x, columns, 2);
    for modulus in [1, 2, 5, columns] {
        let marks: Vec<bool> = (0..columns).map(|j| j % modulus == 0).collect();
        let mut panels = Panels::new(matrix.t());
        panels.keep(&marks);
        // What follows is appended as before.
        panels.append(matrix.row_range(0..4).t());
        let kept = (0..columns).filter(|&j| marks[j]).chain(0..4);
        let want: Vec<f64> = kept.map(|j| x[2 * j] - x[2 * j + 1]).collect();
        assert_eq!(panels.shape(), (2, want.len()));
        let mut got = vec![0.0; want.len()];
        let target = MatMut::new(&mut got, 1, want.len());
        matmul(1.0, Mat::new(&[1.0, -1.0], 1, 2), &panels, 0.0, target);
        assert_eq!(got, want);
    }
}

#[test]
#[should_panic(expected = "the first 33 columns of 40")]
fn panels_are_not_taken_apart() {
    let mut panels = Panels::new(Mat::new(&[1.0; 40], 1, 40));
    panels.remove_first(33, 0);
}

#[test]
fn zero_beta_does_not_read_the_target() {
    for n in [1, 40] {
        let mut c = vec![f32::NAN; n];
        let (a, b) = ([2.0], vec![3.0; n]);
        let target = MatMut::new(&mut c, 1, n);
        matmul(1.0, Mat::new(&a, 1, 1), Mat::new(&b, 1, n), 0.0, target);
        assert!(c.iter().all(|&x| x == 6.0));
    }
}

#[test]
fn without_terms_the_target_is_scaled() {
    let mut c = [1.0, f64::NAN];
    let nothing = Mat::new(&[], 1, 0);
    matmul(
        1.0,
        nothing,
        Mat::new(&[], 0, 1),
        2.0,
        MatMut::new(&mut c[..1], 1, 1),
    );
    matmul(
        1.0,
        nothing,
        Mat::new(&[], 0, 1),
        0.0,
        MatMut::new(&mut c[1..], 1, 1),
    );
    assert_eq!(c, [2.0, 0.0]);
}

#[test]
#[should_panic(expected = "inner dimensions")]
fn shapes_that_do_not_fit_are_refused() {
    let mut c = [0.0];
    matmul(
        1.0,
        Mat::new(&[1.0, 2.0], 1, 2),
        Mat::new(&[1.0], 1, 1),
        0.0,
        MatMut::new(&mut c, 1, 1),
    );
}
