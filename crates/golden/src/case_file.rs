//! One file of the format `bochner-golden-1`.

use super::error::Fault;
use super::tensor::{Tensor, check_elements};
use safetensors::{Dtype, SafeTensors};
use serde::de::{DeserializeOwned, IntoDeserializer};
use std::collections::{BTreeMap, HashMap};

const FORMAT: &str = "bochner-golden-1";

/// A case as it is stored, checked as far as the format goes.
pub(crate) struct CaseFile {
    metadata: HashMap<String, String>,
    pub(crate) tensors: BTreeMap<String, Tensor>,
    /// The names of the inputs whose gradients are given, without `grad.`.
    pub(crate) gradients: Vec<String>,
}

impl CaseFile {
    /// Reads the content of a file; what it says is not looked at before [`Self::check`].
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(Fault::unreadable)?;
        let views = SafeTensors::deserialize(bytes).map_err(Fault::unreadable)?;
        let tensors = views
            .iter()
            .map(|(name, view)| Ok((name.to_owned(), Tensor::read(name, &view)?)));
        let metadata = header.metadata().clone().unwrap_or_default();
        let gradients = metadata.get("gradients").map_or("", String::as_str);
        let file = Self {
            gradients: gradients.split_whitespace().map(str::to_owned).collect(),
            tensors: tensors.collect::<Result<_, Fault>>()?,
            metadata,
        };
        file.choice("format", &[FORMAT])?;
        Ok(file)
    }

    /// Checks the content of the file whose name is `stem` plus extension, and whose cotangent belongs to one of
    /// `outputs`.
    pub(crate) fn check(&self, stem: &str, outputs: &[&str]) -> Result<(), Fault> {
        self.choice("name", &[stem])?;
        self.choice("f32", &["yes", "no"])?;
        for name in self.tensors.keys() {
            if let Some(reason) = self.objection(name) {
                return Err(Fault::wrong(name, reason, "given"));
            }
        }
        for name in &self.gradients {
            self.expect_one_shape(&format!("grad.{name}"), &format!("in.{name}"))?;
        }
        if self.outputs().next().is_none() {
            self.tensor("out.*")?;
        }
        for (name, tensor) in &self.tensors {
            let is_count = name.starts_with("out.") && tensor.is_integer();
            if !is_count && !name.starts_with("in.") {
                let x = tensor.stored_as(Dtype::F64, name)?;
                check_elements(name, x, "only finite numbers", f64::is_finite)?;
            }
        }
        if self.gradients.is_empty() {
            return Ok(());
        }
        let output = self.choice("cotangent_of", outputs)?;
        self.expect_one_shape("cotangent", &format!("out.{output}"))
    }

    /// Whether the case is meant to be checked in `f32` too.
    pub(crate) fn in_f32(&self) -> bool {
        self.metadata["f32"] == "yes"
    }

    /// The expected outputs, by their names without `out.`.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let tensors = self.tensors.iter();
        tensors.filter_map(|(name, tensor)| Some((name.strip_prefix("out.")?, tensor)))
    }

    /// Any tensor, by its full name.
    pub(crate) fn tensor(&self, name: &str) -> Result<&Tensor, Fault> {
        let tensor = self.tensors.get(name);
        tensor.ok_or_else(|| Fault::entry(name, "given", None))
    }

    /// Checks that the file holds these outputs.
    pub(crate) fn check_outputs(&self, names: &[&str]) -> Result<(), Fault> {
        let mut names = names.iter().map(|name| format!("out.{name}"));
        names.try_for_each(|name| self.tensor(&name).map(drop))
    }

    /// An entry of the metadata.
    pub(crate) fn word(&self, key: &str) -> Result<&str, Fault> {
        let word = self.metadata.get(key).map(String::as_str);
        word.ok_or_else(|| Fault::entry(key, "given", None))
    }

    /// An entry of the metadata that is one of a few words.
    pub(crate) fn choice(&self, key: &str, choices: &[&str]) -> Result<&str, Fault> {
        let got = self.metadata.get(key).map(String::as_str);
        let chosen = got.filter(|got| choices.contains(got));
        chosen.ok_or_else(|| Fault::entry(key, choices.join(" or "), got))
    }

    /// An entry of the metadata that is a finite number.
    pub(crate) fn number(&self, key: &str) -> Result<f64, Fault> {
        let number = self.word(key)?.parse().ok();
        let finite = number.filter(|x: &f64| x.is_finite());
        finite.ok_or_else(|| self.wrong(key, "a finite number"))
    }

    /// An entry of the metadata that counts something.
    pub(crate) fn count(&self, key: &str) -> Result<usize, Fault> {
        let count = self.word(key)?.parse();
        count.map_err(|_| self.wrong(key, "a whole number of at least 0"))
    }

    /// An entry of the metadata that names a value of a library's type.
    pub(crate) fn setting<T: DeserializeOwned>(&self, key: &str) -> Result<T, Fault> {
        let word = self.word(key)?.replace('_', "-");
        let read = T::deserialize(word.into_deserializer());
        read.map_err(|error: serde::de::value::Error| self.wrong(key, &error.to_string()))
    }

    /// An entry of the metadata that is a finite number or the word `none`.
    pub(crate) fn number_or_none(&self, key: &str) -> Result<Option<f64>, Fault> {
        match self.word(key)? {
            "none" => Ok(None),
            _ => self.number(key).map(Some),
        }
    }

    /// The fault of an entry that is there but should be something else.
    pub(crate) fn wrong(&self, key: &str, expected: &str) -> Fault {
        Fault::entry(key, expected, self.metadata.get(key).map(String::as_str))
    }

    fn expect_one_shape(&self, name: &str, other: &str) -> Result<(), Fault> {
        let (expected, got) = (self.tensor(other)?.shape(), self.tensor(name)?.shape());
        match got == expected {
            true => Ok(()),
            false => Err(Fault::shape(name, &format!("of shape {expected:?}"), got)),
        }
    }

    /// The state that a tensor of this name should be in, if it has no place in the file.
    fn objection(&self, name: &str) -> Option<&'static str> {
        match name.split_once('.') {
            Some(("in" | "out", _)) => None,
            Some(("grad", input)) => (!self.gradients.iter().any(|name| name == input))
                .then_some("listed in the metadata's `gradients`, or absent"),
            _ if name == "cotangent" => self
                .gradients
                .is_empty()
                .then_some("absent, since the metadata lists no `gradients`"),
            _ => Some("called in., out. or grad. and more"),
        }
    }
}
