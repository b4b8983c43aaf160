//! Layers of sizes that no memory holds are refused.

use bochner_nn::{Embedding, Error, FeedForward, LayerNorm, Linear};
use bochner_numerics::{ArgumentError, Seed};
use dfdx::prelude::Cpu;
use dfdx::tensor::CpuError;

/// The error of each layer for these sizes.
fn of(first: usize, second: usize) -> [Error; 4] {
    let (device, mut rng) = (Cpu::default(), Seed::new(1).stream("initial values"));
    let rng = &mut rng;
    let config = Default::default();
    [
        Embedding::<f32>::try_new(&device, first, second, rng).err(),
        Linear::<usize, usize, f32>::try_new(&device, first, second, rng).err(),
        LayerNorm::<usize, f32>::try_new(&device, first.saturating_mul(second)).err(),
        FeedForward::<usize, usize, usize, f32>::try_new(&device, (first, second, 1), config, rng)
            .err(),
    ]
    .map(|error| error.expect("an error"))
}

#[test]
fn sizes_that_no_memory_holds_are_refused_by_type() {
    // The last are few enough to be counted, but not their four bytes each.
    for (first, second) in [(usize::MAX, 4), (1 << 33, 1 << 33), (1 << 61, 1)] {
        for error in of(first, second) {
            assert!(
                matches!(error, Error::Argument(ArgumentError::OutOfRange { got, .. }) if got > 1e18),
                "{error}"
            );
        }
    }
    // A number of elements that can be addressed, but that no machine has memory for.
    for error in of(1 << 50, 2) {
        assert!(
            matches!(error, Error::Device(CpuError::OutOfMemory)),
            "{error}"
        );
    }
    for error in of(3, 0) {
        assert!(
            matches!(error, Error::Argument(ArgumentError::Empty { .. })),
            "{error}"
        );
        let start = "`a parameter of the layer` has shape [";
        assert!(error.to_string().starts_with(start), "{error}");
    }
}
