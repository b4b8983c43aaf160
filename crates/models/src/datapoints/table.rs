//! Tables with hidden cells.

use bochner_numerics::{ArgumentError, argument};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// The content of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", remote = "Self")]
pub enum Column {
    /// A number; it is best standardised, since its squared error counts as it is.
    Number,
    /// One of so many classes, at least 1, written as 0, 1, and so on.
    Class(usize),
}

bochner_numerics::checked_when_read!(Column);

impl Column {
    fn validate(&self) -> Result<(), ArgumentError> {
        match *self {
            Self::Number => Ok(()),
            Self::Class(classes) => argument::at_least_one("class", classes),
        }
    }

    /// The numbers that say what stands in a cell.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Number => 1,
            Self::Class(classes) => classes,
        }
    }
}

/// A table of n rows, some of whose cells are hidden; what they hold is not kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    /// Numbers, and the numbers of classes; 0 where a cell is hidden.
    values: Array2<f32>,
    is_known: Array2<bool>,
}

impl Table {
    /// Creates a table from values `[n, columns]` and the mask of its known cells.
    ///
    /// # Errors
    /// [`ArgumentError`] without rows or columns, unless the shapes fit, for a known number that is not finite, a known
    /// class that does not exist, and a column without a known cell, from which nothing can be inferred.
    pub fn new(
        columns: Vec<Column>,
        mut values: Array2<f32>,
        is_known: Array2<bool>,
    ) -> Result<Self, ArgumentError> {
        argument::not_empty("values", values.shape())?;
        argument::shape("columns", &[values.ncols()], &[columns.len()])?;
        argument::shape("is_known", values.shape(), is_known.shape())?;
        for (j, column) in columns.iter().enumerate() {
            let known = (0..values.nrows()).filter(|&i| is_known[[i, j]]);
            let known: Vec<f32> = known.map(|i| values[[i, j]]).collect();
            argument::at_least_one(format!("known cells of column {j}"), known.len())?;
            for value in known {
                column.check(j, value)?;
            }
        }
        values.zip_mut_with(&is_known, |value, known| {
            if !known {
                *value = 0.0;
            }
        });
        Ok(Self {
            columns,
            values,
            is_known,
        })
    }

    /// The contents of the columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The number of rows n.
    pub fn rows(&self) -> usize {
        self.values.nrows()
    }

    /// The contents of the cells, 0 where they are hidden.
    pub fn values(&self) -> ArrayView2<'_, f32> {
        self.values.view()
    }

    /// The mask of the known cells.
    pub fn is_known(&self) -> ArrayView2<'_, bool> {
        self.is_known.view()
    }

    /// Hides a cell.
    pub(super) fn hide(&mut self, [row, column]: [usize; 2]) {
        self.is_known[[row, column]] = false;
        self.values[[row, column]] = 0.0;
    }

    /// Writes over a known cell.
    pub(super) fn put(&mut self, [row, column]: [usize; 2], value: f32) {
        self.values[[row, column]] = value;
    }
}

impl Column {
    /// Refuses what cannot stand in a cell.
    pub(super) fn check(self, column: usize, value: f32) -> Result<(), ArgumentError> {
        let name = || format!("a cell of column {column}");
        match self {
            Self::Number => {
                argument::in_range(value.is_finite(), name(), f64::from(value), "finite")
            }
            Self::Class(classes) => {
                let is_class = value >= 0.0 && value < classes as f32 && value.fract() == 0.0;
                let allowed = format!("a class, a whole number below {classes}");
                argument::in_range(is_class, name(), f64::from(value), allowed)
            }
        }
    }
}
