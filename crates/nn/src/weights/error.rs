//! Errors of weights from other libraries.

use bochner_numerics::ArgumentError;

/// The reason that the weights of another library were not read, taken over or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The bytes end too early, or there are more than the header declares.
    #[error(
        "the safetensors file has {got} bytes but declares {expected}; it was cut off or damaged, write or \
         download it again"
    )]
    Truncated {
        /// The number of bytes declared, as far as the header can be read.
        expected: u64,
        /// The number of bytes there.
        got: u64,
    },

    /// The bytes are in another format.
    #[error(
        "these bytes are no safetensors file: {reason}; write one by `safetensors.torch.save_file(layer.state_dict(), ..)`"
    )]
    NotSafetensors {
        /// The evidence for that.
        reason: String,
    },

    /// A tensor has another number type.
    #[error(
        "{name} holds {got}, not {expected}; read the file as {got} if it can be, or convert the tensor before it is saved"
    )]
    OtherType {
        /// The tensor's name.
        name: String,
        /// The type asked for.
        expected: &'static str,
        /// The type in the file.
        got: String,
    },

    /// The names of the tensors are not those of the layer.
    #[error(
        "the tensors are of another layer{}{}; compare the layer's settings with the other library's, and the \
         prefix of the names",
        list(", missing: ", missing),
        list(", left over: ", left_over)
    )]
    OtherNames {
        /// The names that the layer needs and that are not there, in the table's order.
        missing: Vec<String>,
        /// The names that are there and that the layer does not know, in the alphabet's order.
        left_over: Vec<String>,
    },

    /// A tensor stands for something that the layer does not have.
    #[error("{name} cannot be read: {reason}")]
    Refused {
        /// The tensor's name.
        name: String,
        /// The tensor's part in the other library, and what to do.
        reason: &'static str,
    },

    /// A tensor has another shape.
    #[error(
        "{name} has shape {got:?}, the layer needs {expected:?}; build the layer with the other one's settings"
    )]
    OtherShape {
        /// The tensor's name.
        name: String,
        /// The shape that the layer needs.
        expected: Vec<usize>,
        /// The shape of the tensor.
        got: Vec<usize>,
    },

    /// A size that the shapes do not show, such as the number of heads, is another.
    #[error("{name} is {got} in the file and {expected} in the layer; build the layer with {got}")]
    OtherSize {
        /// The size's name.
        name: String,
        /// The layer's size.
        expected: usize,
        /// The file's size.
        got: usize,
    },

    /// The file has a size that the layer does not know, which would not be compared.
    #[error(
        "the file has a size {name}, which the layer does not know{}; correct the name in the file's metadata, or leave \
         the size out",
        list(", known: ", known)
    )]
    UnknownSize {
        /// The size's name.
        name: String,
        /// The names of the layer's sizes, in the alphabet's order.
        known: Vec<String>,
    },

    /// Two tensors that are one parameter of the layer have other values.
    #[error(
        "{name} has other values than the tensor before that stands for the same parameter, {parameter}; build the \
         layer with a parameter for each"
    )]
    Unequal {
        /// The name of the second tensor.
        name: String,
        /// The parameter's name.
        parameter: String,
    },

    /// A parameter of the layer has no name in the other library.
    #[error(
        "the table of names has no place for {parameter}; add one, or turn the option off that needs it"
    )]
    Unnamed {
        /// The parameter's name.
        parameter: String,
    },

    /// Two parameters of the layer that are one tensor in the other library have other values.
    #[error(
        "{parameter} has other values than the parameter before that is the same tensor, {name}; make them equal, or give \
         each a tensor in the table of names"
    )]
    Untied {
        /// The tensor's name.
        name: String,
        /// The name of the second parameter.
        parameter: String,
    },

    /// The table of names divides a tensor into parts that it does not have.
    #[error(
        "the table of names wants {parts} equal parts of {name} along axis {axis}, but its shape is {shape:?}; name an \
         axis that it has, whose length the number of parts divides"
    )]
    NoPart {
        /// The name of the parameter or the tensor.
        name: String,
        /// The axis, counted from 0.
        axis: usize,
        /// The number of parts.
        parts: usize,
        /// The shape.
        shape: Vec<usize>,
    },

    /// Two rows of the table of names give one tensor different shapes.
    #[error(
        "the table of names gives {name} the shapes {first:?} and {second:?}; give both rows the parts and layouts of one \
         tensor"
    )]
    TwoShapes {
        /// The tensor's name.
        name: String,
        /// The shape in the first row.
        first: Vec<usize>,
        /// The shape in a later row.
        second: Vec<usize>,
    },

    /// The rows of the table of names leave elements out.
    #[error(
        "the table of names leaves out element {index:?} of {name}; add a row for each of its parts"
    )]
    Uncovered {
        /// The name of the parameter or the tensor.
        name: String,
        /// The index of the first element left out.
        index: Vec<usize>,
    },

    /// A weight is NaN or infinite.
    #[error("a layer cannot take such a weight: {0}; look for the training step that went wrong")]
    Impossible(#[from] ArgumentError),
}

/// The first names of a list; nothing for an empty one.
fn list(what: &str, names: &[String]) -> String {
    const FEW: usize = 8;
    if names.is_empty() {
        return String::new();
    }
    let others = match names.len().saturating_sub(FEW) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let few: Vec<_> = names.iter().take(FEW).map(String::as_str).collect();
    format!("{what}{}{others}", few.join(", "))
}
