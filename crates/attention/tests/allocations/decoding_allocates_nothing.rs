//! A decoder allocates where its memory grows, and nowhere else.

use bochner_attention::{
    Bias, Form, Magnitude, Mask, Settings,
    engine::{Decoder, DecoderSize},
    kernels::{self, Points, Trained},
};
use bochner_kernels::RandomFeatureMap;
use bochner_numerics::Real;
use bochner_numerics::allocations::count;
use bochner_numerics::check::random;
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
            kernels::rbf(mask),
            kernels::expsin(1.0, mask),
            kernels::linear(mask),
            kernels::squared(Points::Stationary { w: w1 }, 1e-5, mask),
            kernels::squared(Points::Nonstationary { w1, w2 }, 1e-5, mask),
        ]
    }

    /// Calls `f` with all settings that go together.
    fn for_each(&self, mut f: impl FnMut(&Settings<T>)) {
        for kernel in self.masks.iter().flat_map(|mask| self.kernels(mask)) {
            for magnitude in [Magnitude::None, Magnitude::Norm { p: 1.3 }] {
                f(&Settings {
                    form: Form::Pairwise,
                    ..kernel.clone().with_key_weight(magnitude)
                });
            }
        }
    }
}

/// On one thread: another one's allocations would not be seen.
fn on_one_thread(f: impl FnOnce() + Send) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.build().unwrap().install(f);
}

/// Returns the steps of a decoder that allocate; `None` if the settings do not decode.
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
        let counts = (step % 2 == 1).then_some(&[1; BATCH][..]);
        let (done, allocated) =
            count(|| decoder.step_into([k, k, v], counts, None, output.view_mut()));
        done.unwrap();
        allocated > 0
    });
    Some(allocating.collect())
}

#[test]
fn decoding_allocates_where_its_memory_grows_and_nowhere_else() {
    on_one_thread(|| {
        let parts = Parts::<f32>::new(1);
        let mut tried = 0;
        parts.for_each(|settings| {
            let Some(allocating) = allocating(settings, LENGTH) else {
                return;
            };
            let allocating = allocating.len();
            assert!(allocating <= 45, "{allocating}: {settings:?}");
            tried += 1;
        });
        assert!(tried > 0);
    });
}

/// Sums of a constant size: those of squared kernels and of features.
#[test]
fn decoding_in_linear_time_allocates_in_its_first_steps_alone() {
    on_one_thread(|| {
        let parts = Parts::<f32>::new(1);
        let mask = Mask::none().with_causality();
        let w = random((HEADS, 8, WIDTH), "w");
        let features = [
            RandomFeatureMap::Positive,
            RandomFeatureMap::Hyperbolic,
            RandomFeatureMap::Relu { epsilon: 1e-3 },
        ]
        .map(|map| kernels::random_features(w.view(), map, Trained::No, &mask));
        let magnitudes = [Magnitude::None, Magnitude::Norm { p: 1.3 }];
        let squared = parts.kernels(&mask).into_iter().rev().take(2);
        let weighted =
            squared.flat_map(|kernel| magnitudes.map(|m| kernel.clone().with_key_weight(m)));
        for settings in weighted.chain(features) {
            let form = Form::LinearTime;
            let allocating = allocating(&Settings { form, ..settings }, LENGTH).unwrap();
            assert!(allocating.iter().all(|&step| step < 2), "{allocating:?}");
        }
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
                    let settings = settings.clone().with_key_weight(magnitude);
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

#[cfg(feature = "dfdx")]
mod layer {
    use super::*;
    use bochner_attention::{
        Copula, IkanDirect, Mikan, MultiHead, MultiHeadConfig, Pass, Posterior, Rotary, Softmax,
        Variant,
    };
    use bochner_numerics::Seed;
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
        let variants: [Variant; 3] = [
            Softmax::default().into(),
            direct(Form::Pairwise).into(),
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
    fn a_layer_that_decodes_allocates_where_its_cache_doubles() {
        on_one_thread(|| {
            for layer in layers() {
                let mut decoder = layer.decoder(2, Form::Pairwise, PASS).unwrap();
                let (x, mut output) = (Array3::ones((2, 1, EMBED)), Array3::zeros((2, 1, EMBED)));
                let allocating = (0..200).filter(|_| {
                    let step = || decoder.step_into(x.view(), None, output.view_mut());
                    let (done, allocated) = count(step);
                    done.unwrap();
                    allocated > 0
                });
                let allocating = allocating.count();
                assert!(allocating <= 40, "{allocating}: {layer:?}");
            }
        });
    }
}
