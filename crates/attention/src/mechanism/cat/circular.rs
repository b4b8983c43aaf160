//! Circulants by Fourier transforms of the example's own length: one head at a time.

use super::CatForm;
use super::scores::{Distribution, softmax};
use bochner_numerics::fourier::{Complex, Fourier};
use bochner_numerics::{Buffer, Buffers, Mat, Real};

/// Columns that are transformed between two looks at the rows: the numbers of one cache line.
const COLUMNS: usize = 16;
/// Numbers between two columns, which keep their beginnings from the same places of the cache.
const PADDING: usize = 16;

/// Some columns of a matrix, one after the other.
struct Columns<T> {
    data: Buffer<T>,
    rows: usize,
}

impl<T: Real> Columns<T> {
    fn new(rows: usize, buffers: &Buffers<T>) -> Self {
        let data = buffers.any(COLUMNS * (rows + PADDING));
        Self { data, rows }
    }

    fn columns(&mut self) -> impl Iterator<Item = &mut [T]> {
        let rows = self.rows;
        let columns = self.data.chunks_exact_mut(rows + PADDING);
        columns.map(move |column| &mut column[..rows])
    }

    /// Takes the columns from `first` on.
    fn read(&mut self, first: usize, from: Mat<T>) {
        let width = from.shape().1;
        let stride = self.rows + PADDING;
        for (t, row) in from.data().chunks_exact(width).enumerate() {
            for (c, &x) in row[first..].iter().take(COLUMNS).enumerate() {
                self.data[c * stride + t] = x;
            }
        }
    }

    /// Puts the columns to where [`Columns::read`] took them.
    fn write(&self, first: usize, width: usize, to: &mut [T]) {
        let stride = self.rows + PADDING;
        for (t, row) in to.chunks_exact_mut(width).enumerate() {
            for (c, x) in row[first..].iter_mut().take(COLUMNS).enumerate() {
                *x = self.data[c * stride + t];
            }
        }
    }
}

/// Spectra of sequences of one length.
struct Spectra<T> {
    fourier: Fourier<T>,
    scratch: Vec<Complex<T>>,
}

impl<T: Real> Spectra<T> {
    fn new(n: usize) -> Self {
        let fourier = Fourier::new(n);
        let scratch = vec![Complex::default(); fourier.scratch()];
        Self { fourier, scratch }
    }

    fn empty(&self) -> Vec<Complex<T>> {
        vec![Complex::default(); self.fourier.frequencies()]
    }

    fn transform(&mut self, x: &mut [T], spectrum: &mut [Complex<T>]) {
        self.fourier.transform(x, spectrum, &mut self.scratch);
    }

    fn invert(&mut self, spectrum: &mut [Complex<T>], x: &mut [T]) {
        self.fourier.invert(spectrum, x, &mut self.scratch);
    }

    /// The spectrum of what a head weighs its lags with, over n: the transform back has that factor.
    fn of_lags(&mut self, distribution: &Distribution<T>, softmax: &[T]) -> Vec<Complex<T>> {
        let n = T::of(softmax.len() as f64);
        let lags = softmax.iter().enumerate();
        let mut lags: Vec<T> = lags.map(|(l, &w)| w * distribution.factor(l) / n).collect();
        let mut spectrum = self.empty();
        self.transform(&mut lags, &mut spectrum);
        spectrum
    }
}

/// Multiplies the spectrum `b` of values with that of the lags, whose conjugate reads values along the sequence.
fn multiply<T: Real>(form: CatForm, lags: &[Complex<T>], b: &mut [Complex<T>]) {
    for (lag, b) in lags.iter().zip(b) {
        *b *= match form {
            CatForm::Convolution => *lag,
            _ => lag.conj(),
        };
    }
}

/// Writes the attended values, `[n, dv]`.
pub(super) fn attend<T: Real>(
    form: CatForm,
    distribution: &Distribution<T>,
    values: Mat<T>,
    buffers: &Buffers<T>,
    output: &mut [T],
) {
    let (n, width) = values.shape();
    let (mut spectra, mut columns) = (Spectra::new(n), Columns::new(n, buffers));
    let softmax = softmax(&distribution.scores);
    let lags = spectra.of_lags(distribution, &softmax);
    let mut spectrum = spectra.empty();
    for first in (0..width).step_by(COLUMNS) {
        columns.read(first, values);
        for column in columns.columns().take(width - first) {
            spectra.transform(column, &mut spectrum);
            multiply(form, &lags, &mut spectrum);
            spectra.invert(&mut spectrum, column);
        }
        columns.write(first, width, output);
    }
}

/// The gradient along the scores; writes that along the values, given `g` along the output.
pub(super) fn pull<T: Real>(
    form: CatForm,
    distribution: &Distribution<T>,
    values: Mat<T>,
    g: Mat<T>,
    buffers: &Buffers<T>,
    of_values: &mut [T],
) -> Vec<T> {
    let (n, width) = values.shape();
    let mut spectra = Spectra::new(n);
    let [mut of_g, mut of_v] = [(); 2].map(|()| Columns::new(n, buffers));
    let softmax = softmax(&distribution.scores);
    let lags = spectra.of_lags(distribution, &softmax);
    let back = match form {
        CatForm::Convolution => CatForm::Correlation,
        _ => CatForm::Convolution,
    };
    let [mut sum, mut spectrum_g, mut spectrum_v] = [(); 3].map(|()| spectra.empty());
    for first in (0..width).step_by(COLUMNS) {
        of_g.read(first, g);
        of_v.read(first, values);
        let columns = of_g.columns().zip(of_v.columns());
        for (g, v) in columns.take(width - first) {
            spectra.transform(g, &mut spectrum_g);
            spectra.transform(v, &mut spectrum_v);
            // A lag leads from the one place to the other.
            let (from, to) = match form {
                CatForm::Convolution => (&spectrum_v, &spectrum_g),
                _ => (&spectrum_g, &spectrum_v),
            };
            for ((sum, from), to) in sum.iter_mut().zip(from).zip(to) {
                *sum += from.conj() * to;
            }
            multiply(back, &lags, &mut spectrum_g);
            spectra.invert(&mut spectrum_g, g);
        }
        of_g.write(first, width, of_values);
    }
    let mut values = vec![T::zero(); n];
    spectra.invert(&mut sum, &mut values);
    let shares = softmax.iter().enumerate();
    let shares = shares.map(|(l, &w)| distribution.factor(l) / T::of(n as f64) * w);
    let mut mean = T::zero();
    for (slope, share) in values.iter_mut().zip(shares) {
        *slope *= share;
        mean += *slope;
    }
    for (slope, &w) in values.iter_mut().zip(&softmax) {
        *slope -= w * mean;
    }
    values
}
