//! Min-max scaling to $[-1, 1]$.

use crate::{Error, Table};
use bochner_numerics::argument;

/// The affine map that takes each column of a table onto $[-1, 1]$.
///
/// $$ z_{ij} = \frac{2 (x_{ij} - m_j)}{M_j - m_j} - 1 $$
///
/// *where* $m_j$, $M_j$ are the smallest and largest value of column $j$ of the table the map was
/// fitted to. A constant column carries no information and goes to 0; the inverse gives the
/// constant back.
///
/// ```
/// use bochner_datasets::{MinMax, Table};
///
/// let table = Table::new(vec![10.0, 5.0, 25.0, 5.0, 40.0, 5.0], 2)?;
/// let scale = MinMax::fit(&table);
/// let scaled = scale.transform(&table)?;
/// assert_eq!(scaled.values(), [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
/// assert_eq!(scale.inverse(&scaled)?.row(2), [40.0, 5.0]);
/// # Ok::<(), bochner_datasets::Error>(())
/// ```
///
/// # Numerics
/// The smallest and the largest value go to -1 and 1 exactly. The range of a column must itself
/// be a finite number.
#[derive(Clone, Debug, PartialEq)]
pub struct MinMax {
    ranges: Vec<(f64, f64)>,
}

impl MinMax {
    /// The map for the columns of `table`.
    pub fn fit(table: &Table) -> Self {
        let range = |j| {
            table
                .column(j)
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| {
                    (min.min(value), max.max(value))
                })
        };
        Self {
            ranges: (0..table.columns()).map(range).collect(),
        }
    }

    /// Smallest and largest value of each column.
    pub fn ranges(&self) -> &[(f64, f64)] {
        &self.ranges
    }

    /// The scaled table; values outside the fitted range go outside $[-1, 1]$.
    ///
    /// # Errors
    /// [`Error::Argument`] if the number of columns differs or a scaled value overflows.
    pub fn transform(&self, table: &Table) -> Result<Table, Error> {
        self.map(table, scaled)
    }

    /// The table in its original units.
    ///
    /// # Errors
    /// The errors of [`MinMax::transform`].
    pub fn inverse(&self, table: &Table) -> Result<Table, Error> {
        self.map(table, unscaled)
    }

    fn map(&self, table: &Table, f: fn(f64, f64, f64) -> f64) -> Result<Table, Error> {
        argument::shape(
            "table",
            &[table.rows(), self.ranges.len()],
            &[table.rows(), table.columns()],
        )?;
        let ranges = self.ranges.iter().cycle();
        let values = table.values().iter().zip(ranges);
        let values = values.map(|(&value, &(min, max))| f(value, min, max));
        Table::new(values.collect(), table.columns())
    }
}

fn scaled(value: f64, min: f64, max: f64) -> f64 {
    if min == max {
        return 0.0;
    }
    2.0 * ((value - min) / (max - min)) - 1.0
}

fn unscaled(value: f64, min: f64, max: f64) -> f64 {
    if min == max {
        return min;
    }
    min + (value + 1.0) / 2.0 * (max - min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_the_range_go_outside() {
        let scale = MinMax::fit(&Table::new(vec![0.0, 4.0], 1).unwrap());
        let outside = Table::new(vec![6.0, -2.0], 1).unwrap();
        assert_eq!(scale.transform(&outside).unwrap().values(), [2.0, -2.0]);
    }

    #[test]
    fn a_range_that_overflows_is_an_error() {
        let table = Table::new(vec![-f64::MAX, 0.0, f64::MAX], 1).unwrap();
        let error = MinMax::fit(&table).transform(&table).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("must be finite"), "{error}");
    }

    #[test]
    fn other_columns_are_refused() {
        let scale = MinMax::fit(&Table::new(vec![0.0, 4.0], 1).unwrap());
        let error = scale.transform(&Table::new(vec![0.0, 4.0], 2).unwrap());
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("shape [1, 2], but must have [1, 1]"),
            "{error}"
        );
    }
}
