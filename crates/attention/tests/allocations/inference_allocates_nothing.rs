//! From the second call with the same shapes on, attention without gradients allocates nothing.

use bochner_attention::{
    Bias, Decoder, DecoderSize, Form, Magnitude, Mask, Points, Settings, Workspace, attend,
    attend_into,
};
use bochner_numerics::allocations::count;
use bochner_numerics::check::random;
use bochner_numerics::{DropoutMask, Real, Seed};
use ndarray::{Array2, Array4, s};

const BATCH: usize = 2;
const HEADS: usize = 2;
const WIDTH: usize = 3;
const VALUE_WIDTH: usize = 5;
/// More than a block of either form, and more than a task.
const LENGTH: usize = 530;

/// Everything that settings can be put together from.
struct Parts<T> {
    w: [Array4<T>; 2],
    masks: [Mask; 5],
}

impl<T: Real> Parts<T> {
    fn new(length: usize) -> Self {
        let point = |name| random((1, HEADS, 4, WIDTH), name);
        let lengths = vec![length / 3, length];
        let matrix = Array2::from_shape_fn((length, length), |(i, j)| (i * j) % 3 != 1);
        Self {
            w: [point("w1"), point("w2")],
            masks: [
                Mask::none(),
                Mask::none().with_causality(),
                Mask::none().with_causality().with_key_lengths(lengths),
                Mask::none().with_matrix(matrix.view()),
                Mask::none().with_window((length / 4).max(1), 0).unwrap(),
            ],
        }
    }

    fn kernels(&self, mask: &Mask) -> [Settings<T>; 7] {
        let slopes = Settings {
            bias: Some(Bias::alibi()),
            ..Settings::softmax(mask)
        };
        let [w1, w2] = [self.w[0].view(), self.w[1].view()];
        [
            slopes,
            Settings::softmax(mask),
            Settings::rbf(mask),
            Settings::expsin(1.0, mask),
            Settings::linear(mask),
            Settings::squared(Points::Stationary { w: w1 }, 1e-5, mask),
            Settings::squared(Points::Nonstationary { w1, w2 }, 1e-5, mask),
        ]
    }

    /// Calls `f` with all settings that go together.
    fn for_each(&self, mut f: impl FnMut(&Settings<T>)) {
        let dropout = DropoutMask::new(0.2, Seed::new(2)).ok();
        let magnitudes = [
            Magnitude::None,
            Magnitude::Norm { p: 2.0 },
            Magnitude::Norm { p: 1.3 },
            Magnitude::Released { p: 2.0 },
        ];
        for kernel in self.masks.iter().flat_map(|mask| self.kernels(mask)) {
            for magnitude in magnitudes {
                for form in [Form::Quadratic, Form::LinearTime] {
                    for dropout in [None, dropout] {
                        f(&Settings {
                            magnitude,
                            dropout,
                            form,
                            ..kernel.clone()
                        });
                    }
                }
            }
        }
    }
}

/// On one thread: another one's allocations would not be seen.
fn on_one_thread(f: impl FnOnce() + Send) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.build().unwrap().install(f);
}

/// `attend_into` with every setting: the second call allocates nothing, and each gives the bits of
/// `attend`.
fn attention<T: Real>() {
    let parts = Parts::<T>::new(LENGTH);
    let array = |width, name| random::<T, _>((BATCH, HEADS, LENGTH, width), name);
    let (q, k, v) = (
        array(WIDTH, "q"),
        array(WIDTH, "k"),
        array(VALUE_WIDTH, "v"),
    );
    // Sums over these overflow.
    let huge = v.mapv(|v| v * (T::max_value() / T::of(10.0)));
    let mut tried = 0;
    parts.for_each(|settings| {
        for v in [&v, &huge] {
            let Ok(want) = attend(q.view(), k.view(), v.view(), settings) else {
                return;
            };
            let (workspace, mut output) = (Workspace::new(), want.output.clone());
            for call in 0..2 {
                output.fill(T::nan());
                let attend = || {
                    let output = output.view_mut();
                    attend_into(q.view(), k.view(), v.view(), settings, &workspace, output)
                };
                let (done, allocated) = count(attend);
                done.unwrap();
                assert!((allocated == 0) == (call > 0), "{allocated}: {settings:?}");
                assert_eq!(output, want.output);
            }
        }
        tried += 1;
    });
    // 6 kernels, and one of them with a bias, x 4 magnitudes x 5 masks x with and without dropout; and the linear
    // form of two kernels with 3 masks, without dropout.
    assert_eq!(tried, 7 * 4 * 5 * 2 + 2 * 4 * 3);
}

#[test]
fn the_second_call_allocates_nothing_in_f32() {
    on_one_thread(attention::<f32>);
}

#[test]
fn the_second_call_allocates_nothing_in_f64() {
    on_one_thread(attention::<f64>);
}

#[test]
fn arrays_in_any_order_and_other_shapes_in_between_are_no_trouble() {
    on_one_thread(|| {
        let turned = |width, name| random::<f32, _>((HEADS, BATCH, 70, width), name);
        let (q, k, v) = (turned(WIDTH, "q"), turned(WIDTH, "k"), turned(4, "v"));
        let [q, k, v] = [&q, &k, &v].map(|x| x.view().permuted_axes([1, 0, 2, 3]));
        let parts = Parts::<f32>::new(70);
        let workspace = Workspace::new();
        let mut output = Array4::zeros((HEADS, BATCH, 70, 4));
        parts.for_each(|settings| {
            for call in 0..6 {
                // Two lengths, one after the other.
                let rows = s![.., .., ..70 - 30 * (call % 2), ..];
                let (q, k, v) = (q.slice(rows), k.slice(rows), v.slice(rows));
                let Ok(want) = attend(q, k, v, settings) else {
                    continue;
                };
                let out = output.view_mut().permuted_axes([1, 0, 2, 3]);
                let out = out.slice_move(rows);
                let attend = || attend_into(q, k, v, settings, &workspace, out);
                let (done, allocated) = count(attend);
                done.unwrap();
                assert!(call < 2 || allocated == 0, "{allocated}: {settings:?}");
                let out = output.view().permuted_axes([1, 0, 2, 3]);
                assert_eq!(out.slice(rows), want.output);
            }
        });
    });
}

/// Which steps of a decoder allocate; `None` if the settings do not decode.
fn allocating<T: Real>(settings: &Settings<T>, count_of_steps: usize) -> Option<Vec<usize>> {
    let size = DecoderSize {
        batch: BATCH,
        heads: HEADS,
        width: WIDTH,
        value_width: VALUE_WIDTH,
    };
    let mut decoder = Decoder::new(settings, size).ok()?;
    let array = |width, name| random::<T, _>((BATCH, HEADS, count_of_steps, width), name);
    let (k, v) = (array(WIDTH, "k"), array(VALUE_WIDTH, "v"));
    let mut output = Array4::zeros((BATCH, HEADS, 1, VALUE_WIDTH));
    let allocating = (0..count_of_steps).filter(|&step| {
        let at = s![.., .., step..step + 1, ..];
        let (k, v) = (k.slice(at), v.slice(at));
        let (done, allocated) = count(|| match step % 2 {
            0 => decoder.step_into(k, k, v, output.view_mut()),
            _ => decoder.step_with_counts_into(k, k, v, &[1; BATCH], output.view_mut()),
        });
        done.unwrap();
        allocated > 0
    });
    Some(allocating.collect())
}

#[test]
fn decoding_allocates_where_its_memory_grows_and_nowhere_else() {
    on_one_thread(|| {
        let parts = Parts::<f32>::new(1);
        let mut tried = [0, 0];
        parts.for_each(|settings| {
            let Some(allocating) = allocating(settings, LENGTH) else {
                return;
            };
            let allocating = allocating.len();
            // In the linear-time form the first two steps: then there are sums.
            let (at, most) = match settings.form {
                Form::LinearTime => (1, 2),
                _ => (0, 45),
            };
            assert!(allocating <= most, "{allocating}: {settings:?}");
            tried[at] += 1;
        });
        assert!(tried.iter().all(|&n| n > 0));
    });
}

/// The memory that has held three windows, and a few panels, holds any number of them.
#[test]
fn decoding_under_a_window_stops_allocating() {
    on_one_thread(|| {
        let parts = Parts::<f32>::new(1);
        for left in [1, 48] {
            let mask = Mask::none().with_window(left, 0).unwrap();
            for settings in parts.kernels(&mask) {
                for magnitude in [Magnitude::None, Magnitude::Norm { p: 1.3 }] {
                    let settings = Settings {
                        magnitude,
                        ..settings.clone()
                    };
                    let last = allocating(&settings, LENGTH).unwrap().into_iter().max();
                    let last = last.unwrap();
                    assert!(last < 3 * left + 64, "{last} of {left}: {settings:?}");
                }
            }
        }
        let all = Settings::softmax(&Mask::none().with_causality());
        let steps = allocating::<f32>(&all, LENGTH).unwrap();
        assert!(steps.into_iter().max() > Some(3 * 48 + 64));
    });
}

#[test]
fn an_added_allocation_is_seen() {
    on_one_thread(|| {
        let settings = Settings::<f32>::softmax(&Mask::none());
        let x = Array4::ones((1, 1, 9, 2));
        let (workspace, mut output) = (Workspace::new(), x.clone());
        let mut call = || {
            let output = output.view_mut();
            attend_into(x.view(), x.view(), x.view(), &settings, &workspace, output).unwrap();
        };
        call();
        assert_eq!(count(&mut call).1, 0);
        // What is held elsewhere has to be allocated again.
        let held = vec![0.0_f32; 9];
        let copied = || {
            call();
            std::hint::black_box(held.clone());
        };
        assert_eq!(count(copied).1, 1);
    });
}

#[cfg(feature = "dfdx")]
mod layer {
    use super::*;
    use bochner_attention::{
        Copula, IkanDirect, Mikan, MultiHead, MultiHeadConfig, Pass, Posterior, Rotary, Softmax,
        Variant,
    };
    use dfdx::prelude::Cpu;
    use ndarray::Array3;

    const PASS: Pass = Pass::Evaluation { seed: Seed::new(5) };
    /// Wide enough for rows of the input to be copied side by side.
    const EMBED: usize = 640;

    /// Mechanisms whose kernel does not depend on the sequence.
    fn layers() -> Vec<MultiHead<usize, f32>> {
        let direct = |form| IkanDirect {
            points: 4,
            form,
            ..Default::default()
        };
        let latent = Mikan {
            points: 4,
            copula: Copula::Free,
            posterior: Posterior::Unconditional,
            ..Mikan::default()
        };
        let variants: [Variant; 4] = [
            Softmax::default().into(),
            direct(Form::Quadratic).into(),
            direct(Form::LinearTime).into(),
            latent.into(),
        ];
        let layer = |variant| {
            let config = MultiHeadConfig {
                heads: 10,
                variant,
                rotary: Some(Rotary::default()),
                ..Default::default()
            };
            let mut rng = Seed::new(1).stream("initial values");
            MultiHead::try_new(&Cpu::default(), EMBED, config, &mut rng).unwrap()
        };
        variants.into_iter().map(layer).collect()
    }

    #[test]
    fn a_layer_allocates_nothing_from_its_second_call_on() {
        on_one_thread(|| {
            let (x, mask) = (random::<f32, _>((2, 130, EMBED), "x"), Mask::none());
            for layer in layers() {
                let mut inference = layer.inference(PASS).unwrap();
                let (workspace, mut output) = (Workspace::new(), x.clone());
                for call in 0..3 {
                    let output = output.view_mut();
                    let attend = || inference.attend_self(x.view(), &mask, &workspace, output);
                    let (done, allocated) = count(attend);
                    done.unwrap();
                    assert!((allocated == 0) == (call > 0), "{allocated}: {layer:?}");
                }
            }
        });
    }

    #[test]
    fn a_layer_that_decodes_allocates_where_its_cache_doubles() {
        on_one_thread(|| {
            for layer in layers() {
                for (form, most) in [(Form::Automatic, 40), (Form::LinearTime, 2)] {
                    let Ok(mut decoder) = layer.decoder(2, form, PASS) else {
                        continue;
                    };
                    let (x, mut output) =
                        (Array3::ones((2, 1, EMBED)), Array3::zeros((2, 1, EMBED)));
                    let allocating = (0..200).filter(|_| {
                        let step = || decoder.step_into(x.view(), output.view_mut());
                        let (done, allocated) = count(step);
                        done.unwrap();
                        allocated > 0
                    });
                    let allocating = allocating.count();
                    assert!(allocating <= most, "{allocating}: {layer:?}, {form:?}");
                }
            }
        });
    }
}
