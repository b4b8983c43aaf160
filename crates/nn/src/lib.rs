//! Training with analytic gradients on the tensors of dfdx.
//!
//! The mathematics of this workspace is free of automatic differentiation: a function that can be
//! trained through stands next to its vector-Jacobian product, on plain arrays. This crate is where
//! the two meet. [`record`] runs such an [`Operation`](bochner_ops::Operation) and puts it on dfdx's tape as **one**
//! step, whatever the shapes, strides and tapes of its inputs; from there on it is an operation of dfdx like any
//! other, and the layers here fit into models of dfdx and its layers into ours.
//!
//! Why not compose everything from dfdx's own operations? Each of those allocates its result, its
//! gradient and its copies of broadcast operands; a layer that is one fused operation reads its
//! input once, multiplies with the workspace's own matrix product, and keeps no more than its
//! backward pass needs. The composed forms are in the tests, where they check the fused ones.
//!
//! Three rules hold throughout:
//!
//! * **Sizes are types or numbers.** Every layer takes `Const<N>` or `usize` for each of its sizes.
//!   With `Const` it also follows dfdx's conventions (`dev.build_module::<builders::Linear<8, 2>,
//!   f32>()`, `Module`, safetensors).
//! * **Randomness is an argument**: initial values take a generator, a training pass carries its
//!   seed in [`Mode`](bochner_ops::Mode). Results do not depend on the number of threads.
//! * **A run can stop anywhere.** [`Parameters`] visits a model by name, and a [`Checkpoint`] holds
//!   parameters, moments, steps and streams: the continued run ends with the same bits.
//!
//! Some names, such as `Linear`, are in `dfdx::prelude` too: import [`prelude`] instead, which has tensors, shapes and traits.
//! [`dfdx`] and [`ndarray`] are at hand here in the versions whose tensors and arrays the doors take.
//!
//! dfdx's `Module` traits know one error type with two values. [`Linear::apply`] and its like
//! return an [`Error`] that says what was wrong; prefer them where no container of dfdx is in
//! between.
//!
//! # Example
//!
//! An operation of one's own, `y = x sin(x)`, and its derivative from the tape:
//!
//! ```
//! use bochner_nn::{TapeInputs, record_one};
//! use bochner_numerics::{ArgumentError, Real};
//! use bochner_ops::{BoxError, Operation, Slot, given, slots};
//! use bochner_nn::dfdx::prelude::*;
//! use bochner_nn::ndarray::{ArrayViewD, Zip};
//!
//! struct XSinX;
//!
//! impl<T: Real> Operation<T> for XSinX {
//!     type Saved = ();
//!
//!     fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
//!         let [x] = given(inputs)?;
//!         Ok(vec![x.to_vec()])
//!     }
//!
//!     fn forward(&self, x: &[ArrayViewD<T>], outputs: Vec<Slot<T>>) -> Result<(), BoxError> {
//!         let [y] = slots(outputs);
//!         y.put_array(x[0].mapv(|x| x * x.sin()));
//!         Ok(())
//!     }
//!
//!     fn backward(
//!         &self,
//!         x: &[ArrayViewD<T>],
//!         _saved: &(),
//!         cotangents: &[ArrayViewD<T>],
//!         gradients: Vec<Option<Slot<T>>>,
//!     ) -> Result<(), BoxError> {
//!         let [dx] = slots(gradients);
//!         if let Some(dx) = dx {
//!             let vjp = |&x: &T, &dy: &T| dy * (x.sin() + x * x.cos());
//!             dx.put_array(Zip::from(&x[0]).and(&cotangents[0]).map_collect(vjp));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let x = Cpu::default().tensor([0.0_f64, 1.0, 2.0]);
//! let y = record_one(XSinX, TapeInputs::new().with(x.leaky_trace())?, (Const::<3>,))?;
//! let dx = y.sum().backward().get(&x).array();
//! assert!((dx[1] - (1.0_f64.sin() + 1.0_f64.cos())).abs() < 1e-15);
//! # Ok::<(), bochner_nn::Error>(())
//! ```
//!
//! A whole training loop stands at [`Adam`], saving and loading at [`Checkpoint`]. Steps are short: a loop
//! gains by keeping threads awake between parallel sections
//! ([`parallel::awake`](bochner_numerics::parallel::awake) around a step, as the trainers of
//! `bochner-models` do) and freed memory for the next one
//! ([`keep_freed_memory`](bochner_numerics::memory::keep_freed_memory) once).
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | `bridge` | [`record`], [`record_one`], [`TapeInputs`], [`TapeOutputs`] |
//! | [`prelude`] | the names of dfdx that programs need |
//! | `parameters` | [`Parameters`], [`Parameter`], [`ParameterMut`], [`alloc_gradients`], [`flat_gradients`], [`tape_adding_to`] |
//! | `leaf` | [`Leaf`], parameters that are not copied |
//! | `collection` | [`Collection`], models of dfdx as [`Parameters`] |
//! | `layers` | [`Linear`], [`LayerNorm`], [`FeedForward`], [`Embedding`], [`mean_over_time`], [`activate`], [`Dropout`], [`builders`] |
//! | `loss` | [`mean_squared_error`], [`cross_entropy`], [`cross_entropy_of`], [`classification_loss`] |
//! | `optim` | [`Adam`] and AdamW, [`clip_by_norm`] |
//! | `checkpoint` | [`Checkpoint`], [`Progress`], [`Integrity`] |
//! | `weights` | [`NameTable`], [`StateDict`]: weights from and for other libraries |
//! | `element` | [`Element`], the bound on element types |
//! | `error` | [`Error`], [`CheckpointError`], [`WeightsError`] |

mod bridge;
mod checkpoint;
mod collection;
mod element;
mod error;
mod format;
mod layers;
mod leaf;
mod loss;
mod optim;
mod parameters;
pub mod prelude;
mod weights;

pub use bridge::{TapeInputs, TapeOutputs, record, record_one};
pub use checkpoint::{Checkpoint, CheckpointError, Integrity, Progress};
pub use collection::Collection;
pub use dfdx;
pub use element::Element;
pub use error::Error;
pub use layers::{
    Dropout, Embedding, EndsWith, FeedForward, FeedForwardConfig, LayerNorm, Linear, UniformWithin,
    activate, builders, mean_over_time,
};
pub use leaf::Leaf;
pub use loss::{classification_loss, cross_entropy, cross_entropy_of, mean_squared_error};
pub use ndarray;
pub use optim::{Adam, AdamState, clip_by_norm};
pub use parameters::{
    Parameter, ParameterMut, Parameters, alloc_gradients, drain_gradients, flat_gradients, join,
    parameter_count, set_flat_gradients, tape_adding_to, zero_gradients,
};
pub use rand;
pub use serde_json;
pub use weights::{NameTable, Place, Reshape, StateDict, WeightsError};
