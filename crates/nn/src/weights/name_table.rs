//! The names of a layer's parameters in another library.

use super::{StateDict, WeightsError};
use crate::parameters::{Parameters, join};
use crate::{Element, Error};
use bochner_numerics::argument;
use ndarray::{ArrayD, ArrayViewD, ArrayViewMutD, Axis, IxDyn, Slice};
use std::collections::{BTreeMap, BTreeSet};

/// The names, shapes and layouts that a layer's parameters have in another library: one table reads and writes.
///
/// Layers of this workspace that other libraries have too give their table, such as `MultiHead::torch_names` in
/// `bochner-attention`. A layer of your own lists its parameters:
///
/// ```
/// use bochner_nn::{Linear, NameTable, Reshape, StateDict};
/// use bochner_nn::dfdx::prelude::*;
/// use bochner_nn::ndarray::array;
/// use bochner_numerics::Seed;
///
/// let mut rng = Seed::new(1).stream("initial values");
/// let mut layer: Linear<usize, usize, f64> = Linear::try_new(&Cpu::default(), 3, 1, &mut rng)?;
/// // A library that multiplies from the right: its matrix is [inputs, outputs].
/// let names = NameTable::new()
///     .row("weight", "kernel", Reshape::Transposed)
///     .row("bias", "bias", Reshape::Same);
///
/// let mut state = StateDict::default();
/// state.tensors.insert("kernel".into(), array![[1.0], [2.0], [3.0]].into_dyn());
/// state.tensors.insert("bias".into(), array![4.0].into_dyn());
/// names.load(&state, &mut layer)?;
/// assert_eq!(layer.weight.as_vec(), [1.0, 2.0, 3.0]);
/// assert_eq!(names.save(&layer)?, state);
/// # Ok::<(), bochner_nn::Error>(())
/// ```
#[doc(alias = "load_state_dict")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NameTable {
    rows: Vec<Row>,
    refused: Vec<(String, &'static str)>,
    sizes: BTreeMap<String, usize>,
}

/// A tensor, or one of several equal parts of it along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    name: String,
    part: Option<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    axis: usize,
    index: usize,
    of: usize,
}

/// The shape that an array has in another library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reshape {
    /// The shape that it has here.
    Same,
    /// Its axes in reverse order.
    Transposed,
    /// An axis of length 1 before the others.
    LeadingOne,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    own: Place,
    other: Place,
    reshape: Reshape,
}

impl Place {
    /// Part `index` of `of` equal parts along an axis.
    ///
    /// # Panics
    /// Unless `index` is less than `of`.
    pub fn part(name: &str, axis: usize, index: usize, of: usize) -> Self {
        assert!(index < of, "a part that is there");
        let part = Some(Part { axis, index, of });
        Self {
            part,
            ..Self::from(name)
        }
    }

    fn under(&self, prefix: &str) -> Self {
        Self {
            name: join(prefix, &self.name),
            part: self.part,
        }
    }
}

impl From<&str> for Place {
    /// The whole tensor.
    fn from(name: &str) -> Self {
        Self {
            name: name.to_string(),
            part: None,
        }
    }
}

impl Part {
    fn slice(self, dims: &[usize]) -> Slice {
        let length = dims[self.axis] / self.of;
        Slice::from(self.index * length..(self.index + 1) * length)
    }
}

impl Reshape {
    /// The other library's shape of an array that has this shape here.
    fn dims(self, mut dims: Vec<usize>) -> Vec<usize> {
        match self {
            Self::Same => {}
            Self::Transposed => dims.reverse(),
            Self::LeadingOne => dims.insert(0, 1),
        }
        dims
    }

    /// The array as it is here.
    fn undo<'a, E>(self, array: ArrayViewD<'a, E>) -> ArrayViewD<'a, E> {
        match self {
            Self::Same => array,
            Self::Transposed => array.reversed_axes(),
            Self::LeadingOne => array.index_axis_move(Axis(0), 0),
        }
    }

    /// The other library's array as it is here, to be written.
    fn undo_mut<'a, E>(self, array: ArrayViewMutD<'a, E>) -> ArrayViewMutD<'a, E> {
        match self {
            Self::Same => array,
            Self::Transposed => array.reversed_axes(),
            Self::LeadingOne => array.index_axis_move(Axis(0), 0),
        }
    }
}

impl NameTable {
    /// A table without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table with one more row: a parameter here, or a part of one, and the tensor that holds it in the other library.
    /// Two rows may name the same parameter: their tensors must be equal then.
    #[must_use]
    pub fn row(mut self, own: impl Into<Place>, other: impl Into<Place>, reshape: Reshape) -> Self {
        self.rows.push(Row {
            own: own.into(),
            other: other.into(),
            reshape,
        });
        self
    }

    /// The table with a tensor that the layer has no place for, and the reason, which the error repeats.
    #[must_use]
    pub fn refusing(mut self, other: &str, reason: &'static str) -> Self {
        self.refused.push((other.to_string(), reason));
        self
    }

    /// The table with a size that the shapes do not show. It is written, and compared if the file has it. Sizes of other
    /// names are refused.
    #[must_use]
    pub fn size(mut self, name: &str, size: usize) -> Self {
        self.sizes.insert(name.to_string(), size);
        self
    }

    /// The table with that of a part, whose parameters are named `own.…` here and `other.…` there.
    #[must_use]
    pub fn nested(mut self, own: &str, other: &str, part: &Self) -> Self {
        self.rows.extend(part.rows.iter().map(|row| Row {
            own: row.own.under(own),
            other: row.other.under(other),
            reshape: row.reshape,
        }));
        let refused = part.refused.iter();
        self.refused
            .extend(refused.map(|(name, reason)| (join(other, name), *reason)));
        let sizes = part.sizes.iter();
        self.sizes
            .extend(sizes.map(|(name, &size)| (join(other, name), size)));
        self
    }

    /// Copies the tensors into the model, which is changed only if all of them fit.
    ///
    /// # Errors
    /// [`Error::Weights`] with [`WeightsError::Refused`] for a tensor that the layer has no place for;
    /// [`WeightsError::OtherNames`], [`WeightsError::OtherShape`] and [`WeightsError::OtherSize`] for those of another
    /// layer; [`WeightsError::UnknownSize`] for a size that the table does not name; [`WeightsError::Unequal`] for two tensors that should be equal; [`WeightsError::Impossible`] for NaN
    /// and infinities; [`WeightsError::Unnamed`] if the table lacks one of the model's parameters.
    pub fn load<E: Element>(
        &self,
        state: &StateDict<E>,
        model: &mut (impl Parameters<E> + ?Sized),
    ) -> Result<(), Error> {
        let mut arrays = self.filled(state, arrays_of(model))?;
        model.for_each_mut("", &mut |name, parameter| {
            let array = arrays.remove(name).expect("one for each");
            parameter.write(array.as_slice().expect("in row-major order"));
        });
        Ok(())
    }

    /// Copies the model's parameters into tensors as the other library has them.
    ///
    /// # Errors
    /// [`Error::Weights`] with [`WeightsError::Unnamed`] if the table lacks one of the model's parameters.
    pub fn save<E: Element>(
        &self,
        model: &(impl Parameters<E> + ?Sized),
    ) -> Result<StateDict<E>, Error> {
        let arrays = arrays_of(model);
        let shapes = self.shapes(&arrays)?;
        let mut tensors: BTreeMap<String, ArrayD<E>> = BTreeMap::new();
        for (row, dims) in self.rows.iter().zip(shapes) {
            let own = cut(arrays[&row.own.name].view(), row.own.part);
            let name = row.other.name.clone();
            let tensor = tensors.entry(name).or_insert_with(|| ArrayD::zeros(dims));
            let place = cut_mut(tensor.view_mut(), row.other.part);
            row.reshape.undo_mut(place).assign(&own);
        }
        let sizes = self.sizes.clone();
        Ok(StateDict { tensors, sizes })
    }

    /// The model's arrays with the values of the tensors.
    fn filled<E: Element>(
        &self,
        state: &StateDict<E>,
        mut arrays: BTreeMap<String, ArrayD<E>>,
    ) -> Result<BTreeMap<String, ArrayD<E>>, WeightsError> {
        let shapes = self.shapes(&arrays)?;
        self.check_names(state)?;
        let mut sizes = state.sizes.keys();
        if let Some(name) = sizes.find(|&name| !self.sizes.contains_key(name)) {
            return Err(WeightsError::UnknownSize {
                name: name.clone(),
                known: self.sizes.keys().cloned().collect(),
            });
        }
        for (name, &expected) in &self.sizes {
            let got = state.sizes.get(name).copied().unwrap_or(expected);
            if got != expected {
                let name = name.clone();
                return Err(WeightsError::OtherSize {
                    name,
                    expected,
                    got,
                });
            }
        }
        let mut filled: Vec<&Place> = Vec::new();
        for (row, expected) in self.rows.iter().zip(shapes) {
            let (name, tensor) = (&row.other.name, &state.tensors[&row.other.name]);
            if tensor.shape() != expected {
                return Err(WeightsError::OtherShape {
                    name: name.clone(),
                    expected,
                    got: tensor.shape().to_vec(),
                });
            }
            let values = tensor.as_standard_layout();
            argument::finite(
                name.clone(),
                &expected,
                values.as_slice().expect("row-major"),
            )?;
            let other = row.reshape.undo(cut(tensor.view(), row.other.part));
            let parameter = &row.own.name;
            let array = arrays.get_mut(parameter).expect("checked with the shapes");
            let mut own = cut_mut(array.view_mut(), row.own.part);
            if !filled.contains(&&row.own) {
                own.assign(&other);
            } else if own != other {
                return Err(WeightsError::Unequal {
                    name: name.clone(),
                    parameter: parameter.clone(),
                });
            }
            filled.push(&row.own);
        }
        Ok(arrays)
    }

    /// Compares the names of the tensors with those of the table.
    fn check_names<E>(&self, state: &StateDict<E>) -> Result<(), WeightsError> {
        for (name, reason) in &self.refused {
            if state.tensors.contains_key(name) {
                let name = name.clone();
                return Err(WeightsError::Refused { name, reason });
            }
        }
        let mut missing = Vec::new();
        for Row { other, .. } in &self.rows {
            if !state.tensors.contains_key(&other.name) && !missing.contains(&other.name) {
                missing.push(other.name.clone());
            }
        }
        let known: BTreeSet<&str> = self.rows.iter().map(|row| &*row.other.name).collect();
        let names = state.tensors.keys();
        let left_over: Vec<_> = names.filter(|name| !known.contains(&***name)).collect();
        if missing.is_empty() && left_over.is_empty() {
            return Ok(());
        }
        Err(WeightsError::OtherNames {
            missing,
            left_over: left_over.into_iter().cloned().collect(),
        })
    }

    /// The shape of the other library's tensor in each row.
    fn shapes<E>(
        &self,
        arrays: &BTreeMap<String, ArrayD<E>>,
    ) -> Result<Vec<Vec<usize>>, WeightsError> {
        let known: BTreeSet<&str> = self.rows.iter().map(|row| &*row.own.name).collect();
        if let Some(parameter) = arrays.keys().find(|name| !known.contains(&***name)) {
            let parameter = parameter.clone();
            return Err(WeightsError::Unnamed { parameter });
        }
        let shape = |Row {
                         own,
                         other,
                         reshape,
                     }: &Row| {
            let array = arrays.get(&own.name).ok_or_else(|| WeightsError::Unnamed {
                parameter: own.name.clone(),
            })?;
            let mut dims = array.shape().to_vec();
            if let Some(Part { axis, of, .. }) = own.part {
                dims[axis] /= of;
            }
            let mut dims = reshape.dims(dims);
            if let Some(Part { axis, of, .. }) = other.part {
                dims[axis] *= of;
            }
            Ok(dims)
        };
        self.rows.iter().map(shape).collect()
    }
}

/// Copies of the model's parameters, by name.
fn arrays_of<E: Element>(model: &(impl Parameters<E> + ?Sized)) -> BTreeMap<String, ArrayD<E>> {
    let mut arrays = BTreeMap::new();
    model.for_each("", &mut |name, parameter| {
        let mut values = Vec::new();
        parameter.read_into(&mut values);
        let array = ArrayD::from_shape_vec(IxDyn(&parameter.dims()), values);
        let array = array.expect("as many values as the shape");
        arrays.insert(name.to_string(), array);
    });
    arrays
}

fn cut<E>(mut array: ArrayViewD<'_, E>, part: Option<Part>) -> ArrayViewD<'_, E> {
    if let Some(part) = part {
        let slice = part.slice(array.shape());
        array.slice_axis_inplace(Axis(part.axis), slice);
    }
    array
}

fn cut_mut<E>(mut array: ArrayViewMutD<'_, E>, part: Option<Part>) -> ArrayViewMutD<'_, E> {
    if let Some(part) = part {
        let slice = part.slice(array.shape());
        array.slice_axis_inplace(Axis(part.axis), slice);
    }
    array
}
