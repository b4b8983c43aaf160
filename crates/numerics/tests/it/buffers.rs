use bochner_numerics::Buffers;

#[test]
fn capacities_are_rounded_by_a_quarter_at_most_and_found_again() {
    for n in (1..5000).step_by(if cfg!(miri) { 997 } else { 1 }) {
        let buffers = Buffers::<u8>::default();
        let buffer = buffers.empty(n);
        let (at, capacity) = (buffer.as_ptr(), buffer.capacity());
        assert!((n..=n + n / 4).contains(&capacity), "{n} to {capacity}");
        drop(buffer);
        assert_eq!(buffers.any(capacity).as_ptr(), at);
    }
    assert_eq!(Buffers::<u8>::default().empty(0).capacity(), 0);
}

#[test]
fn two_in_use_are_two() {
    let buffers = Buffers::default();
    let (a, b) = (buffers.filled(10, 1), buffers.filled(10, 2));
    assert_ne!(a.as_ptr(), b.as_ptr());
    let copy = a.clone();
    assert_eq!(
        (copy.as_slice(), b.as_slice()),
        (&[1; 10][..], &[2; 10][..])
    );
    drop((a, b));
    assert_eq!(*buffers.filled(10, 3), vec![3; 10]);
    assert_eq!(buffers.empty(10).len(), 0);
    assert_eq!(buffers.any(9).len(), 9);
}

#[test]
fn what_has_grown_serves_what_is_larger() {
    let buffers = Buffers::default();
    let mut small = buffers.empty(4);
    small.extend(0..1000);
    let (at, capacity) = (small.as_ptr(), small.capacity());
    drop(small);
    // Buffers of a quarter less than a power of two and of that power are the next sizes below.
    assert!((896..1024).contains(&capacity));
    assert_eq!(buffers.any(896).as_ptr(), at);
}

#[test]
fn buffers_outlive_their_home_and_hold_buffers() {
    let (inner, outer) = (Buffers::default(), Buffers::default());
    let mut list = outer.empty(2);
    list.push(inner.filled(3, 'x'));
    let at = list[0].as_ptr();
    drop(list);
    assert_eq!(inner.any(3).as_ptr(), at);
    let kept = inner.filled(3, 'y');
    drop(inner);
    assert_eq!(*kept.clone(), ['y'; 3]);
}
