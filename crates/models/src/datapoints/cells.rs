//! From cells to vectors and back, and how wrong what comes back is: one operation each.

use super::table::{Column, Table};
use bochner_numerics::{ArgumentError, Real, argument};
use bochner_ops::{BoxError, Operation, Slot, given, slices, slots};
use ndarray::ArrayViewD;

/// Returns the offset of each column's numbers, and the count of all numbers.
pub(super) fn starts(columns: &[Column], beside: usize) -> (Vec<usize>, usize) {
    let mut end = 0;
    let start = |column: &Column| {
        let start = end;
        end += column.size() + beside;
        start
    };
    let starts = columns.iter().map(start).collect();
    (starts, end)
}

/// The vectors of all cells, $h_{ij} = b_j + W_j x_{ij}$: an operation on W, `[sizes + columns, e]`, and b, `[columns, e]`,
/// with an output `[n, columns, e]`.
///
/// A cell $x_{ij}$ is a number or a class as a unit vector, and a further unit vector where it is hidden; so it is one row of
/// $W_j$ with a factor.
pub(super) struct Encode<T> {
    /// The row of W, and its factor, of each cell, row by row.
    cells: Vec<(usize, T)>,
    columns: usize,
    rows_of_w: usize,
}

impl<T: Real> Encode<T> {
    pub(super) fn new(table: &Table) -> Self {
        let columns = table.columns();
        let (starts, rows_of_w) = starts(columns, 1);
        let cells = table.values().into_iter().zip(table.is_known());
        let cells = cells.enumerate().map(|(at, (&value, &known))| {
            let j = at % columns.len();
            match (known, columns[j]) {
                (false, column) => (starts[j] + column.size(), T::one()),
                (true, Column::Number) => (starts[j], T::of(f64::from(value))),
                (true, Column::Class(_)) => (starts[j] + value as usize, T::one()),
            }
        });
        Self {
            cells: cells.collect(),
            columns: columns.len(),
            rows_of_w,
        }
    }
}

impl<T: Real> Operation<T> for Encode<T> {
    type Saved = ();

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [w, b] = given(inputs)?;
        let e = w.get(1).copied().unwrap_or_default();
        argument::shape("weight", &[self.rows_of_w, e], w)?;
        argument::shape("bias", &[self.columns, e], b)?;
        Ok(vec![vec![self.cells.len() / self.columns, self.columns, e]])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<(), BoxError> {
        let ([w, b], [output]) = (slices(inputs), slots(outputs));
        let e = w.len() / self.rows_of_w;
        let mut vectors = Vec::with_capacity(self.cells.len() * e);
        for (at, &(row, factor)) in self.cells.iter().enumerate() {
            let bias = &b[at % self.columns * e..][..e];
            let weight = w[row * e..][..e].iter();
            vectors.extend(weight.zip(bias).map(|(&w, &b)| b + factor * w));
        }
        output.put(vectors);
        Ok(())
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        _: &(),
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([w, b], [dh], [dw_slot, db_slot]) =
            (slices(inputs), slices(cotangents), slots(gradients));
        let e = w.len() / self.rows_of_w;
        let (mut dw, mut db) = (vec![T::zero(); w.len()], vec![T::zero(); b.len()]);
        for (at, (&(row, factor), dh)) in self.cells.iter().zip(dh.chunks(e)).enumerate() {
            let of_bias = db[at % self.columns * e..][..e].iter_mut();
            let of_weight = dw[row * e..][..e].iter_mut();
            for ((db, dw), &d) in of_bias.zip(of_weight).zip(dh) {
                *db += d;
                *dw += factor * d;
            }
        }
        for (slot, gradient) in [(dw_slot, dw), (db_slot, db)] {
            if let Some(slot) = slot {
                slot.put(gradient);
            }
        }
        Ok(())
    }
}

/// The predictions for all cells, $y_{ij} = U_j h_{ij} + c_j$: an operation on h, `[n, columns, e]`, U, `[sizes, e]`,
/// and c, `[sizes]`, with an output `[n, sizes]`. A column has one number, or the logits of its classes.
pub(super) struct Decode(pub(super) Vec<Column>);

impl Decode {
    /// Calls `f` with the place in y, of the vector in h, and of the row in U, of each number.
    fn each(&self, rows: usize, mut f: impl FnMut(usize, usize, usize)) {
        let (starts, sizes) = starts(&self.0, 0);
        for i in 0..rows {
            for (j, (column, start)) in self.0.iter().zip(&starts).enumerate() {
                for row in *start..start + column.size() {
                    f(i * sizes + row, i * self.0.len() + j, row);
                }
            }
        }
    }
}

impl<T: Real> Operation<T> for Decode {
    type Saved = ();

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [h, u, c] = given(inputs)?;
        let (n, e) = (
            h.first().copied().unwrap_or_default(),
            h.last().copied().unwrap_or_default(),
        );
        let (_, sizes) = starts(&self.0, 0);
        argument::shape("vectors", &[n, self.0.len(), e], h)?;
        argument::shape("weight", &[sizes, e], u)?;
        argument::shape("bias", &[sizes], c)?;
        Ok(vec![vec![n, sizes]])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<(), BoxError> {
        let ([h, u, c], [output]) = (slices(inputs), slots(outputs));
        let (rows, e) = (inputs[0].shape()[0], inputs[0].shape()[2]);
        let mut y = vec![T::zero(); rows * c.len()];
        self.each(rows, |at, vector, row| {
            let products = h[vector * e..][..e].iter().zip(&u[row * e..][..e]);
            y[at] = products.fold(c[row], |sum, (&h, &u)| sum + h * u);
        });
        output.put(y);
        Ok(())
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        _: &(),
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([h, u, c], [dy], slots) = (slices(inputs), slices(cotangents), gradients);
        let (rows, e) = (inputs[0].shape()[0], inputs[0].shape()[2]);
        let mut found = [h.len(), u.len(), c.len()].map(|n| vec![T::zero(); n]);
        let [dh, du, dc] = &mut found;
        self.each(rows, |at, vector, row| {
            let (h, u, d) = (&h[vector * e..][..e], &u[row * e..][..e], dy[at]);
            dc[row] += d;
            for (k, (dh, du)) in (dh[vector * e..][..e].iter_mut())
                .zip(&mut du[row * e..][..e])
                .enumerate()
            {
                *dh += d * u[k];
                *du += d * h[k];
            }
        });
        for (slot, gradient) in slots.into_iter().zip(found) {
            if let Some(slot) = slot {
                slot.put(gradient);
            }
        }
        Ok(())
    }
}

/// A cell, what it holds, and what its error counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) cell: [usize; 2],
    pub(super) value: f32,
    pub(super) share: f64,
}

/// The sum over cells of their squared error, or their cross-entropy, times its share: an operation on the output of
/// [`Decode`] with a number as its output.
pub(super) struct CellError {
    pub(super) columns: Vec<Column>,
    pub(super) wanted: Vec<Wanted>,
}

impl CellError {
    /// The error of a cell, its square error, and the derivatives of the error along the cell's numbers. The square error
    /// of a class is that of the probabilities.
    fn of_cell(column: Column, numbers: &[f64], value: f32) -> ([f64; 2], Vec<f64>) {
        match column {
            Column::Number => {
                let apart = numbers[0] - f64::from(value);
                ([apart * apart; 2], vec![2.0 * apart])
            }
            Column::Class(_) => {
                let label = value as usize;
                let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let mut shares: Vec<f64> = numbers.iter().map(|x| (x - largest).exp()).collect();
                let total: f64 = shares.iter().sum();
                shares.iter_mut().for_each(|share| *share /= total);
                shares[label] -= 1.0;
                let square = shares.iter().map(|share| share * share).sum();
                ([total.ln() - (numbers[label] - largest), square], shares)
            }
        }
    }

    /// The error with the square error, and the gradient of the error along all numbers of y.
    pub(super) fn of<T: Real>(&self, y: &[T]) -> ([f64; 2], Vec<f64>) {
        let (starts, sizes) = starts(&self.columns, 0);
        let (mut errors, mut gradient) = ([0.0; 2], vec![0.0; y.len()]);
        for wanted in &self.wanted {
            let [row, j] = wanted.cell;
            let start = row * sizes + starts[j];
            let own = start..start + self.columns[j].size();
            let numbers: Vec<f64> = y[own.clone()].iter().map(|y| y.as_f64()).collect();
            let (of_cell, slopes) = Self::of_cell(self.columns[j], &numbers, wanted.value);
            for (error, of_cell) in errors.iter_mut().zip(of_cell) {
                *error += wanted.share * of_cell;
            }
            for (g, slope) in gradient[own].iter_mut().zip(slopes) {
                *g += wanted.share * slope;
            }
        }
        (errors, gradient)
    }
}

impl<T: Real> Operation<T> for CellError {
    /// The gradient.
    type Saved = Vec<f64>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [y] = given(inputs)?;
        let rows = y.first().copied().unwrap_or_default();
        argument::shape("y", &[rows, starts(&self.columns, 0).1], y)?;
        for wanted in &self.wanted {
            argument::index("rows of cells", wanted.cell[0], rows)?;
        }
        Ok(vec![Vec::new()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Vec<f64>, BoxError> {
        let ([y], [output]) = (slices(inputs), slots(outputs));
        let ([error, _], gradient) = self.of(y);
        output.put(vec![T::of(error)]);
        Ok(gradient)
    }

    fn backward(
        &self,
        _: &[ArrayViewD<'_, T>],
        gradient: &Vec<f64>,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([derror], [slot]) = (slices(cotangents), slots(gradients));
        if let Some(slot) = slot {
            let scale = derror[0].as_f64();
            slot.put(gradient.iter().map(|g| T::of(scale * g)).collect());
        }
        Ok(())
    }
}
