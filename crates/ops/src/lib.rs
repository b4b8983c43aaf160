//! Differentiable operations on arrays, and the rules by which their parameters are stepped.
//!
//! A function that can be trained through stands next to its vector-Jacobian product, written by hand, on plain arrays:
//! an [`Operation`]. It knows no tensor framework and no tape. A training loop calls [`apply()`] and [`apply_vjp`] in
//! turn, or calls [`forward`](Operation::forward) and [`backward`](Operation::backward) with its own memory, or puts
//! operations on the tape of a framework, as `bochner-nn` does for dfdx. Parameters, gradients and moments are slices,
//! which [`AdamRule`] or [`Sgd`] step in place.
//!
//! Two rules hold throughout:
//!
//! * **Only requested gradients are computed.** The backward pass is told which gradients are wanted, so
//!   that targets and frozen weights cost nothing.
//! * **Results do not depend on the number of threads.** Work is split by the shapes alone, see [`rows`].
//!
//! [`ndarray`] is re-exported in the version whose arrays an [`Operation`] takes.
//!
//! # Example
//!
//! A linear map, trained by hand:
//!
//! ```
//! use bochner_ops::{AdamConfig, AdamRule, Moments, affine, affine_vjp, filled};
//!
//! // y = 2 x - 1 at four places.
//! let (x, y) = ([0.0, 1.0, 2.0, 3.0], [-1.0, 1.0, 3.0, 5.0]);
//! let mut parameters = [[0.0_f64], [0.0]];
//! let mut moments = [(); 2].map(|()| Moments::zeros(1));
//! let config = AdamConfig { learning_rate: 0.1, ..Default::default() };
//! for step in 1..=400 {
//!     let [weight, bias] = &parameters;
//!     let [predicted] = filled([4], |[predicted]| affine(&x, weight, bias, predicted, |_, _| ()));
//!     let dy: Vec<f64> = predicted.iter().zip(y).map(|(p, y)| 2.0 * (p - y)).collect();
//!     let gradients = filled([1, 1], |[dw, db]| {
//!         affine_vjp(&x, weight, &dy, 1, [None, Some(dw), Some(db)]);
//!     });
//!     let rule = AdamRule::new(&config, config.learning_rate, step);
//!     for ((p, m), g) in parameters.iter_mut().zip(&mut moments).zip(&gradients) {
//!         rule.step(p, m, g);
//!     }
//! }
//! let [[weight], [bias]] = parameters;
//! assert!((weight - 2.0).abs() < 0.01 && (bias + 1.0).abs() < 0.01);
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | `operation` | [`Operation`], [`Slot`], [`Piece`], [`filled`]; [`given`], [`slices`], [`slots`] for writing operations |
//! | `apply` | [`apply()`], [`apply_vjp`]: an operation on arrays, without a tape |
//! | `affine` | [`affine`], [`affine_vjp`], [`Affine`]; [`PackedAffine`] for inference |
//! | `activation` | [`Activation`], [`activation_vjp`] |
//! | `layer_norm` | [`LayerNorm`], [`ResidualNorm`] |
//! | `feed_forward` | [`FeedForward`]; [`PackedFeedForward`] for inference |
//! | `log_softmax` | [`log_softmax()`] |
//! | `dropout` | [`dropout_mask`], [`Dropout`] |
//! | `mode` | [`Mode`]: training with random draws, or evaluation |
//! | `embedding` | [`lookup`], [`lookup_vjp`] |
//! | `spiking_neuron` | [`SpikingNeuron`]: spikes over steps of time |
//! | `mean` | [`MeanOverTime`], [`check_lengths`] |
//! | `loss` | [`CrossEntropy`], [`LinearCrossEntropy`], [`SquaredError`], [`Rows`] |
//! | `optim` | [`AdamRule`], [`AdamConfig`], [`Sgd`], [`clip_by_norm`], [`Schedule`]; [`lbfgs`] minimises within bounds |
//! | [`rows`] | work over the rows of a matrix, in blocks and with fixed sums |

mod activation;
mod affine;
mod apply;
mod dropout;
mod embedding;
mod feed_forward;
mod layer_norm;
mod log_softmax;
mod loss;
mod mean;
mod mode;
mod operation;
mod optim;
pub mod rows;
mod spiking_neuron;

pub use activation::{Activation, activation_vjp};
pub use affine::{Affine, PackedAffine, affine, affine_vjp};
pub use apply::{apply, apply_vjp};
pub use dropout::{Dropout, dropout_mask};
pub use embedding::{lookup, lookup_vjp};
pub use feed_forward::{FeedForward, HiddenLayer, PackedFeedForward};
pub use layer_norm::{LayerNorm, Normalised, ResidualNorm};
pub use log_softmax::log_softmax;
pub use loss::{CrossEntropy, LinearCrossEntropy, Rows, SquaredError};
pub use mean::{MeanOverTime, check_lengths};
pub use mode::Mode;
pub use ndarray;
pub use operation::{BoxError, Operation, Piece, Slot, filled, given, slices, slots, with_last};
pub use optim::{
    AdamConfig, AdamRule, Decayed, GradientNorm, LbfgsConfig, LbfgsReport, Moments, Objective,
    Schedule, Sgd, Stop, WeightDecay, check_factor, clip_by_norm, largest_projected, lbfgs,
};
pub use spiking_neuron::{SpikeTrain, Spikes, SpikingNeuron};
