//! The processor, and what it can do at best.

use crate::workload::{Element, Pass, Run, Workload};
use bochner_numerics::{Mat, MatMut, Real, matmul, parallel};
use serde::{Deserialize, Serialize};
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The machine of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Threads that it runs at a time.
    pub cores: usize,
    /// The instruction sets of the processor that matter here.
    pub instruction_sets: Vec<String>,
    /// `BOCHNER_INSTRUCTIONS`, if the choice was forced.
    pub forced: Option<String>,
    /// The commit of the working directory, if it is one of git's.
    pub commit: Option<String>,
    /// The compiler.
    pub rustc: String,
    /// The peers' framework, if they ran.
    pub torch: Option<String>,
}

impl Machine {
    /// The machine that this program runs on.
    pub fn here(forced: Option<String>, torch: Option<String>) -> Self {
        let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mut names = known.lines().filter(|line| line.starts_with("model name"));
        let name = names.next().and_then(|line| line.split(": ").nth(1));
        Self {
            processor: name.unwrap_or("unknown").to_owned(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            instruction_sets: instruction_sets(),
            forced,
            commit: first_line(
                Path::new("git"),
                &["describe", "--always", "--dirty", "--abbrev=12"],
            ),
            rustc: first_line(Path::new("rustc"), &["--version"]).unwrap_or_default(),
            torch,
        }
    }
}

/// The first line that a program prints.
pub(crate) fn first_line(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next()?.to_owned()).filter(|_| output.status.success())
}

#[cfg(target_arch = "x86_64")]
fn instruction_sets() -> Vec<String> {
    let sets = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512bf16", is_x86_feature_detected!("avx512bf16")),
        (
            "avx512vpopcntdq",
            is_x86_feature_detected!("avx512vpopcntdq"),
        ),
    ];
    let present = sets.into_iter().filter(|(_, present)| *present);
    present.map(|(name, _)| name.to_owned()).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn instruction_sets() -> Vec<String> {
    Vec::new()
}

/// The workload that sets the pace for products of a type of number.
pub(crate) fn product(element: Element) -> &'static str {
    match element {
        Element::Single => "product-f32",
        Element::Double => "product-f64",
    }
}

/// The workload that sets the pace for sweeps through memory.
pub(crate) const TRIAD: &str = "triad";

/// Whether a workload is one of [`ceilings`].
pub(crate) fn is_ceiling(workload: &Workload) -> bool {
    let names = [product(Element::Single), product(Element::Double), TRIAD];
    names.contains(&workload.name)
}

/// The nanoseconds in which a cache line goes from one core to another and back; none on a single core.
///
/// A virtual machine's cores are what its host runs them on: for a while two that share a cache, then two
/// that do not. Work whose threads read what the others wrote takes its pace from that.
pub(crate) fn crossing_ns() -> Option<f64> {
    const TRIES: usize = 5;
    let several = thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    let tries = (0..TRIES).filter(|_| several).filter_map(|_| crossing());
    tries.reduce(f64::min)
}

/// `None` if the threads do not get a core each.
fn crossing() -> Option<f64> {
    const TRIPS: u32 = 50_000;
    const LIMIT: Duration = Duration::from_millis(100);
    const LOOKS: u32 = 1 << 16;
    let (turn, clock) = (AtomicU32::new(0), Instant::now());
    // The wait never yields: two threads that yield can share one core, which would go unnoticed.
    let wait_for = |value| {
        let mut looks = 0_u32;
        while turn.load(Ordering::Acquire) != value {
            looks += 1;
            if looks.is_multiple_of(LOOKS) && clock.elapsed() > LIMIT {
                return false;
            }
        }
        true
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for trip in 0..TRIPS {
                if !wait_for(2 * trip + 1) {
                    return;
                }
                turn.store(2 * trip + 2, Ordering::Release);
            }
        });
        let start = Instant::now();
        for trip in 0..TRIPS {
            turn.store(2 * trip + 1, Ordering::Release);
            if !wait_for(2 * trip + 2) {
                return None;
            }
        }
        Some(1e9 * start.elapsed().as_secs_f64() / f64::from(TRIPS))
    })
}

const SIZES: [usize; 4] = [256, 512, 1024, 2048];
const TRIAD_LENGTH: usize = 1 << 24;

/// Square matrix products, cut over the threads by rows, and $a_i = b_i + s c_i$ over arrays that
/// no cache holds.
pub(crate) fn ceilings() -> Vec<Workload> {
    let mut ceilings = Vec::new();
    for n in SIZES {
        ceilings.push(square(n, Element::Single, move || square_product::<f32>(n)));
        ceilings.push(square(n, Element::Double, move || square_product::<f64>(n)));
    }
    let length = TRIAD_LENGTH as f64;
    let passes = vec![Pass::new("fwd", 2.0 * length, 12.0 * length)];
    let triad = || Ok(vec![triad()]);
    ceilings.push(Workload::new(TRIAD, [TRIAD_LENGTH], passes, triad));
    ceilings
}

fn square(n: usize, element: Element, start: impl Fn() -> Run + 'static) -> Workload {
    let width = match element {
        Element::Single => 4.0,
        Element::Double => 8.0,
    };
    let n2 = (n * n) as f64;
    let passes = vec![Pass::new("fwd", 2.0 * n2 * n as f64, 3.0 * n2 * width)];
    let start = move || Ok(vec![start()]);
    Workload {
        element,
        ..Workload::new(product(element), [n], passes, start)
    }
}

fn square_product<T: Real>(n: usize) -> Run {
    let entries = |step: usize| -> Vec<T> {
        let entry = |i| T::of((i * step % 17) as f64 - 8.0);
        (0..n * n).map(entry).collect()
    };
    let (a, b, mut c) = (entries(5), entries(3), entries(1));
    Box::new(move || {
        let rows = n.div_ceil(rayon::current_num_threads());
        parallel::for_each_chunk(&mut c, rows * n, |i, piece| {
            let own = i * rows..i * rows + piece.len() / n;
            let (a, len) = (Mat::new(&a, n, n).row_range(own.clone()), own.len());
            let c = MatMut::new(piece, len, n);
            matmul(T::one(), a, Mat::new(&b, n, n), T::zero(), c);
        });
        black_box(&c);
        Ok(())
    })
}

fn triad() -> Run {
    let (b, c) = (vec![1.0_f32; TRIAD_LENGTH], vec![2.0; TRIAD_LENGTH]);
    let mut a = vec![0.0; TRIAD_LENGTH];
    Box::new(move || {
        const PIECE: usize = 1 << 16;
        parallel::for_each_chunk(&mut a, PIECE, |i, piece| {
            let own = i * PIECE..i * PIECE + piece.len();
            for ((a, b), c) in piece.iter_mut().zip(&b[own.clone()]).zip(&c[own]) {
                *a = b + 0.5 * c;
            }
        });
        black_box(&a);
        Ok(())
    })
}
