//! A case in one precision: its typed inputs, and what our code made of them.

use crate::case_file::CaseFile;
use crate::comparison::Results;
use crate::error::{Failure, Fault};
use crate::tensor::{check_elements, ranked};
use bochner_numerics::Real;
use ndarray::{Array, Array1, Array2, Array3, ArrayD, Dimension};
use safetensors::Dtype;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::ops::Deref;

/// The entries and inputs of a file in the precision `T`, and the results so far.
///
/// Results are recorded by their elements in row-major order.
pub(crate) struct Case<'a, T> {
    file: &'a CaseFile,
    /// Inputs that were asked for: one that never is has no meaning in its case.
    read: RefCell<BTreeSet<String>>,
    /// Outputs and gradients, by the names of their tensors.
    pub(crate) results: RefCell<Results>,
    precision: PhantomData<T>,
}

/// The end of a computation, which leaves its results in the [`Case`].
pub(crate) type Done = Result<(), Failure>;

/// Records fields of a result as outputs or gradients of the same names.
macro_rules! record {
    ($case:ident.$method:ident, $result:ident => $($field:ident),+) => {
        $($case.$method(stringify!($field), $result.$field);)+
    };
}
pub(crate) use record;

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
            read: RefCell::default(),
            results: RefCell::default(),
            precision: PhantomData,
        }
    }

    fn input<D: Dimension>(&self, name: &str, dtype: Dtype) -> Result<Array<f64, D>, Fault> {
        self.read.borrow_mut().insert(format!("in.{name}"));
        let name = format!("in.{name}");
        let x = self.tensor(&name)?.stored_as(dtype, &name)?;
        ranked(&name, x.clone())
    }

    /// The input `in.<name>`.
    pub(crate) fn array<D: Dimension>(&self, name: &str) -> Result<Array<T, D>, Fault> {
        Ok(self.doubles(name)?.mapv(T::of))
    }

    /// The input `in.<name>` in double precision.
    pub(crate) fn doubles<D: Dimension>(&self, name: &str) -> Result<Array<f64, D>, Fault> {
        self.input(name, Dtype::F64)
    }

    /// Several inputs with the same number of axes.
    pub(crate) fn arrays<D: Dimension, const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[Array<T, D>; N], Fault> {
        let arrays = names.iter().map(|name| self.array(name));
        let arrays: Vec<_> = arrays.collect::<Result<_, _>>()?;
        Ok(arrays.try_into().expect("one array a name"))
    }

    /// The input `in.<name>`, a mask.
    pub(crate) fn mask<D: Dimension>(&self, name: &str) -> Result<Array<bool, D>, Fault> {
        Ok(self.input(name, Dtype::U8)?.mapv(|x| x == 1.0))
    }

    /// The input `in.<name>`, a tensor of integers.
    pub(crate) fn integers<D: Dimension>(&self, name: &str) -> Result<Array<i64, D>, Fault> {
        Ok(self.input(name, Dtype::I64)?.mapv(|x| x as i64))
    }

    /// The input `in.<name>`, a list of counts or indices.
    pub(crate) fn counts(&self, name: &str) -> Result<Vec<usize>, Fault> {
        let x: Array1<f64> = self.input(name, Dtype::I64)?;
        check_elements(&format!("in.{name}"), &x, "no number below 0", |x| x >= 0.0)?;
        Ok(x.iter().map(|&x| x as usize).collect())
    }

    /// The elements of an input that must have this shape.
    pub(crate) fn shaped(&self, name: &str, shape: &[usize]) -> Result<Vec<T>, Fault> {
        let x: ArrayD<T> = self.array(name)?;
        if x.shape() == shape {
            return Ok(x.into_iter().collect());
        }
        let expected = format!("of shape {shape:?}");
        Err(Fault::shape(&format!("in.{name}"), &expected, x.shape()))
    }

    /// An input of matrices, `[.., rows, columns]` as `[n, rows, columns]`.
    pub(crate) fn matrices(&self, name: &str) -> Result<Array3<T>, Fault> {
        matrices(&format!("in.{name}"), self.array(name)?)
    }

    /// An input of matrices that is repeated to a number of them, as in broadcasting over leading axes.
    pub(crate) fn repeated(&self, name: &str, n: usize) -> Result<Array3<T>, Fault> {
        let given = self.matrices(name)?;
        let (count, rows, columns) = given.dim();
        if count == 0 || !n.is_multiple_of(count) {
            let expected = format!("one whose leading axes fit {n} matrices");
            let got = self.tensor(&format!("in.{name}"))?.shape();
            return Err(Fault::shape(&format!("in.{name}"), &expected, got));
        }
        let at = |(i, row, column)| given[[i % count, row, column]];
        Ok(Array3::from_shape_fn((n, rows, columns), at))
    }

    /// An input of rows, `[.., width]` as `[n, width]`.
    pub(crate) fn rows(&self, name: &str) -> Result<Array2<T>, Fault> {
        rows(&format!("in.{name}"), self.array(name)?)
    }

    /// An entry of the metadata that is a finite number.
    pub(crate) fn real(&self, key: &str) -> Result<T, Fault> {
        Ok(T::of(self.number(key)?))
    }

    /// Whether the output `out.<name>` is expected.
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        self.tensors.contains_key(&format!("out.{name}"))
    }

    /// Records an output; one that the file does not hold is not looked at.
    pub(crate) fn output<A: Real>(&self, name: &str, x: impl IntoIterator<Item = A>) {
        let x = x.into_iter().map(A::as_f64).collect();
        self.record(format!("out.{name}"), x);
    }

    /// Records the gradient with respect to the input `name`, or to several copies of it.
    pub(crate) fn gradient(&self, name: &str, x: impl IntoIterator<Item = T>) {
        let mut x: Vec<f64> = x.into_iter().map(T::as_f64).collect();
        let given = self.tensors.get(&format!("in.{name}"));
        if let Some(size) = given.map(|x| x.values().len())
            && size > 0
            && x.len().is_multiple_of(size)
        {
            let copies = x.split_off(size.min(x.len()));
            for (at, copy) in copies.into_iter().enumerate() {
                x[at % size] += copy;
            }
        }
        self.record(format!("grad.{name}"), x);
    }

    /// Records the gradients with respect to several inputs, one after the other.
    pub(crate) fn gradients(&self, names: &[&str], x: impl IntoIterator<Item = T>) -> Done {
        let mut x = x.into_iter();
        for name in names {
            let size = self.tensor(&format!("in.{name}"))?.values().len();
            self.gradient(name, x.by_ref().take(size));
        }
        Ok(())
    }

    fn record(&self, tensor: String, x: Vec<f64>) {
        let mut results = self.results.borrow_mut();
        results.entry(tensor).or_default().push(x);
    }

    /// Records gradients, by a function of the cotangent that is called unless the case is forward only.
    pub(crate) fn pull<D: Dimension>(&self, f: impl FnOnce(Array<T, D>) -> Done) -> Done {
        if self.gradients.is_empty() {
            return Ok(());
        }
        let cotangent: ArrayD<T> = self.tensor("cotangent")?.values().mapv(T::of);
        f(ranked("cotangent", cotangent)?)
    }

    /// Checks that every input in the file has been asked for.
    pub(crate) fn check_all_inputs_read(&self) -> Result<(), Fault> {
        let read = self.read.borrow();
        let mut inputs = self.tensors.keys().filter(|name| name.starts_with("in."));
        match inputs.find(|name| !read.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(Fault::wrong(
                name,
                "an input of this case with these parameters",
                "given",
            )),
        }
    }
}

/// `[.., rows, columns]` as `[n, rows, columns]`.
pub(crate) fn matrices<T: Real>(name: &str, x: ArrayD<T>) -> Result<Array3<T>, Fault> {
    let Some((leading, &[rows, columns])) = x.shape().split_last_chunk() else {
        return Err(Fault::shape(
            name,
            "of shape [.., rows, columns]",
            x.shape(),
        ));
    };
    let shape = (leading.iter().product(), rows, columns);
    let shaped = x.to_shape(shape).expect("the same number of elements");
    Ok(shaped.into_owned())
}

/// `[.., width]` as `[n, width]`.
pub(crate) fn rows<T: Clone>(name: &str, x: ArrayD<T>) -> Result<Array2<T>, Fault> {
    let Some((&width, leading)) = x.shape().split_last() else {
        return Err(Fault::shape(name, "one with at least 1 axis", x.shape()));
    };
    let shape = (leading.iter().product(), width);
    let shaped = x.to_shape(shape).expect("the same number of elements");
    Ok(shaped.into_owned())
}
