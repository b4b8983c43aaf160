//! The choice of instructions, and all tests with each of them.

use bochner_numerics::instructions::{
    Arithmetic, Task, VARIABLE, available, name, run, run_counting_bits,
};
use std::process::{Command, Output};

/// Counts the bits of words, and writes the type of the arithmetic that it is run with.
struct Count<'a>(&'a [u64], &'a mut [u32], &'a mut &'static str);

impl Task for Count<'_> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let each = self.1.iter_mut().zip(self.0);
        each.for_each(|(count, word)| *count = word.count_ones());
        *self.2 = std::any::type_name::<A>();
    }
}

#[test]
fn bits_are_counted_with_the_instructions_that_were_asked_for() {
    // Whole vectors and some more; word i has i bits.
    let word = |i: u32| ((1_u64 << i) - 1).rotate_left(7 * i);
    let (words, want): (Vec<_>, Vec<_>) = (0..61).map(|i| (word(i), i)).unzip();
    let [(mut plain, mut used), (mut counting, mut used_to_count)] =
        [0, 1].map(|_| (vec![99; words.len()], ""));
    run(Count(&words, &mut plain, &mut used));
    run_counting_bits(Count(&words, &mut counting, &mut used_to_count));
    assert_eq!((&plain, &counting), (&want, &want));
    assert_eq!(used_to_count, used);
    let arithmetic = match name() {
        "avx512" => "Avx512",
        "avx2" => "Avx2",
        "neon" => "Neon",
        _ => "Separate",
    };
    assert!(used.ends_with(arithmetic), "{used} of {}", name());
    if let Ok(asked) = std::env::var(VARIABLE) {
        assert_eq!(name(), asked.to_lowercase());
    }
}

/// Runs the tests of this program that start no program, with the instructions of this name.
fn tests_with(instructions: &str) -> Output {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command
        .args(["--skip", "a_program_"])
        .env(VARIABLE, instructions);
    command.output().unwrap()
}

#[test]
#[cfg_attr(
    miri,
    ignore = "Miri starts no programs; its caller asks for each instruction set"
)]
fn a_program_passes_all_tests_with_every_instruction_set() {
    for set in available().filter(|set| *set != name()) {
        // Instructions are asked for in any case.
        let output = tests_with(&set.to_uppercase());
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{set}: {said}");
        assert!(said.contains("bits_are_counted"), "{said}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri starts no programs")]
fn a_program_is_answered_with_what_there_is() {
    for name in ["", "avx", "abacus"] {
        let output = tests_with(name);
        let said = String::from_utf8_lossy(&output.stdout);
        let reason = format!("{VARIABLE}={name}: this processor has ");
        let known = available().collect::<Vec<_>>().join(", ");
        assert!(
            !output.status.success() && said.contains(&(reason + &known)),
            "{said}"
        );
    }
}
