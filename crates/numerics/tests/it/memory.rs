use bochner_numerics::memory::*;
use bochner_numerics::{Mat, MatMut, matmul};

#[test]
fn pieces_make_up_the_whole() {
    for (n, size) in [(0, 3), (1, 3), (9, 3), (10, 3), (10, 20)] {
        let [ones, twos] = written_by([n, 2], |[ones, twos]| {
            for piece in ones.chunks(size).map(Unwritten::zeros) {
                piece.iter_mut().for_each(|x| *x += 1.0);
            }
            let (first, second) = twos.split_at(1);
            assert_eq!(second.copy_of(&[2.0]), [2.0]);
            first.zeros().fill(1.0);
        });
        assert_eq!((ones, twos), (vec![1.0; n], vec![1.0, 2.0]));
    }
}

#[test]
fn threads_write_pieces_of_their_own() {
    let [ones] = written_by([10], |[all]| {
        std::thread::scope(|scope| {
            for piece in all.chunks(4) {
                scope.spawn(|| piece.zeros().fill(1.0));
            }
        });
    });
    assert_eq!(ones, [1.0; 10]);
}

#[test]
fn large_pages_hold_what_was_there() {
    // In Miri there are no pages to ask for.
    let many = if cfg!(miri) { 5 << 8 } else { 5 << 20 };
    for n in [0, 1, many / 4, many] {
        assert_eq!(zeros::<f64>(n), vec![0.0; n]);
    }
}

#[test]
fn slices_are_copied_one_after_the_other() {
    for rows in 0..4 {
        let [copies] = written_by([2 * rows], |[all]| {
            all.copies_of(std::iter::repeat([1.0, 2.0].as_slice()));
        });
        assert_eq!(copies, [1.0, 2.0].repeat(rows));
    }
    let [copies] = written_by([3], |[all]| {
        all.copies_of([[1.0].as_slice(), &[2.0, 3.0], &[4.0]]);
    });
    assert_eq!(copies, [1.0, 2.0, 3.0]);
}

#[test]
#[should_panic(expected = "numbers to copy")]
fn slices_fill_the_memory() {
    let _ = written_by::<f32, 1>([3], |[all]| {
        all.copies_of([[1.0].as_slice(), &[2.0]]);
    });
}

#[test]
#[should_panic(expected = "numbers to copy")]
fn slices_have_numbers() {
    let _ = written_by::<f32, 1>([3], |[all]| {
        all.copies_of(std::iter::repeat([].as_slice()));
    });
}

/// The product of these sizes is two once it has overflowed.
#[test]
#[should_panic(expected = "a matrix of")]
fn sizes_that_overflow_are_noticed() {
    let rows = usize::MAX / 3 + 1;
    assert_eq!(rows.wrapping_mul(3), 2);
    Mat::new(&[1.0, 2.0], rows, 3);
}

#[test]
#[should_panic]
fn slices_end_where_the_memory_does() {
    let _ = written_by::<f32, 1>([3], |[all]| {
        all.copies_of([[1.0, 2.0].as_slice(), &[3.0, 4.0]]);
    });
}

#[test]
fn a_product_takes_memory_as_it_is() {
    for (m, k, n) in [
        (0, 2, 3),
        (2, 0, 3),
        (2, 3, 0),
        (1, 1, 1),
        (7, 5, 37),
        (3, 400, 2),
    ] {
        let numbers = |n: usize| (0..n).map(|i| (i % 5) as f64 - 2.0).collect::<Vec<_>>();
        let (a, b) = (numbers(m * k), numbers(k * n));
        let (a, b) = (Mat::new(&a, m, k), Mat::new(&b, k, n));
        let mut want = vec![f64::NAN; m * n];
        matmul(1.0, a, b, 0.0, MatMut::new(&mut want, m, n));
        let [got] = written_by([m * n], |[all]| {
            all.product(a, b);
        });
        assert_eq!(got, want);
    }
}

#[test]
#[should_panic(expected = "numbers of the product")]
fn a_product_has_as_many_numbers() {
    let _ = written_by::<f32, 1>([3], |[all]| {
        all.product(Mat::new(&[1.0], 1, 1), Mat::new(&[1.0, 2.0], 1, 2));
    });
}

#[test]
#[should_panic(expected = "numbers to copy")]
fn a_copy_has_as_many_numbers() {
    let _ = written_by::<f32, 1>([2], |[all]| {
        all.copy_of(&[1.0]);
    });
}

#[test]
fn numbers_are_written_over() {
    let mut numbers = [1.0, 2.0, 3.0];
    let lengths = overwritten_by(&mut numbers, |all| {
        let (first, rest) = all.split_at(1);
        let lengths = [first.len(), rest.len()];
        first.zeros();
        rest.copy_of(&[4.0, 5.0]);
        lengths
    });
    assert_eq!((numbers, lengths), ([0.0, 4.0, 5.0], [1, 2]));
}

#[test]
fn a_vector_is_written_into_its_own_memory() {
    let mut vector = vec![1.0; 5];
    let place = vector.as_ptr();
    vector.clear();
    written_into(&mut vector, 3, |all| {
        let (first, rest) = all.split_at(1);
        first.zeros();
        rest.copy_of(&[2.0, 3.0]);
    });
    assert_eq!(
        (&vector[..], vector.as_ptr()),
        (&[0.0, 2.0, 3.0][..], place)
    );
    vector.clear();
    written_into(&mut vector, 9, |all| all.zeros().fill(4.0));
    assert_eq!(vector, [4.0; 9]);
}

#[test]
#[should_panic(expected = "numbers written")]
fn a_vector_that_is_not_written_is_noticed() {
    written_into::<f32>(&mut Vec::new(), 2, |all| {
        all.split_at(1).0.zeros();
    });
}

#[test]
#[should_panic(expected = "numbers written")]
fn a_piece_that_is_not_written_over_is_noticed() {
    overwritten_by(&mut [1.0, 2.0], |all| {
        all.split_at(1).1.zeros();
    });
}

#[test]
#[should_panic(expected = "numbers written")]
fn an_unwritten_piece_is_noticed() {
    let _: [Vec<f32>; 1] = written_by([10], |[all]| {
        all.chunks(4).skip(1).for_each(|piece| {
            piece.zeros();
        });
    });
}
