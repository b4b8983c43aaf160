//! The choice of instructions at run time.

use super::arithmetic::{Arithmetic, Separate};
use std::sync::LazyLock;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::arithmetic::Fused;

/// Work that is compiled once for each instruction set.
pub(super) trait Task {
    /// Must be `#[inline(always)]`, as everything it calls: only then is it compiled with the
    /// instructions of the function it is called from.
    fn run<A: Arithmetic>(self);
}

/// Instructions that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InstructionSet(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Portable,
}

const FASTEST_FIRST: &[Kind] = &[
    #[cfg(target_arch = "x86_64")]
    Kind::Avx512,
    #[cfg(target_arch = "x86_64")]
    Kind::Avx2,
    #[cfg(target_arch = "aarch64")]
    Kind::Neon,
    Kind::Portable,
];

impl Kind {
    fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && Self::Avx2.is_available()
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            Self::Portable => true,
        }
    }
}

impl InstructionSet {
    /// All that this processor has, the fastest first.
    pub(super) fn available() -> impl Iterator<Item = Self> {
        FASTEST_FIRST
            .iter()
            .filter(|kind| kind.is_available())
            .map(|&kind| Self(kind))
    }

    /// The fastest that this processor has.
    pub(super) fn fastest() -> Self {
        static FASTEST: LazyLock<InstructionSet> = LazyLock::new(|| {
            InstructionSet::available()
                .next()
                .expect("the portable instructions are always available")
        });
        *FASTEST
    }

    #[allow(unsafe_code)]
    pub(super) fn run(self, task: impl Task) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `available` alone makes a set, after the processor said that it has it.
            Kind::Avx512 => unsafe { avx512(task) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kind::Avx2 => unsafe { avx2(task) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => task.run::<Fused>(),
            Kind::Portable => task.run::<Separate>(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")]
fn avx512(task: impl Task) {
    task.run::<Fused>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(task: impl Task) {
    task.run::<Fused>();
}
