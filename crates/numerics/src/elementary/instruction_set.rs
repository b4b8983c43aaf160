//! The choice of instructions at run time.

use super::arithmetic::{Arithmetic, Separate};
use super::lane::Lane;
use crate::product::{REGISTERS, Vector};
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::LazyLock;

#[cfg(target_arch = "aarch64")]
use super::arithmetic::Neon;
#[cfg(target_arch = "x86_64")]
use super::arithmetic::{Avx2, Avx512};

/// Work that is compiled once for each instruction set.
///
/// ```
/// use bochner_numerics::instructions::{Arithmetic, Task, run};
///
/// struct Square<'a>(&'a mut [f32]);
///
/// impl Task for Square<'_> {
///     #[inline(always)]
///     fn run<A: Arithmetic>(self, _: A) {
///         self.0.iter_mut().for_each(|x| *x *= *x);
///     }
/// }
///
/// let mut x = [3.0, 4.0];
/// run(Square(&mut x));
/// assert_eq!(x, [9.0, 16.0]);
/// ```
///
/// A call of the method takes a value of the instruction set, which exists only where the processor has it:
///
/// ```
/// use bochner_numerics::instructions::{Arithmetic, Task};
///
/// fn with_proof<A: Arithmetic>(task: impl Task, available: A) {
///     task.run(available);
/// }
/// ```
///
/// ```compile_fail,E0061
/// use bochner_numerics::instructions::{Arithmetic, Task};
///
/// fn without_proof<A: Arithmetic>(task: impl Task) {
///     task.run::<A>();
/// }
/// ```
pub trait Task {
    /// Does the work; `available` proves that the processor has the instructions of `A`.
    ///
    /// The function and everything it calls must be `#[inline(always)]`: only then are they compiled
    /// with the instructions of the function they are called from.
    fn run<A: Arithmetic>(self, available: A);
}

/// Runs a task with the fastest instructions that this processor has.
///
/// # Panics
/// If the environment variable [`VARIABLE`] asks for instructions that the processor lacks.
pub fn run(task: impl Task) {
    InstructionSet::fastest().run(task);
}

/// [`run`] for a task that counts bits: where the processor has AVX-512's instruction for it, eight words at a time.
///
/// # Panics
/// The panic of [`run`].
pub fn run_counting_bits(task: impl Task) {
    InstructionSet::fastest().run_counting_bits(task);
}

/// The environment variable that asks for certain instructions: `avx512`, `avx2`, `neon` or
/// `portable`, in upper or lower case. Tests and benchmarks compare instruction sets with it.
pub const VARIABLE: &str = "BOCHNER_INSTRUCTIONS";

/// The names of all instruction sets that this processor has, the fastest first.
pub fn available() -> impl Iterator<Item = &'static str> {
    InstructionSet::available().map(|set| set.0.name())
}

/// The name of the instructions in use.
///
/// # Panics
/// The panic of [`run`].
pub fn name() -> &'static str {
    InstructionSet::fastest().0.name()
}

/// Instructions that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstructionSet(Kind);

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
    fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
            Self::Portable => "portable",
        }
    }

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
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            Self::Portable => true,
        }
    }
}

impl InstructionSet {
    /// All sets that this processor has, the fastest first.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        FASTEST_FIRST
            .iter()
            .filter(|kind| kind.is_available())
            .map(|&kind| Self(kind))
    }

    /// The fastest set that this processor has, or the one that is asked for.
    pub(crate) fn fastest() -> Self {
        static FASTEST: LazyLock<Result<InstructionSet, String>> = LazyLock::new(|| {
            let asked = std::env::var_os(VARIABLE);
            InstructionSet::asked_for(asked.as_ref().map(|name| name.to_string_lossy()))
        });
        match &*FASTEST {
            Ok(set) => *set,
            Err(reason) => Self::refuse(reason),
        }
    }

    /// Panics; each thread prints the reason once, since a pool's threads come here hundreds of times.
    #[cold]
    fn refuse(reason: &str) -> ! {
        thread_local!(static TOLD: Cell<bool> = const { Cell::new(false) });
        if TOLD.replace(true) {
            resume_unwind(Box::new(reason.to_owned()));
        }
        panic!("{reason}")
    }

    /// The set of this name in upper or lower case; the fastest set without a name.
    fn asked_for(name: Option<Cow<str>>) -> Result<Self, String> {
        let is_asked_for = |set: &Self| match &name {
            Some(name) => set.0.name().eq_ignore_ascii_case(name),
            None => true,
        };
        Self::available().find(is_asked_for).ok_or_else(|| {
            let known = available().collect::<Vec<_>>().join(", ");
            let name = name.unwrap_or_default();
            format!("{VARIABLE}={name}: this processor has {known}; set one of these, or none")
        })
    }

    /// Columns of a tile.
    pub(crate) fn panel_width<T: Lane>(self) -> usize {
        let lanes = match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => <T::Vector512 as Vector<T>>::LANES,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => <T::Vector256 as Vector<T>>::LANES,
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => <T::Vector128 as Vector<T>>::LANES,
            Kind::Portable => <T::Vector128 as Vector<T>>::LANES,
        };
        REGISTERS * lanes
    }

    #[allow(unsafe_code)]
    pub(crate) fn run(self, task: impl Task) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `available` alone makes a set, after the processor said that it has it.
            Kind::Avx512 => unsafe { avx512(task) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `available` alone makes a set, after the processor said that it has it.
            Kind::Avx2 => unsafe { avx2(task) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => task.run(Neon),
            Kind::Portable => task.run(Separate),
        }
    }

    #[allow(unsafe_code)]
    fn run_counting_bits(self, task: impl Task) {
        #[cfg(target_arch = "x86_64")]
        if self.0 == Kind::Avx512 && is_x86_feature_detected!("avx512vpopcntdq") {
            // SAFETY: `available` alone makes a set, after the processor said that it has it, and has just said that it
            // counts bits.
            return unsafe { avx512_counting_bits(task) };
        }
        self.run(task);
    }
}

/// # Safety
/// The processor has AVX-512 (F, DQ, BW, VL), AVX2, FMA and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,popcnt")]
#[allow(unsafe_code)]
fn avx512(task: impl Task) {
    // SAFETY: the processor has the instructions by contract.
    task.run(unsafe { Avx512::available() });
}

/// # Safety
/// The processor has AVX-512 (F, DQ, BW, VL, VPOPCNTDQ), AVX2, FMA and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512vpopcntdq,avx2,fma,popcnt")]
#[allow(unsafe_code)]
fn avx512_counting_bits(task: impl Task) {
    // SAFETY: the processor has the instructions by contract.
    task.run(unsafe { Avx512::available() });
}

/// # Safety
/// The processor has AVX2, FMA and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,popcnt")]
#[allow(unsafe_code)]
fn avx2(task: impl Task) {
    // SAFETY: the processor has the instructions by contract.
    task.run(unsafe { Avx2::available() });
}
