//! The processor, and what it can do at best.

use crate::Measured;
use crate::workload::{Element, Pass, Run, Workload};
use bochner_numerics::{Mat, MatMut, Real, instructions, matmul, parallel};
use serde::Serialize;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::thread;

/// The conditions of a measurement: the processor and its instruction sets, the commit of the working directory, the
/// compiler, the instruction sets that ours are held to, and the peers' framework.
pub(crate) fn description(forced: Option<&str>, torch: Option<&str>) -> String {
    let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut names = known.lines().filter(|line| line.starts_with("model name"));
    let name = names.next().and_then(|line| line.split(": ").nth(1));
    let commit = ["describe", "--always", "--dirty", "--abbrev=12"];
    format!(
        "{}, {} cores ({}); ours ({}) with {}, {}; torch {}",
        name.unwrap_or("unknown"),
        thread::available_parallelism().map_or(1, usize::from),
        instructions::available().collect::<Vec<_>>().join(", "),
        first_line(Path::new("git"), &commit).unwrap_or_default(),
        forced.unwrap_or("all of them"),
        first_line(Path::new("rustc"), &["--version"]).unwrap_or_default(),
        torch.unwrap_or("not run"),
    )
}

/// The first line that a program prints.
pub(crate) fn first_line(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next()?.to_owned()).filter(|_| output.status.success())
}

/// The best that the machine reached in a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Ceilings {
    /// Products of `f32`: the best GFLOP/s.
    pub gflops_f32: f64,
    /// Products of `f64`: the best GFLOP/s.
    pub gflops_f64: f64,
    /// Sweeps through memory: the best GB/s.
    pub gb_per_s: f64,
}

impl Ceilings {
    /// Notes the fastest run of one of the [`ceilings`].
    pub(crate) fn add(&mut self, workload: &Workload, measured: &Measured) {
        let pass = &workload.passes[0];
        let operations = measured.operations(pass.name).unwrap_or(0.0);
        let (best, amount) = match workload.element {
            _ if workload.name == TRIAD => (&mut self.gb_per_s, pass.bytes),
            Element::Single => (&mut self.gflops_f32, operations),
            Element::Double => (&mut self.gflops_f64, operations),
        };
        let ms = measured.min_ms(pass.name).unwrap_or(f64::INFINITY);
        *best = best.max(amount / ms / 1e6);
    }

    /// The larger share of what the machine can do, in words: of its products, or of its memory.
    pub(crate) fn share(&self, element: Element, [operations, bytes]: [f64; 2], ms: f64) -> String {
        let gflops = match element {
            Element::Single => self.gflops_f32,
            Element::Double => self.gflops_f64,
        };
        let percent = |amount, best| 100.0 * amount / ms / 1e6 / best;
        let product = percent(operations, gflops);
        let memory = percent(bytes, self.gb_per_s);
        match product >= memory {
            true => format!("{product:.0} %"),
            false => format!("{memory:.0} % of memory"),
        }
    }
}

/// The name of the workload that sweeps through memory.
const TRIAD: &str = "triad";

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
    let passes = vec![Pass::new("fwd", 12.0 * length)];
    let triad = || Ok(vec![triad()]);
    ceilings.push(Workload::new(TRIAD, [TRIAD_LENGTH], passes, triad));
    ceilings
}

fn square(n: usize, element: Element, start: impl Fn() -> Run + 'static) -> Workload {
    let (name, width) = match element {
        Element::Single => ("product-f32", 4.0),
        Element::Double => ("product-f64", 8.0),
    };
    let passes = vec![Pass::new("fwd", 3.0 * (n * n) as f64 * width)];
    let start = move || Ok(vec![start()]);
    Workload {
        element,
        ..Workload::new(name, [n], passes, start)
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
            let mine = i * rows..i * rows + piece.len() / n;
            let (a, len) = (Mat::new(&a, n, n).row_range(mine.clone()), mine.len());
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
            let mine = i * PIECE..i * PIECE + piece.len();
            for ((a, b), c) in piece.iter_mut().zip(&b[mine.clone()]).zip(&c[mine]) {
                *a = b + 0.5 * c;
            }
        });
        black_box(&a);
        Ok(())
    })
}
