use bochner_numerics::fourier::Complex;
use bochner_numerics::{Fourier, Real, Seed, Tolerance, standard_normal};
use std::f64::consts::TAU;

fn check<T: Real>(n: usize) {
    let mut stream = Seed::new(1).stream("numbers");
    let x: Vec<T> = (0..n).map(|_| standard_normal(&mut stream)).collect();
    let fourier = Fourier::new(n);
    let mut spectrum = vec![Complex::default(); fourier.frequencies()];
    let mut scratch = vec![Complex::default(); fourier.scratch()];
    let mut y = x.clone();
    fourier.transform(&mut y, &mut spectrum, &mut scratch);
    let bound = Tolerance::outputs::<T>().bound([(n as f64).sqrt()]);
    for (k, got) in spectrum.iter().enumerate() {
        let turn = |t: usize| TAU * ((k * t) % n) as f64 / n as f64;
        let part = |f: fn(f64) -> f64| -> f64 {
            let terms = x.iter().enumerate();
            terms.map(|(t, x)| x.as_f64() * f(turn(t))).sum()
        };
        let error = (got.re.as_f64() - part(f64::cos)).abs();
        assert!(error < bound, "{n}, {k}: {error:e}");
        let error = (got.im.as_f64() + part(f64::sin)).abs();
        assert!(error < bound, "{n}, {k}: {error:e}");
    }
    fourier.invert(&mut spectrum, &mut y, &mut scratch);
    for (got, want) in y.iter().zip(&x) {
        let error = (got.as_f64() / n as f64 - want.as_f64()).abs();
        assert!(error < bound, "{n}: {error:e}");
    }
}

#[test]
#[cfg_attr(
    miri,
    ignore = "rustfft loads pairs of f32 as an f64 that is not aligned: the instruction may, a pointer may not"
)]
fn transforms_are_sums_of_sines_and_cosines() {
    for n in [1, 2, 3, 4, 7, 8, 30, 97, 128] {
        check::<f32>(n);
        check::<f64>(n);
    }
}
