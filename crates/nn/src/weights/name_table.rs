//! The names of a layer's parameters in another library.

use super::{StateDict, WeightsError};
use crate::parameters::{Parameters, join};
use crate::{Element, Error};
use bochner_numerics::argument;
use ndarray::{ArrayD, ArrayViewD, ArrayViewMutD, Axis, Dimension, IxDyn, Slice, Zip};
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
    /// Part `index` of `of` equal parts along an axis. [`NameTable::load`] and [`NameTable::save`] refuse an axis that the
    /// tensor does not have, and one that its parts do not divide.
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

    /// The error of a tensor that has no such part.
    fn missing(self, name: &str, shape: &[usize]) -> WeightsError {
        WeightsError::NoPart {
            name: name.to_string(),
            axis: self.axis,
            parts: self.of,
            shape: shape.to_vec(),
        }
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

    /// An array of here in the other library's shape.
    fn apply<'a, E>(self, array: ArrayViewD<'a, E>) -> ArrayViewD<'a, E> {
        match self {
            Self::Same => array,
            Self::Transposed => array.reversed_axes(),
            Self::LeadingOne => array.insert_axis(Axis(0)),
        }
    }
}

impl NameTable {
    /// A table without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table with one more row: a parameter here, or a part of one, and the tensor that holds it in the other library.
    /// Two rows may name the same parameter, or the same tensor: their values must be equal then. All rows together name
    /// every element of the parameters and of the tensors.
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
    /// layer; [`WeightsError::UnknownSize`] for a size that the table does not name; [`WeightsError::Unequal`] for two
    /// tensors that should be equal; [`WeightsError::Impossible`] for NaN and infinities. For a table that does not fit
    /// the model: [`WeightsError::Unnamed`], [`WeightsError::NoPart`], [`WeightsError::TwoShapes`] and
    /// [`WeightsError::Uncovered`].
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
    /// [`Error::Weights`] with [`WeightsError::Untied`] for two parameters that are one tensor and differ; those of
    /// [`load`](Self::load) for a table that does not fit the model.
    pub fn save<E: Element>(
        &self,
        model: &(impl Parameters<E> + ?Sized),
    ) -> Result<StateDict<E>, Error> {
        let arrays = arrays_of(model);
        let mut tensors = Filling::default();
        for (row, dims) in self.rows.iter().zip(self.shapes(&arrays)?) {
            let own = cut(arrays[&row.own.name].view(), row.own.part);
            let values = row.reshape.apply(own);
            if !tensors.put(&row.other, &dims, E::default(), values) {
                return Err(Error::Weights(WeightsError::Untied {
                    name: row.other.name.clone(),
                    parameter: row.own.name.clone(),
                }));
            }
        }
        let sizes = self.sizes.clone();
        let tensors = tensors.into_arrays();
        Ok(StateDict { tensors, sizes })
    }

    /// The model's arrays with the values of the tensors.
    fn filled<E: Element>(
        &self,
        state: &StateDict<E>,
        arrays: BTreeMap<String, ArrayD<E>>,
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
        let mut filled = Filling::default();
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
            if !filled.put(&row.own, arrays[parameter].shape(), E::default(), other) {
                return Err(WeightsError::Unequal {
                    name: name.clone(),
                    parameter: parameter.clone(),
                });
            }
        }
        Ok(filled.into_arrays())
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

    /// The shape of the other library's tensor in each row, once the table fits the parameters.
    fn shapes<E>(
        &self,
        arrays: &BTreeMap<String, ArrayD<E>>,
    ) -> Result<Vec<Vec<usize>>, WeightsError> {
        let unnamed = |parameter: &String| WeightsError::Unnamed {
            parameter: parameter.clone(),
        };
        let known: BTreeSet<&str> = self.rows.iter().map(|row| &*row.own.name).collect();
        if let Some(parameter) = arrays.keys().find(|name| !known.contains(&***name)) {
            return Err(unnamed(parameter));
        }
        let mut shapes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let (mut of_own, mut of_other) = (Filling::default(), Filling::default());
        for row in &self.rows {
            let name = &row.own.name;
            let array = arrays.get(name).ok_or_else(|| unnamed(name))?;
            let mut dims = array.shape().to_vec();
            if let Some(part) = row.own.part {
                let length = dims.get_mut(part.axis);
                match length.filter(|length| length.is_multiple_of(part.of)) {
                    Some(length) => *length /= part.of,
                    None => return Err(part.missing(name, array.shape())),
                }
            }
            let piece = ArrayD::from_elem(IxDyn(&dims), ());
            of_own.put(&row.own, array.shape(), (), piece.view());
            let name = &row.other.name;
            let mut dims = row.reshape.dims(dims);
            let piece = ArrayD::from_elem(IxDyn(&dims), ());
            if let Some(part) = row.other.part {
                match dims.get_mut(part.axis) {
                    Some(length) => *length *= part.of,
                    None => return Err(part.missing(name, &dims)),
                }
            }
            let first = shapes.entry(name).or_insert_with(|| dims.clone());
            if *first != dims {
                return Err(WeightsError::TwoShapes {
                    name: name.clone(),
                    first: first.clone(),
                    second: dims,
                });
            }
            of_other.put(&row.other, &dims, (), piece.view());
        }
        if let Some((name, index)) = of_own.gap().or_else(|| of_other.gap()) {
            return Err(WeightsError::Uncovered { name, index });
        }
        let rows = self.rows.iter();
        Ok(rows.map(|row| shapes[&*row.other.name].clone()).collect())
    }
}

/// Tensors that are filled place by place.
struct Filling<E> {
    /// Their values, and which of them are filled.
    tensors: BTreeMap<String, (ArrayD<E>, ArrayD<bool>)>,
}

impl<E> Default for Filling<E> {
    fn default() -> Self {
        Self {
            tensors: BTreeMap::new(),
        }
    }
}

impl<E: Clone + PartialEq> Filling<E> {
    /// Fills a place of a tensor of a shape, and returns whether the elements that were filled before had the same values.
    fn put(&mut self, place: &Place, dims: &[usize], empty: E, values: ArrayViewD<'_, E>) -> bool {
        let entry = self.tensors.entry(place.name.clone());
        let (tensor, filled) = entry.or_insert_with(|| {
            let dims = IxDyn(dims);
            (
                ArrayD::from_elem(dims.clone(), empty),
                ArrayD::from_elem(dims, false),
            )
        });
        let mut agrees = true;
        Zip::from(cut_mut(tensor.view_mut(), place.part))
            .and(cut_mut(filled.view_mut(), place.part))
            .and(values)
            .for_each(|element, filled, value| {
                agrees &= !*filled || element == value;
                (*element, *filled) = (value.clone(), true);
            });
        agrees
    }

    /// The first element that is not filled.
    fn gap(self) -> Option<(String, Vec<usize>)> {
        self.tensors.into_iter().find_map(|(name, (_, filled))| {
            let mut elements = filled.indexed_iter();
            let (index, _) = elements.find(|(_, filled)| !**filled)?;
            Some((name, index.slice().to_vec()))
        })
    }

    fn into_arrays(self) -> BTreeMap<String, ArrayD<E>> {
        let tensors = self.tensors.into_iter();
        tensors.map(|(name, (values, _))| (name, values)).collect()
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
