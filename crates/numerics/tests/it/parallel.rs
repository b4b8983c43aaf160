use bochner_numerics::Buffers;
use bochner_numerics::parallel::{self, awake, map};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;

fn pool(threads: usize) -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap()
}

/// More numbers than one thread looks through by itself, see `parallel::max_norm`.
const PIECE: usize = if cfg!(miri) { 1 << 5 } else { 1 << 16 };

const STEPS: usize = if cfg!(miri) { 1 } else { 50 };

/// Steps of parallel sections within parallel sections.
fn steps() -> usize {
    let section = |i: usize| map(3, |j| i * j).iter().sum::<usize>();
    let step = |_| awake(|| map(8, section).iter().sum::<usize>());
    (0..STEPS).map(step).sum()
}

#[test]
fn awake_changes_no_result() {
    for threads in [1, 2, 3, 5] {
        assert_eq!(pool(threads).install(steps), STEPS * 28 * 3);
        assert_eq!(pool(threads).install(|| awake(steps)), STEPS * 28 * 3);
    }
    assert_eq!(steps(), STEPS * 28 * 3);
}

#[test]
fn callers_that_share_a_pool_do_not_wait_for_each_other() {
    let pool = pool(3);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(pool.install(steps), STEPS * 28 * 3));
        }
    });
}

#[test]
fn threads_rest_when_what_they_were_awake_for_has_panicked() {
    let pool = pool(2);
    for _ in 0..3 {
        let fails = || pool.install(|| awake(|| -> () { panic!("on purpose") }));
        assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
        assert_eq!(pool.install(steps), STEPS * 28 * 3);
    }
}

#[test]
fn the_largest_is_found_wherever_it_is() {
    for n in [1, 17, PIECE + 1, 4 * PIECE + 3] {
        let mut x = vec![0.5_f32; n];
        assert_eq!(parallel::max_norm(&x), 0.5);
        for i in [0, n / 2, n - 1] {
            x[i] = -2.0;
            assert_eq!(parallel::max_norm(&x), 2.0);
            x[i] = f32::NEG_INFINITY;
            assert_eq!(parallel::max_norm(&x), f32::INFINITY);
            x[n - 1 - i] = -f32::NAN;
            assert!(parallel::max_norm(&x).is_nan());
            (x[i], x[n - 1 - i]) = (0.5, 0.5);
        }
    }
    assert_eq!(parallel::max_norm::<f64>(&[]), 0.0);
}

#[test]
fn results_keep_their_order() {
    assert_eq!(
        parallel::map(100, |i| i * i),
        (0..100).map(|i| i * i).collect::<Vec<_>>()
    );
    let mut data = vec![0; 10];
    let pieces = data.chunks_mut(4).enumerate().collect();
    parallel::for_each(pieces, |(i, piece): (usize, &mut [usize])| piece.fill(i));
    assert_eq!(data, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    parallel::for_each_chunk(&mut data, 3, |i, piece| piece.fill(i));
    assert_eq!(data, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
    let mut squares = vec![7; 3];
    parallel::map_into(10, |i| i * i, &mut squares);
    assert_eq!(squares, parallel::map(10, |i| i * i));
    // Piece i ends before (i + 1)^2.
    fn cut(rest: &mut [usize], i: usize, j: usize) -> (&mut [usize], &mut [usize]) {
        rest.split_at_mut(j * j - i * i)
    }
    let mut squared = [0; 16];
    parallel::for_each_piece(&mut squared[..], 4, cut, |i, piece| piece.fill(i));
    assert_eq!(squared, [0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3]);
    parallel::for_each_piece(&mut [][..], 0, cut, |_, _| unreachable!());
    let sums = parallel::map_chunks(&mut data, 4, |_, piece| piece.iter().sum::<usize>());
    assert_eq!(sums, [1, 6, 5]);
}

/// The first thread's buffer lies below the other's when it asks again; what others have used is
/// better than nothing.
#[test]
fn a_thread_gets_its_own_buffers_back() {
    let buffers = Buffers::<u8>::default();
    let turn = Barrier::new(2);
    let used = pool(2).broadcast(|thread| {
        let own = buffers.empty(10);
        let at = own.as_ptr().addr();
        turn.wait();
        let again = if thread.index() == 0 {
            drop(own);
            turn.wait();
            turn.wait();
            let again = buffers.empty(10);
            turn.wait();
            again
        } else {
            turn.wait();
            drop(own);
            turn.wait();
            turn.wait();
            buffers.empty(10)
        };
        assert_eq!(again.as_ptr().addr(), at);
        at
    });
    assert!(used.contains(&buffers.empty(10).as_ptr().addr()));
}
