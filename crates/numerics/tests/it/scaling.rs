use bochner_numerics::Real;
use bochner_numerics::scaling::{bounded, largest, log2_largest, multiplied, over_power, unit};

#[test]
fn a_unit_leaves_room_for_the_others() {
    assert_eq!(unit::<f64>(10.0, 20.0), 0);
    assert_eq!(unit::<f64>(10.0, -1e9), 0);
    // 2^1000 becomes 2^-256, and products with anything up to 2^1024 are in range.
    assert_eq!(unit::<f64>(1000.0, 0.0), 1256);
    // Others that are small in this place may be missing in another: they excuse no large number.
    assert_eq!(unit::<f64>(1000.0, -900.0), 1256);
    let there: f32 = over_power(3.0, 200);
    assert_eq!(multiplied::<f32>(there.as_f64(), 0), there);
    assert_eq!(multiplied::<f64>(over_power(3.0, 200), 200), 3.0);
}

#[test]
fn powers_are_multiplied_as_scalbn_does() {
    let some = [
        0.0,
        -1.0,
        0.7,
        1e-300,
        5e-324,
        -3.3e-308,
        f64::MAX,
        f64::INFINITY,
    ];
    for power in [
        -2000, -1075, -1023, -1022, -1021, -1, 0, 1, 1022, 1023, 1024, 3000,
    ] {
        for x in some {
            assert_eq!(over_power(x, -power), libm::scalbn(x, power), "{x} {power}");
        }
    }
    assert_eq!(over_power(1.0_f32, i32::MIN), f32::INFINITY);
}

#[test]
fn what_overflows_is_the_largest_number() {
    assert_eq!(multiplied::<f32>(-1e30, 100), f32::MIN);
    assert!(multiplied::<f32>(f64::NAN, 0).is_nan());
    assert_eq!(
        [1e39_f64, -1e39].map(|x| bounded(x as f32)),
        [f32::MAX, f32::MIN]
    );
    assert!(bounded(f64::NAN).is_nan());
    assert_eq!(largest(&[1.0, f64::INFINITY, -3.0, f64::NAN]), 3.0);
    assert_eq!(log2_largest(&[0.25_f32, -4.0]), 2.0);
}
