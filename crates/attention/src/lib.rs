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
//! independent choices: which kernel says that a query and a key are alike ([`engine::Kernel`], [`kernels`]), and
//! which norm says how loud a key is ([`Magnitude`]). This crate has the kernels, the norms and the mechanisms of the
//! papers. The engine below it, [`bochner-engine`](engine), computes attention for any pair of them, forward and
//! backward, without ever storing a `[Tq, Tk]` array ([`attend`], [`attend_vjp`]). Squared kernels and random features
//! have two forms, pair by pair and in linear time, equal up to rounding; the faster one is taken unless the choice is
//! forced ([`Form`]).
//!
//! Where a sequence is written one position at a time, a [`Decoder`](engine::Decoder) keeps a key-value cache, or, if
//! [`Form::LinearTime`] is asked for, sums whose size does not grow.
//!
//! Your own score, feature map or scan, in your own crate, is a mechanism like those of the papers ([`ScoreMechanism`],
//! [`CustomMechanism`](mechanism::CustomMechanism), [`register`]).
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
//! $f_S$ is stationary and $f_{NS}$ is not ([`kernels::Points`]). The four implicit ones are one
//! configuration: [`Stationarity`], p and [`Copula`] are independent of each other, the
//! [`Posterior`] of the points comes from the features or, under a causal mask, from nothing.
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
//! use bochner_attention::{Mask, Settings, kernels, magnitude::magnitude, weights};
//! use bochner_attention::ndarray::Array4;
//!
//! let q = Array4::from_shape_fn((1, 1, 1, 4), |(.., n)| 0.3 * n as f64);
//! let k = Array4::from_shape_fn((1, 1, 3, 4), |(_, _, t, n)| (t as f64 - 1.0) * 0.5 + 0.1 * n as f64);
//! let mask = Mask::none();
//! let softmax = weights(&Settings::softmax(&mask), q.view(), k.view())?;
//! let similarity = weights(&kernels::rbf(&mask), q.view(), k.view())?;
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
//! | [`attend`], [`attend_vjp`], [`weights`] | attention for any [`Settings`] |
//! | [`engine`] | everything else about attention without a mechanism: caches, forms, traits for your own kernels |
//! | [`kernels`] | the pairwise kernels and feature maps of the mechanisms |
//! | [`Magnitude`], [`magnitude`](mod@magnitude) | the norm of a key |
//! | [`Mask`] | the keys that a query attends to |
//! | [`Mechanism`], [`registry()`], [`find`], [`Variant`] | mechanisms with parameters, by name |
//! | [`ScoreMechanism`], [`register`] | a mechanism of your own |
//! | [`mechanism`] | what mechanisms are given and give back |
//! | [`Card`], [`card`] | what a mechanism is and can do |
//! | [`Softmax`], [`RbfOnly`], [`Expsin`], [`Linear`], [`IkanDirect`], [`Mikan`], [`Performer`] | settings of mechanisms |
//! | [`Cat`], [`Primal`], [`Bipolar`] | those of CAT, Primal-Attention and bipolar attention |
//! | [`shiftmax`], [`fixed_point`] | the normaliser of bipolar attention alone, and the whole on integers |
//! | [`Stationarity`], [`Copula`], [`Posterior`], [`Preset`] | the choices of the kernel family, from `bochner-spectral` |
//! | `MultiHead` | the trainable layer (feature `dfdx`) |
//! | `layer` | its decoders, the layer with learnt queries, bipolar attention over steps of time (feature `dfdx`) |
//! | [`time_input`] | time stamps as a part of a layer's input |

pub mod card;
mod error;
pub mod fixed_point;
mod gamma;
#[cfg(debug_assertions)]
mod instances;
pub mod kernels;
#[cfg(feature = "dfdx")]
pub mod layer;
pub mod magnitude;
pub mod mechanism;
pub mod shiftmax;
pub mod time_input;

pub use bochner_engine as engine;
pub use bochner_engine::{Bias, Form, Mask, Rotary, Settings, Wanted, attend, attend_vjp, weights};
#[cfg(feature = "dfdx")]
pub use bochner_nn::prelude;
pub use bochner_spectral::{Copula, Posterior, Preset, Stationarity};
pub use card::{Card, Support};
#[cfg(feature = "dfdx")]
pub use dfdx;
pub use error::Error;
#[cfg(feature = "dfdx")]
pub use layer::{MultiHead, MultiHeadConfig, PositionBias, StaticConfig};
pub use magnitude::Magnitude;
pub use mechanism::{
    Bipolar, Cat, Expsin, IkanDirect, Linear, Mechanism, Mikan, Pass, Performer, Primal, RbfOnly,
    ScoreMechanism, Softmax, Variant, find, register, registry,
};
pub use ndarray;
pub use rand;

/// Runs the examples of the page on extending.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/extending.md")]
struct ExtendingPage;
