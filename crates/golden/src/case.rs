//! A case in one precision: its typed inputs, and what our code made of them.

use crate::case_file::CaseFile;
use crate::comparison::{self, Computed};
use crate::error::{Failure, Fault};
use crate::report::Verdict;
use crate::tensor::ranked;
use bochner_numerics::Real;
use ndarray::{Array, Array2, ArrayBase, ArrayD, ArrayView, Data, Dimension, IxDyn};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Deref;

/// The entries and inputs of a file in the precision `T`, and the results so far.
pub(crate) struct Case<'a, T> {
    file: &'a CaseFile,
    computed: RefCell<Computed>,
    precision: PhantomData<T>,
}

/// The end of a computation, which leaves its results in the [`Case`].
pub(crate) type Done = Result<(), Failure>;

impl<T> Deref for Case<'_, T> {
    type Target = CaseFile;

    fn deref(&self) -> &CaseFile {
        self.file
    }
}

impl<'a, T: Real> Case<'a, T> {
    pub(crate) fn new(file: &'a CaseFile) -> Self {
        Self {
            file,
            computed: RefCell::default(),
            precision: PhantomData,
        }
    }

    /// The input `in.<name>`, of any number of axes.
    pub(crate) fn floats(&self, name: &str) -> Result<ArrayD<T>, Fault> {
        self.file.floats(name)
    }

    /// The input `in.<name>`.
    pub(crate) fn array<D: Dimension>(&self, name: &str) -> Result<Array<T, D>, Fault> {
        self.file.array(name)
    }

    /// Several inputs with the same number of axes.
    pub(crate) fn arrays<D: Dimension, const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[Array<T, D>; N], Fault> {
        let arrays: Vec<_> = names
            .iter()
            .map(|name| self.array(name))
            .collect::<Result<_, _>>()?;
        Ok(arrays
            .try_into()
            .unwrap_or_else(|_| unreachable!("one a name")))
    }

    /// An entry of the metadata that is a finite number.
    pub(crate) fn real(&self, key: &str) -> Result<T, Fault> {
        Ok(T::of(self.number(key)?))
    }

    /// The cotangent; `None` if the case is forward only.
    pub(crate) fn cotangent<D: Dimension>(&self) -> Result<Option<Array<T, D>>, Fault> {
        let cotangent = self.file.cotangent()?;
        cotangent.map(|g| ranked("cotangent", g)).transpose()
    }

    /// Records an output; one that the file does not hold is not looked at.
    pub(crate) fn output<A: Real, D: Dimension>(
        &self,
        name: &str,
        x: &ArrayBase<impl Data<Elem = A>, D>,
    ) {
        self.computed.borrow_mut().output(name, x);
    }

    /// Records an output of one number, which files hold as an array.
    pub(crate) fn output_number<A: Real>(&self, name: &str, x: A) {
        self.output(name, &ndarray::arr1(&[x]));
    }

    /// Records an output whose elements are in the order of the file's.
    pub(crate) fn flat_output<A: Real>(&self, name: &str, x: impl IntoIterator<Item = A>) -> Done {
        if self.asks_for(name) {
            self.output(name, &self.flat(&format!("out.{name}"), x)?);
        }
        Ok(())
    }

    /// Records the gradient with respect to the input `name`.
    pub(crate) fn gradient<D: Dimension>(&self, name: &str, x: &ArrayBase<impl Data<Elem = T>, D>) {
        self.computed.borrow_mut().gradient(name, x);
    }

    /// Records a gradient whose elements are in the order of the input's.
    pub(crate) fn flat_gradient(&self, name: &str, x: impl IntoIterator<Item = T>) -> Done {
        self.gradient(name, &self.flat(&format!("in.{name}"), x)?);
        Ok(())
    }

    /// These elements in the shape of a tensor of the file.
    fn flat<A>(&self, tensor: &str, x: impl IntoIterator<Item = A>) -> Result<ArrayD<A>, Fault> {
        let (shape, x) = (self.file.tensor(tensor)?.shape(), Vec::from_iter(x));
        let got = vec![x.len()];
        let in_shape = ArrayD::from_shape_vec(IxDyn(shape), x);
        in_shape.map_err(|_| Fault::ResultShape {
            tensor: tensor.to_owned(),
            expected: shape.to_vec(),
            got,
        })
    }

    /// The number of ways in which an output was computed.
    #[cfg(test)]
    pub(crate) fn ways(&self, name: &str) -> usize {
        self.computed.borrow().ways(name)
    }

    /// Compares the results with the file, once every input was read.
    pub(crate) fn verdict(self) -> Result<Verdict, Fault> {
        self.file.check_all_inputs_read()?;
        comparison::compare::<T>(self.file, &self.computed.into_inner())
    }
}

/// An array's elements in another shape.
pub(crate) fn reshaped<T: Real, D: Dimension>(x: Array<T, D>, shape: &[usize]) -> ArrayD<T> {
    let x = x.as_standard_layout().into_owned();
    x.into_shape_with_order(IxDyn(shape))
        .expect("the same number of elements")
}

/// A list of arrays of one shape as one array with a leading axis.
pub(crate) fn stacked<T: Real, D: Dimension>(arrays: &[Array<T, D>]) -> ArrayD<T> {
    let views: Vec<ArrayView<T, IxDyn>> = arrays.iter().map(|x| x.view().into_dyn()).collect();
    ndarray::stack(ndarray::Axis(0), &views).expect("one shape")
}

/// `[.., rows, columns]` as a list of matrices, and the leading axes.
pub(crate) fn matrices<T: Real>(
    name: &str,
    x: &ArrayD<T>,
) -> Result<(Vec<Array2<T>>, Vec<usize>), Fault> {
    let Some((leading, &[rows, columns])) = x.shape().split_last_chunk() else {
        let expected = "[.., rows, columns]";
        return Err(Fault::shape(name, expected, x.shape()));
    };
    let x = x.as_standard_layout();
    let chunks = x
        .as_slice()
        .expect("row-major")
        .chunks((rows * columns).max(1));
    let matrix = |chunk: &[T]| Array2::from_shape_vec((rows, columns), chunk.to_vec());
    let matrices = chunks.map(|chunk| matrix(chunk).expect("a matrix each"));
    Ok((matrices.collect(), leading.to_vec()))
}
