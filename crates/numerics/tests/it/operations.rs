use bochner_numerics::operations::count;
use bochner_numerics::{Mat, MatMut, Operations, elementary, matmul, parallel};

fn product(m: usize, k: usize, n: usize) {
    let (a, b, mut c) = (vec![1.0_f32; m * k], vec![1.0; k * n], vec![0.0; m * n]);
    let c = MatMut::new(&mut c, m, n);
    matmul(1.0, Mat::new(&a, m, k), Mat::new(&b, k, n), 0.0, c);
}

#[test]
fn every_kind_is_counted_by_its_elements() {
    let ((), counted) = count(|| {
        product(2, 3, 5);
        let (mut x, mut y) = ([0.5_f64; 7], [0.0; 7]);
        elementary::exp_in_place(&mut x);
        elementary::normal_cdf_in_place(&mut y[..2]);
        elementary::normal_quantile_in_place(&mut y[..3]);
        let (sin, cos) = y.split_at_mut(3);
        elementary::sin_cos(&x[..3], sin, &mut cos[..3]);
    });
    let want = Operations {
        multiply_adds: 30,
        exponentials: 9,
        sines_cosines: 3,
        powers: 3,
    };
    assert_eq!(counted, want);
}

#[test]
fn the_work_of_all_threads_is_counted_once() {
    let work = || {
        parallel::map(50, |_| parallel::map(4, |n| product(1, n, 1)));
        parallel::for_each_chunk(&mut [0; 10], 3, |_, piece| product(piece.len(), 1, 1));
    };
    for threads in 1..4 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let ((), counted) = pool.build().unwrap().install(|| count(work));
        assert_eq!(counted, Operations::multiply_adds(50 * 6 + 10));
    }
}

#[test]
fn counts_do_not_see_each_other() {
    let counts = parallel::map(40, |i| {
        let work = || parallel::map(i, |_| product(1, 2, 3)).len();
        // The odd pieces of work are not counted, on the threads that count the even ones.
        if i % 2 == 0 {
            return count(work).1;
        }
        work();
        Operations::default()
    });
    for (i, counted) in counts.into_iter().enumerate() {
        let want = if i % 2 == 0 { 6 * i } else { 0 };
        assert_eq!(counted, Operations::multiply_adds(want));
    }
}

#[test]
fn a_count_inside_is_part_of_the_outer_and_ends_with_it() {
    let (inner, outer) = count(|| {
        product(1, 1, 1);
        count(|| product(2, 2, 2)).1
    });
    assert_eq!((inner.multiply_adds, outer.multiply_adds), (8, 9));
    let ((), around_a_panic) = count(|| {
        let panicked = std::panic::catch_unwind(|| count(|| panic!("stop")));
        assert!(panicked.is_err());
        product(1, 1, 1);
    });
    assert_eq!(around_a_panic.multiply_adds, 1);
}
