use bochner_numerics::{
    DropoutMask, Seed, Stream, elementary, fill_standard_normal, standard_normal,
};
use rand::{Error, RngCore};

#[test]
fn purposes_do_not_disturb_each_other() {
    let seed = Seed::new(3);
    let mut a = seed.stream("a");
    let want = [a.next_u64(), a.next_u64()];
    let (mut a, mut b) = (seed.stream("a"), seed.stream("b"));
    let first = a.next_u64();
    for _ in 0..1000 {
        b.next_u32();
    }
    assert_eq!(want, [first, a.next_u64()]);
    assert_ne!(seed.stream("a").next_u64(), seed.stream("b").next_u64());
    assert_ne!(seed.child("a"), seed.child("b"));
    assert_ne!(seed.nth(0), seed.nth(1));
    assert_ne!(seed.nth(0), seed);
}

#[test]
fn a_restored_stream_goes_on_where_it_stood() {
    let mut stream = Seed::new(9).stream("noise");
    for _ in 0..37 {
        stream.next_u32();
    }
    let mut restored = Stream::from_state(&stream.state());
    for _ in 0..100 {
        assert_eq!(stream.next_u32(), restored.next_u32());
    }
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn normal_draws_have_mean_0_and_variance_1() {
    let mut stream = Seed::new(5).stream("normal");
    let n = 100_000;
    let draws: Vec<f64> = (0..n).map(|_| standard_normal(&mut stream)).collect();
    let mean = draws.iter().sum::<f64>() / n as f64;
    let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
    assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.03);
}

#[test]
fn scaling_a_slice_multiplies_by_the_factors() {
    let dropout = DropoutMask::new(0.3, Seed::new(4)).unwrap();
    let values: Vec<f32> = (0..77).map(|i| i as f32 - 30.0).collect();
    let mut scaled = values.clone();
    dropout.scale(5, &mut scaled);
    for ((i, x), scaled) in (5..).zip(values).zip(scaled) {
        assert_eq!(scaled, x * dropout.factor::<f32>(i));
    }
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn draws_at_once_follow_the_normal_distribution() {
    let n = 200_000;
    let mut draws = vec![0.0; n];
    fill_standard_normal(&mut Seed::new(5).stream("normal"), &mut draws);
    let moment = |k| draws.iter().map(|x: &f64| x.powi(k)).sum::<f64>() / n as f64;
    // Five standard errors each.
    let near = |got: f64, want: f64, variance: f64| {
        (got - want).abs() < 5.0 * (variance / n as f64).sqrt()
    };
    assert!(near(moment(1), 0.0, 1.0) && near(moment(2), 1.0, 2.0));
    assert!(near(moment(3), 0.0, 15.0) && near(moment(4), 3.0, 96.0));
    let lagged: f64 = draws.windows(2).map(|x| x[0] * x[1]).sum();
    assert!(near(lagged / n as f64, 0.0, 1.0));
    // Kolmogorov and Smirnov's distance; one sample in ten million is beyond 2.9.
    draws.sort_by(f64::total_cmp);
    let mut u = draws;
    elementary::normal_cdf_in_place(&mut u);
    let off = u
        .iter()
        .enumerate()
        .map(|(i, u)| (u - (i as f64 + 0.5) / n as f64).abs());
    assert!(off.fold(0.0, f64::max) * (n as f64).sqrt() < 2.9);
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn a_draw_does_not_depend_on_how_many_are_drawn_at_once() {
    let stream = || Seed::new(5).stream("normal");
    let mut whole = [0.0; 1100];
    fill_standard_normal(&mut stream(), &mut whole);
    let (mut parts, mut stream) = ([0.0; 1100], stream());
    for part in parts.chunks_mut(17) {
        fill_standard_normal(&mut stream, part);
    }
    assert_eq!(whole, parts);
}

/// A stream of the smallest and of the largest words.
struct Constant(u8);

impl RngCore for Constant {
    fn next_u32(&mut self) -> u32 {
        u32::from_le_bytes([self.0; 4])
    }

    fn next_u64(&mut self) -> u64 {
        u64::from_le_bytes([self.0; 8])
    }

    fn fill_bytes(&mut self, dest: &mut [u8]) {
        dest.fill(self.0);
    }

    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(dest);
        Ok(())
    }
}

#[test]
fn the_farthest_draws_are_finite_and_opposite() {
    let (mut least, mut most) = ([0.0], [0.0]);
    fill_standard_normal(&mut Constant(0), &mut least);
    fill_standard_normal(&mut Constant(255), &mut most);
    assert!(least[0] < -8.1 && least[0] == -most[0]);
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn dropout_drops_at_its_rate_and_keeps_the_mean() {
    for wrong in [-0.1, 1.0, f64::NAN] {
        assert!(DropoutMask::new(wrong, Seed::new(0)).is_err());
    }
    for rate in [0.0, 0.1, 0.5] {
        let dropout = DropoutMask::new(rate, Seed::new(11)).unwrap();
        let n = 200_000u64;
        let factors: Vec<f64> = (0..n).map(|i| dropout.factor(i)).collect();
        let dropped = factors.iter().filter(|&&f| f == 0.0).count() as f64 / n as f64;
        assert!((dropped - rate).abs() < 0.005);
        assert!((factors.iter().sum::<f64>() / n as f64 - 1.0).abs() < 0.01);
        let mut part = [0.0; 77];
        dropout.factors(1001, &mut part);
        assert_eq!(part, factors[1001..1078]);
    }
}
