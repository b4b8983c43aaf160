//! Checks of a mask against the sizes of a call.

use super::Mask;
use crate::Error;
use bochner_numerics::argument::one_or;

impl Mask {
    /// Checks the mask against the sizes of a call.
    ///
    /// # Errors
    /// [`Error::Mask`] if a list of lengths does not have one entry an example, if a length is
    /// beyond the sequence, if matrices are not `[1 or B, 1 or M, Tq, Tk]`, if packed sequences are in
    /// several examples or do not fill the one, or if causality empties a window.
    pub fn check(&self, [batch, heads, queries, keys]: [usize; 4]) -> Result<(), Error> {
        for (what, lengths, positions) in [
            ("key lengths", &self.key_lengths, keys),
            ("query lengths", &self.query_lengths, queries),
        ] {
            if let Some(lengths) = lengths {
                check_lengths(what, lengths, batch, positions)?;
            }
        }
        self.check_reach()?;
        self.check_packed(batch, queries, keys)?;
        let Some(matrices) = &self.matrices else {
            return Ok(());
        };
        let [examples, of_heads, rows, columns] = matrices.shape();
        let fits = |given, all| given == 1 || given == all;
        if !fits(examples, batch) || !fits(of_heads, heads) {
            return Err(Error::Mask {
                what: "number of matrices",
                expected: format!(
                    "{} for the examples and {} for the heads",
                    one_or(batch),
                    one_or(heads)
                ),
                got: format!("{examples} for the examples and {of_heads} for the heads"),
            });
        }
        if [rows, columns] == [queries, keys] {
            return Ok(());
        }
        Err(Error::Mask {
            what: "matrix",
            expected: format!("{queries} rows of {keys}"),
            got: format!("{rows} rows of {columns}"),
        })
    }

    /// Rejects a causal window that contains no position at or before the query but its own.
    ///
    /// # Errors
    /// [`Error::Mask`].
    pub fn check_reach(&self) -> Result<(), Error> {
        let plain = self.causal && self.prefix == 0 && self.more_of_block == 0;
        match self.window {
            Some([0, right]) if plain && right > 0 => Err(Error::Mask {
                what: "positions of a window under a causal mask",
                expected: "to the left of the query: the mask hides those to its right".to_owned(),
                got: format!("0 to the left and {right} to the right"),
            }),
            _ => Ok(()),
        }
    }

    fn check_packed(&self, batch: usize, queries: usize, keys: usize) -> Result<(), Error> {
        let Some(ends) = &self.ends else {
            return Ok(());
        };
        let total = ends.last().copied().unwrap_or(0);
        let misfit = |expected, got| {
            let what = "packed sequences";
            Err(Error::Mask {
                what,
                expected,
                got,
            })
        };
        if batch != 1 || queries != keys {
            let expected = "of one example with as many queries as keys".to_owned();
            return misfit(expected, format!("of {batch} with {queries} and {keys}"));
        }
        if total != keys || !ends.is_sorted() {
            let expected = format!("of lengths that add up to {keys}, the length of the example");
            return misfit(expected, format!("to {total}"));
        }
        Ok(())
    }
}

/// Checks that there is one length an example, and none beyond the sequence.
///
/// # Errors
/// [`Error::Mask`].
pub fn check_lengths(
    what: &'static str,
    lengths: &[usize],
    batch: usize,
    positions: usize,
) -> Result<(), Error> {
    if lengths.len() != batch {
        return Err(Error::Mask {
            what,
            expected: format!("one for each of {batch} examples"),
            got: format!("{}", lengths.len()),
        });
    }
    match lengths.iter().find(|&&length| length > positions) {
        None => Ok(()),
        Some(length) => Err(Error::Mask {
            what,
            expected: format!("at most {positions}, the length of the sequence"),
            got: length.to_string(),
        }),
    }
}
