//! Verdicts, and the comparisons that they rest on.

use std::fmt;

/// The outcome of a claim. V-numbers and measures alone decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The null hypothesis is rejected.
    Reproduced,
    /// The opposite holds by the same rule.
    Contradicted,
    /// Neither holds.
    Undecided,
    /// The runs cannot tell, and why.
    NotTested(String),
    /// The claim has no p-value; the numbers that are shown.
    Shown(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reproduced => f.write_str("reproduced"),
            Self::Contradicted => f.write_str("contradicted"),
            Self::Undecided => f.write_str("undecided"),
            Self::NotTested(why) => write!(f, "not tested: {why}"),
            Self::Shown(numbers) => write!(f, "shown, not judged: {numbers}"),
        }
    }
}

/// A claim with what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Its number in the suite.
    pub name: &'static str,
    /// The sentence.
    pub text: &'static str,
    /// The null hypothesis, the side and the margin.
    pub null: String,
    /// The p-values of the claim and of its opposite, adjusted over the claims of the page; absent if it was not tested.
    pub p_values: Option<[f64; 2]>,
    /// The verdict.
    pub verdict: Verdict,
    /// The comparisons that the verdict rests on.
    pub evidence: Vec<Evidence>,
}

/// A comparison that a verdict rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The quantity.
    pub quantity: String,
    /// The model.
    pub model: String,
    /// The other model, or the value.
    pub other: String,
    /// The sets that count.
    pub sets: Vec<&'static str>,
    /// The difference in favour of the claim: mean ± standard error, or the runs that reach the value.
    pub shown: String,
    /// The difference in R-numbers, which decide nothing.
    pub in_r: Option<String>,
    /// The published effect, where the paper prints both sides of the comparison on the same sets.
    pub published: Option<Effect>,
    /// The one-sided p-values of the hypothesis and of its opposite.
    pub p_values: [f64; 2],
}

/// A published effect, and the chance to find it with the runs that there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The published gain, in favour of the claim.
    pub gain: f64,
    /// The [power](crate::statistics::Estimate::power) of the comparison by itself at this gain.
    pub power: f64,
    /// The level of the comparison by itself: its chance to be found without any effect.
    pub level: f64,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (model, other, sets) = (&self.model, &self.other, self.sets.join(", "));
        write!(
            f,
            "{} of {model} against {other} on {sets}: {}",
            self.quantity, self.shown
        )
    }
}
