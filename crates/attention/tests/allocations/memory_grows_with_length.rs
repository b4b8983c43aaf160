//! Attention and its gradients hold little beside what they return.

use bochner_attention::engine::Wanted;
use bochner_attention::{
    Form, Magnitude, Mask, Settings, attend, attend_vjp,
    kernels::{self, Points},
};
use bochner_numerics::allocations::peak;
use bochner_numerics::check::random;

const HEADS: usize = 8;
const WIDTH: usize = 64;
const POINTS: usize = 16;

/// The most bytes held at once, on one thread, beside the inputs and per byte of the output and of the
/// gradients.
fn held(form: Form, mask: &Mask, length: usize) -> f64 {
    let [q, k, v] = ["q", "k", "v"].map(|name| random((1, HEADS, length, WIDTH), name));
    let [w1, w2] = ["w1", "w2"].map(|name| 0.1 * random::<f32, _>((1, HEADS, POINTS, WIDTH), name));
    let (w1, w2) = (w1.view(), w2.view());
    let squared = kernels::squared(Points::Nonstationary { w1, w2 }, 1e-5, mask);
    let settings = Settings {
        form,
        ..squared.with_key_weight(Magnitude::Norm { p: 1.5 })
    };
    let both = || {
        let (q, k, v) = (q.view(), k.view(), v.view());
        let (output, saved) = attend(&settings, q, k, v).unwrap();
        let wanted = Wanted {
            kernel: true,
            ..Wanted::default()
        };
        attend_vjp(&settings, &saved, q, k, v, output.view(), wanted).unwrap()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    let (_, bytes) = pool.build().unwrap().install(|| peak(both));
    bytes as f64 / (4 * 4 * q.len()) as f64
}

/// In linear time, features and gradients along them are one head's; pair by pair, the features of all
/// heads are kept, a quarter here.
#[test]
fn one_head_at_a_time() {
    let (all, causal) = (Mask::none(), Mask::none().with_causality());
    for (form, mask, length, most) in [
        (Form::LinearTime, &all, 2048, 1.4),
        (Form::LinearTime, &causal, 2048, 1.5),
        (Form::Pairwise, &all, 1024, 1.65),
    ] {
        let held = held(form, mask, length);
        assert!((1.0..most).contains(&held), "{form:?}, {mask:?}: {held}");
    }
}
