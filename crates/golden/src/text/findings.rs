//! Our results against the expected values of a case.

use crate::error::Fault;
use crate::report::{Verdict, Worst};
use std::fmt::Debug;

/// The largest difference of scores, precisions and means, all of the order of 100 at most.
pub(super) const SCORE: f64 = 1e-9;

/// What was compared so far: the number farthest from its expected value, and nothing that differs where
/// it must be equal.
#[derive(Default)]
pub(super) struct Findings {
    compared: usize,
    worst: Option<Worst>,
}

impl Findings {
    /// Compares values that must be equal.
    pub(super) fn equal<A: Debug + PartialEq<B>, B: Debug>(
        &mut self,
        name: &str,
        got: &A,
        expected: &B,
    ) -> Result<(), Fault> {
        self.compared += 1;
        if got == expected {
            return Ok(());
        }
        Err(Fault::Differs {
            name: name.to_owned(),
            expected: shortened(expected),
            got: shortened(got),
        })
    }

    /// Compares lists whose entries must be equal, and names the first that is not.
    pub(super) fn equal_lists<A: Debug + PartialEq<B>, B: Debug>(
        &mut self,
        name: &str,
        got: &[A],
        expected: &[B],
    ) -> Result<(), Fault> {
        for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
            self.equal(&format!("{name}[{at}]"), got, expected)?;
        }
        self.equal(
            &format!("the length of {name}"),
            &got.len(),
            &expected.len(),
        )
    }

    /// Compares numbers that may differ by `bound`.
    pub(super) fn near(&mut self, name: &str, got: f64, expected: f64, bound: f64) {
        self.compared += 1;
        let found = Worst {
            tensor: name.to_owned(),
            error: (got - expected).abs(),
            bound,
        };
        let is_worse = |worst: &Worst| found.ratio() > worst.ratio();
        if self.worst.as_ref().is_none_or(is_worse) {
            self.worst = Some(found);
        }
    }

    /// Compares lists of numbers that may differ by `bound`.
    pub(super) fn near_lists(
        &mut self,
        name: &str,
        got: &[f64],
        expected: &[f64],
        bound: f64,
    ) -> Result<(), Fault> {
        for (at, (&got, &expected)) in got.iter().zip(expected).enumerate() {
            self.near(&format!("{name}[{at}]"), got, expected, bound);
        }
        self.equal(
            &format!("the length of {name}"),
            &got.len(),
            &expected.len(),
        )
    }

    pub(super) fn verdict(self) -> Result<Verdict, Fault> {
        let equal = Worst {
            tensor: format!("{} values, all equal", self.compared),
            error: 0.0,
            bound: 0.0,
        };
        let worst = self.worst.unwrap_or(equal);
        Ok(match worst.within() {
            _ if self.compared == 0 => {
                return Err(Fault::NotComputed {
                    tensor: "nothing at all".to_owned(),
                });
            }
            true => Verdict::Passed(worst),
            false => Verdict::Exceeded(worst),
        })
    }
}

fn shortened(value: &impl Debug) -> String {
    const LONGEST: usize = 200;
    let mut text = format!("{value:?}");
    if let Some((at, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(at);
        text.push('…');
    }
    text
}
