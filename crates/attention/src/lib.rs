//! Attention as a kernel: similarity times magnitude.
//!
//! Softmax attention weighs a key by $\exp(q \cdot k / \sqrt d)$. Complete the square, and the
//! weight falls apart into an RBF kernel of the distance and a factor that grows with the key's
//! norm:
//!
//! $$\exp\frac{q \cdot k}{\sqrt d} = \underbrace{\exp\frac{-|q-k|^2}{2\sqrt d}}\_{\text{similarity}}
//! \cdot \underbrace{\exp\frac{|q|^2 + |k|^2}{2\sqrt d}}\_{\text{magnitude}}$$
//!
//! The query's own magnitude cancels when the weights are normalised. What remains are two
//! independent choices: which kernel says that a query and a key are alike ([`AttentionKernel`]), and
//! which norm says how loud a key is ([`Magnitude`]). This crate computes attention for any pair
//! of them, forward and backward, without ever storing a `[Tq, Tk]` array ([`attend`],
//! [`attend_vjp`]); a weight of the kernel family needs no exponential of its own, one a key is
//! enough. Squared kernels and random features have two forms, pair by pair and in linear time, equal but
//! for rounding; the faster one is taken unless the choice is forced ([`Form`]).
//!
//! Where a sequence is written one position at a time, a [`Decoder`] keeps what the positions so far
//! come to: keys and values, or, if [`Form::LinearTime`] is asked for, sums whose size does not grow.
//!
//! Calls are short. A loop of them gains by keeping threads awake between parallel sections
//! ([`parallel::awake`](bochner_numerics::parallel::awake) around a round of it) and freed memory for the next
//! one ([`keep_freed_memory`](bochner_numerics::memory::keep_freed_memory) once).
//!
//! On top stand the mechanisms of the [registry](registry()), each with its own parameters, initial
//! values and gradients ([`Mechanism`]), and a [`Card`] that says what it can do:
//!
#![doc = include_str!("mechanism/table.md")]
//!
//! $f_S$ is stationary and $f_{NS}$ is not ([`Points`]). The four implicit ones are one
//! configuration: [`Stationarity`], p and [`Copula`] are independent of each other, the
//! [`Posterior`] of the points comes from the features or, under a causal mask, from nothing, and
//! an evaluation may average over [draws](Mikan::draws).
//!
//! All of this is plain functions of arrays: no framework, no tape. With the default feature `dfdx`
//! there is also a trainable layer, `MultiHead`, which puts any of them on the tape of dfdx as a
//! single operation.
//!
//! # Example
//!
//! The decomposition, checked on the weights of one query:
//!
//! ```
//! use bochner_attention::{Mask, Settings, magnitude, weights};
//! use bochner_attention::ndarray::Array4;
//!
//! let q = Array4::from_shape_fn((1, 1, 1, 4), |(.., n)| 0.3 * n as f64);
//! let k = Array4::from_shape_fn((1, 1, 3, 4), |(_, _, t, n)| (t as f64 - 1.0) * 0.5 + 0.1 * n as f64);
//! let mask = Mask::none();
//! let softmax = weights(q.view(), k.view(), &Settings::softmax(&mask))?;
//! let similarity = weights(q.view(), k.view(), &Settings::rbf(&mask))?;
//! let m = magnitude(k.view().into_shape_with_order((3, 4)).unwrap(), 2.0)?;
//!
//! let product: Vec<f64> = (0..3).map(|j| similarity[[0, 0, 0, j]] * m[j].exp()).collect();
//! let total: f64 = product.iter().sum();
//! for j in 0..3 {
//!     assert!((softmax[[0, 0, 0, j]] - product[j] / total).abs() < 1e-12);
//! }
//! # Ok::<(), bochner_attention::Error>(())
//! ```
//!
//! # Conventions
//!
//! Arrays are row-major, heads before time: queries `[B, M, Tq, d]`, keys `[B, M, Tk, d]`, values
//! `[B, M, Tk, dv]`. In a [`Mask`], `true` means *may attend*. A row without a kept key has zero
//! weights, a zero output and zero gradients; what stands behind a mask never matters, not even
//! NaN. A mechanism that infers its spectral points averages over the queries too: where they are
//! padded, tell it so ([`Mask::with_query_lengths`]; a layer on one sequence does). Results are the
//! same to the bit for any number of threads; instruction sets differ by rounding, and
//! `BOCHNER_INSTRUCTIONS` chooses one ([`instructions`](bochner_numerics::instructions)).
//!
//! # Map
//!
//! | item | is |
//! |---|---|
//! | [`attend`], [`attend_vjp`], [`weights`], [`attend_with_weights`] | attention for any [`Settings`] |
//! | [`attend_into`], [`Workspace`] | the forward pass alone, in memory that is used again |
//! | [`Form`], [`Blocks`], [`linear_time_state`] | pair by pair, or by features in linear time |
//! | [`Decoder`] | causal attention to a sequence that grows |
//! | [`AttentionKernel`], [`Points`] | which kernel |
//! | [`Magnitude`], [`magnitude()`], [`log_norm_sq`] | which norm |
//! | [`Mask`] | which keys |
//! | [`PositionCode`], [`Rotary`] | positions that are encoded into queries and keys |
//! | [`Mechanism`], [`registry()`], [`find`], [`Variant`] | mechanisms with parameters, by name |
//! | [`Card`] | what a mechanism is and can do |
//! | [`Softmax`], [`RbfOnly`], [`Expsin`], [`Linear`], [`IkanDirect`], [`Mikan`], [`Performer`] | their settings |
//! | [`Cat`], [`Primal`], [`Bipolar`] | those of CAT, Primal-Attention and bipolar attention |
//! | [`shiftmax`], [`attend_by_shifts`] | the normaliser of bipolar attention alone, and the whole on integers |
//! | [`Stationarity`], [`Copula`], [`Posterior`], [`Preset`] | what the kernel family can choose, from `bochner-spectral` |
//! | `MultiHead` | the trainable layer (feature `dfdx`) |
//! | `LearnableQueryLayer` | the layer with queries that are parameters (feature `dfdx`) |
//! | `BipolarLayer` | bipolar attention over steps of time, trainable (feature `dfdx`) |
//! | `PackedMultiHead`, `MultiHeadInference`, `MultiHeadDecoder`, `MultiHeadCrossDecoder` | the layer as it stands, without a tape |
//! | [`LearnableQuery`], [`unfold`], [`fold`] | queries that are parameters, data on a grid |
//! | [`TimeInput`] | time stamps as a part of a layer's input |
//! | [`Streams`], [`Stream`] | what a layer gives a mechanism, as its card asks |

pub mod card;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
pub mod fixed_point;
mod gamma;
pub mod grid;
#[cfg(all(debug_assertions, not(test)))]
mod instances;
#[cfg(feature = "dfdx")]
pub mod layer;
pub mod kernels;
pub mod learnable_query;
pub mod magnitude;
pub mod mechanism;
pub mod shiftmax;
pub mod time_input;

pub use bochner_engine as engine;
pub use bochner_engine::{
    Bias, Blocks, Decoder, DecoderSize, Form, Mask, PositionCode, Rotary, RotaryPairing, Settings,
    Workspace, attend, attend_into, attend_vjp, weights,
};
pub use bochner_kernels::{Coupling, Norms, RandomFeatureMap};
#[cfg(feature = "dfdx")]
pub use bochner_nn::prelude;
pub use bochner_spectral::{
    Copula, DirectInit, Drawn, ParameterSpec, Posterior, Preset, Size, Stationarity,
};
pub use card::{Card, Cost, Draws, Masks, Penalty, Rows, Stream, Support, Symmetry};
#[cfg(feature = "dfdx")]
pub use dfdx;
pub use error::Error;
pub use fixed_point::{FRACTION_BITS, attend_by_shifts, from_fixed_point, ternary, to_fixed_point};
pub use grid::{fold, unfold};
#[cfg(feature = "dfdx")]
pub use layer::{
    Attention, BipolarLayer, BipolarLayerConfig, LearnableQueryLayer, MultiHead, MultiHeadConfig,
    MultiHeadCrossDecoder, MultiHeadDecoder, MultiHeadInference, MultiHeadOperation,
    PackedMultiHead, PositionBias, Projection, SavedHeads, StaticConfig,
};
pub use kernels::{Points, PointsGradients, Trained};
pub use learnable_query::{LearnableQuery, Pooled, PooledGradients, QueryScale};
pub use magnitude::{Magnitude, log_norm_sq, magnitude, magnitude_vjp};
pub use mechanism::{
    Bipolar, Cat, CatForm, Cotangents, CustomMechanism, CustomSettings, Decoding, Expsin, Fingerprint, Forward, Gradients,
    IkanDirect, Inspection, Linear, Mechanism, Mikan, MikanGradients, Pass, Performer, Primal,
    PrimalReduction, PrimalScores, PrimalTrace, PrimalWeights, RbfOnly, Redraw, ScoreMechanism, SharedMechanism,
    Softmax, Streams, Variant, find, register, registry,
};
pub use ndarray;
pub use rand;
pub use shiftmax::{Shiftmax, shiftmax, shiftmax_vjp};
pub use time_input::{TimeBasis, TimeInput};

/// Runs the examples of the page on extending.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/extending.md")]
struct Extending;
