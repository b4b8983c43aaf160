//! Properties of CAT: circulants by Fourier transforms, their symmetries, and a causal form that is causal.

use bochner_attention::{
    Cat, Error, Mask, Mechanism, Pass,
    mechanism::{CatForm, Streams},
};
use bochner_numerics::check::largest;
use bochner_numerics::{Real, Seed, Tolerance, standard_normal};
use ndarray::{Array4, Axis, s};

const PASS: Pass = Pass::Evaluation { seed: Seed::new(1) };
const HEADS: usize = 2;
const CIRCULANT: [CatForm; 2] = [CatForm::Correlation, CatForm::Convolution];

/// Scores `[B, M, T, 1]` and values `[B, M, T, 3]`.
#[derive(Clone)]
struct Sequences<T> {
    z: Array4<T>,
    v: Array4<T>,
}

impl<T: Real> Sequences<T> {
    fn new(batch: usize, time: usize, seed: u64) -> Self {
        let mut stream = Seed::new(seed).stream("sequences");
        let mut array = |width| {
            let normal = || standard_normal(&mut stream);
            Array4::from_shape_simple_fn((batch, HEADS, time, width), normal)
        };
        Self {
            z: array(1),
            v: array(3),
        }
    }

    fn attend(&self, form: CatForm, mask: &Mask) -> Array4<T> {
        let streams = Streams::new([self.z.view(), self.v.view()], mask);
        let cat: &dyn Mechanism<T> = &Cat { form };
        cat.forward(&streams, &[], &PASS)
            .unwrap()
            .output
            .into_owned()
    }
}

fn distance<T: Real>(a: &Array4<T>, b: &Array4<T>) -> f64 {
    let differences = a.iter().zip(b).map(|(&a, &b)| (a - b).as_f64());
    largest(&differences.collect::<Vec<_>>())
}

/// The softmax of each row of the circulant of the scores, times the values.
fn dense(form: CatForm, Sequences { z, v }: &Sequences<f64>) -> Array4<f64> {
    let time = z.dim().2;
    Array4::from_shape_fn(v.dim(), |(b, m, i, c)| {
        let lag = |j: usize| match form {
            CatForm::Convolution => (i + time - j) % time,
            _ => (j + time - i) % time,
        };
        let row: Vec<f64> = (0..time).map(|j| z[[b, m, lag(j), 0]].exp()).collect();
        let total: f64 = row.iter().sum();
        let terms = row.iter().enumerate();
        terms.map(|(j, w)| w / total * v[[b, m, j, c]]).sum()
    })
}

fn agrees_with_the_dense_circulant(time: usize, seed: u64) {
    let sequences = Sequences::<f64>::new(2, time, seed);
    let single = Sequences {
        z: sequences.z.mapv(|x| x as f32),
        v: sequences.v.mapv(|x| x as f32),
    };
    for form in CIRCULANT {
        let want = dense(form, &sequences);
        let got = sequences.attend(form, &Mask::none());
        let error = distance(&got, &want);
        assert!(error < 1e-10, "{form:?}, {time}: {error:e}");
        let got = single.attend(form, &Mask::none()).mapv(f64::from);
        let bound = Tolerance::outputs::<f32>().bound(want.iter().copied());
        let error = distance(&got, &want);
        assert!(error < bound, "{form:?}, {time}: {error:e}");
    }
}

/// Even, odd and prime lengths, powers of two, and lengths whose largest prime factor is large.
#[test]
fn transforms_agree_with_the_dense_circulant() {
    for time in [1, 2, 3, 4, 5, 30, 64, 97, 128, 211, 2 * 211, 257] {
        agrees_with_the_dense_circulant(time, time as u64);
    }
}

/// A position changes no bit of the rows before it, even if its score is beyond the exponential's range.
fn the_future_changes_nothing<T: Real>(time: usize, seed: u64, late: &[f64]) {
    let sequences = Sequences::<T>::new(1, time, seed);
    let want = sequences.attend(CatForm::Causal, &Mask::none());
    for from in [1, time / 2, time - 1] {
        let mut other = sequences.clone();
        other.v.slice_mut(s![.., .., from.., ..]).fill(T::of(1e9));
        let scores = other.z.slice_mut(s![.., .., from.., ..]);
        for (z, &late) in scores.into_iter().zip(late.iter().cycle()) {
            *z = T::of(late);
        }
        let got = other.attend(CatForm::Causal, &Mask::none());
        let before = s![.., .., ..from, ..];
        assert_eq!(got.slice(before), want.slice(before), "{time}, {from}");
        // The rows so far are those of the sequence that ends there.
        let cut = Sequences {
            z: sequences.z.slice(before).to_owned(),
            v: sequences.v.slice(before).to_owned(),
        };
        let cut = cut.attend(CatForm::Causal, &Mask::none());
        assert_eq!(cut, want.slice(before), "{time}, {from}");
    }
}

#[test]
fn the_causal_form_is_causal_to_the_bit() {
    for time in [2, 31, 32, 33, 65, 150] {
        the_future_changes_nothing::<f32>(time, 4, &[80.0, -1e30]);
        the_future_changes_nothing::<f64>(time, 5, &[800.0, 1e300, -800.0]);
    }
}

/// Scores that grow along the sequence give each row another reference.
#[test]
fn each_row_is_relative_to_its_own_scores() {
    for growth in [0.0, 0.3, 3.0, 40.0, 700.0] {
        let time = 70;
        let mut sequences = Sequences::<f64>::new(1, time, 6);
        for (i, mut z) in sequences.z.axis_iter_mut(Axis(2)).enumerate() {
            z += growth * i as f64;
        }
        let Sequences { z, v } = &sequences;
        let want = Array4::from_shape_fn(v.dim(), |(b, m, i, c)| {
            let seen = z.slice(s![b, m, ..=i, 0]);
            let highest = seen.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let weights = seen.mapv(|z| (z - highest).exp());
            let terms = weights.iter().enumerate();
            let sum: f64 = terms.map(|(l, w)| w * v[[b, m, i - l, c]]).sum();
            sum / weights.sum()
        });
        let got = sequences.attend(CatForm::Causal, &Mask::none());
        let error = distance(&got, &want);
        assert!(error < 1e-12, "{growth}: {error:e}");
    }
}

#[test]
fn what_has_no_circulant_is_refused() {
    let sequences = Sequences::<f64>::new(1, 4, 7);
    let refused = |form, mask: Mask, z: &Array4<f64>| {
        let streams = Streams::new([z.view(), sequences.v.view()], &mask);
        let cat: &dyn Mechanism<f64> = &Cat { form };
        cat.forward(&streams, &[], &PASS).unwrap_err()
    };
    for form in [CatForm::Correlation, CatForm::Convolution, CatForm::Causal] {
        let shorter = sequences.z.slice(s![.., .., ..3, ..]).to_owned();
        let error = refused(form, Mask::none(), &shorter);
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        let error = refused(form, Mask::none(), &sequences.v);
        assert!(crate::names(&error, "the scores"), "{error}");
    }
    let causal = Mask::none().with_causality();
    let error = refused(CatForm::Correlation, causal, &sequences.z).to_string();
    assert!(error.ends_with("use the form `causal` of CAT"), "{error}");
}
