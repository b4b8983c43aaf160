//! The names of dfdx that a program with the layers of this workspace needs.
//!
//! `dfdx::prelude` has a module `safetensors` and layers such as `Linear` and `Residual`, whose names clash with those of
//! other crates. This list has tensors, shapes and traits alone.
//!
//! ```
//! use bochner_nn::prelude::*;
//! use safetensors::SafeTensors;
//!
//! let x = Cpu::default().tensor([1.0_f32, 2.0]);
//! let gradients = x.leaky_trace().square().sum().backward();
//! assert_eq!(gradients.get(&x).array(), [2.0, 4.0]);
//! assert!(SafeTensors::deserialize(&[]).is_err());
//! ```

pub use dfdx::nn::{
    BuildModule, BuildOnDevice, DeviceBuildExt, LoadFromSafetensors, Module, ModuleMut,
    SaveToSafetensors, ZeroGrads,
};
pub use dfdx::optim::Optimizer;
pub use dfdx::shapes::{Const, Dim, HasShape, Rank0, Rank1, Rank2, Rank3, Rank4};
pub use dfdx::tensor::{
    AsArray, Cpu, NoneTape, OnesTensor, OwnedTape, PutTape, SampleTensor, SplitTape, Tape, Tensor,
    TensorFrom, TensorFromVec, Trace, ZerosTensor,
};
pub use dfdx::tensor_ops::{Backward, BroadcastTo, MeanTo, ReshapeTo, SumTo, TryAdd, TryMul};
