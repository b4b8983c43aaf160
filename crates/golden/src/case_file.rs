//! One file of the format `bochner-golden-1`.

use super::error::Fault;
use super::tensor::{Tensor, cast, ranked};
use bochner_numerics::Real;
use ndarray::{Array, Array1, Array2, ArrayD, Dimension};
use safetensors::SafeTensors;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

const FORMAT: &str = "bochner-golden-1";

/// A case as it is stored, checked as far as the format goes.
pub(crate) struct CaseFile {
    metadata: HashMap<String, String>,
    tensors: BTreeMap<String, Tensor>,
    gradients: Vec<String>,
    in_f32: bool,
    /// Inputs that were asked for: one that never is has no meaning in its case.
    read: RefCell<BTreeSet<String>>,
}

impl CaseFile {
    /// Reads the content of a file; what it says is not looked at before [`Self::check`].
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let broken = |error: safetensors::SafeTensorError| Fault::NotSafetensors {
            reason: error.to_string(),
        };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let views = SafeTensors::deserialize(bytes).map_err(broken)?;
        let tensors = views
            .iter()
            .map(|(name, view)| Ok((name.to_owned(), Tensor::read(name, &view)?)));
        let file = Self {
            metadata: header.metadata().clone().unwrap_or_default(),
            tensors: tensors.collect::<Result<_, Fault>>()?,
            gradients: Vec::new(),
            in_f32: false,
            read: RefCell::default(),
        };
        file.expect_word("format", FORMAT)?;
        Ok(file)
    }

    /// Checks the content of the file whose name is `stem` plus extension.
    pub(crate) fn check(&mut self, stem: &str) -> Result<(), Fault> {
        self.expect_word("name", stem)?;
        self.in_f32 = self.choice("f32", &["yes", "no"])? == "yes";
        self.gradients = self.listed_gradients();
        self.check_tensors()
    }

    /// Whether the case is meant to be checked in `f32` too.
    pub(crate) fn in_f32(&self) -> bool {
        self.in_f32
    }

    /// The names of the inputs whose gradients are given, without `grad.`.
    pub(crate) fn gradients(&self) -> &[String] {
        &self.gradients
    }

    /// The expected outputs, by their names without `out.`.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let tensors = self.tensors.iter();
        tensors.filter_map(|(name, tensor)| Some((name.strip_prefix("out.")?, tensor)))
    }

    /// Any tensor, by its full name.
    pub(crate) fn tensor(&self, name: &str) -> Result<&Tensor, Fault> {
        self.tensors.get(name).ok_or_else(|| Fault::MissingTensor {
            tensor: name.to_owned(),
        })
    }

    fn input(&self, name: &str) -> Result<&Tensor, Fault> {
        self.read.borrow_mut().insert(name.to_owned());
        self.tensor(&format!("in.{name}"))
    }

    /// The input `in.<name>`, a float tensor of any number of axes.
    pub(crate) fn floats<T: Real>(&self, name: &str) -> Result<ArrayD<T>, Fault> {
        let tensor = self.input(name)?.float(&format!("in.{name}"))?;
        Ok(cast(tensor))
    }

    /// The input `in.<name>`, a float tensor.
    pub(crate) fn array<T: Real, D: Dimension>(&self, name: &str) -> Result<Array<T, D>, Fault> {
        ranked(&format!("in.{name}"), self.floats(name)?)
    }

    /// The input `in.<name>`, a mask of any number of axes.
    pub(crate) fn flags(&self, name: &str) -> Result<ArrayD<bool>, Fault> {
        self.input(name)?.mask(&format!("in.{name}"))
    }

    /// The input `in.<name>`, a mask of two axes.
    pub(crate) fn mask(&self, name: &str) -> Result<Array2<bool>, Fault> {
        ranked(&format!("in.{name}"), self.flags(name)?)
    }

    /// The input `in.<name>`, a tensor of integers.
    pub(crate) fn integers<D: Dimension>(&self, name: &str) -> Result<Array<i64, D>, Fault> {
        let full = format!("in.{name}");
        ranked(&full, self.input(name)?.integers(&full)?)
    }

    /// The input `in.<name>`, a list of lengths.
    pub(crate) fn lengths(&self, name: &str) -> Result<Vec<usize>, Fault> {
        let full = format!("in.{name}");
        let lengths: Array1<i64> = self.integers(name)?;
        let checked = lengths.iter().map(|&length| {
            usize::try_from(length).map_err(|_| Fault::Element {
                tensor: full.clone(),
                expected: "only lengths of at least 0",
                got: length.to_string(),
            })
        });
        checked.collect()
    }

    /// Whether the output `out.<name>` is expected.
    pub(crate) fn asks_for(&self, name: &str) -> bool {
        self.tensors.contains_key(&format!("out.{name}"))
    }

    /// The cotangent, of any number of axes; `None` if the case is forward only.
    pub(crate) fn cotangent<T: Real>(&self) -> Result<Option<ArrayD<T>>, Fault> {
        if self.gradients.is_empty() {
            return Ok(None);
        }
        let cotangent = self.tensor("cotangent")?.float("cotangent")?;
        Ok(Some(cast(cotangent)))
    }

    /// An entry of the metadata.
    pub(crate) fn word(&self, key: &str) -> Result<&str, Fault> {
        self.entry(key, "a word")
    }

    /// An entry of the metadata that is one of a few words.
    pub(crate) fn choice(&self, key: &str, choices: &[&str]) -> Result<&str, Fault> {
        let expected = format!("one of {}", choices.join(", "));
        let got = self.entry(key, &expected)?;
        if choices.contains(&got) {
            Ok(got)
        } else {
            Err(self.wrong(key, &expected))
        }
    }

    /// An entry of the metadata that is a finite number.
    pub(crate) fn number(&self, key: &str) -> Result<f64, Fault> {
        let number = self.entry(key, "a number")?.parse().ok();
        let finite = number.filter(|x: &f64| x.is_finite());
        finite.ok_or_else(|| self.wrong(key, "a finite number"))
    }

    /// An entry of the metadata that counts something.
    pub(crate) fn count(&self, key: &str) -> Result<usize, Fault> {
        let number = self.number(key)?;
        if number >= 0.0 && number.fract() == 0.0 {
            Ok(number as usize)
        } else {
            Err(self.wrong(key, "a whole number of at least 0"))
        }
    }

    /// An entry of the metadata that is a finite number or the word `none`.
    pub(crate) fn number_or_none(&self, key: &str) -> Result<Option<f64>, Fault> {
        match self.entry(key, "a number or none")? {
            "none" => Ok(None),
            _ => self.number(key).map(Some),
        }
    }

    /// Checks that every input in the file has been asked for.
    pub(crate) fn check_all_inputs_read(&self) -> Result<(), Fault> {
        let read = self.read.borrow();
        let inputs = self.tensors.keys().filter(|name| name.starts_with("in."));
        match inputs.into_iter().find(|name| !read.contains(&name[3..])) {
            None => Ok(()),
            Some(name) => Err(Fault::UnexpectedTensor {
                tensor: name.clone(),
                reason: "which is no input of this case with these parameters",
            }),
        }
    }

    /// Checks that the cotangent belongs to one of the outputs that the case's gradients may be of.
    pub(crate) fn check_cotangent(&self, outputs: &[&str]) -> Result<(), Fault> {
        if self.gradients.is_empty() {
            return Ok(());
        }
        let output = self.choice("cotangent_of", outputs)?;
        let output = self.tensor(&format!("out.{output}"))?.shape();
        self.expect_shape("cotangent", output)
    }

    /// Checks that the file holds these outputs.
    pub(crate) fn check_outputs(&self, names: &[&str]) -> Result<(), Fault> {
        let mut names = names.iter().map(|name| format!("out.{name}"));
        names.try_for_each(|name| self.tensor(&name).map(drop))
    }

    fn entry(&self, key: &str, expected: &str) -> Result<&str, Fault> {
        let value = self.metadata.get(key).map(String::as_str);
        value.ok_or_else(|| Fault::MissingEntry {
            key: key.to_owned(),
            expected: expected.to_owned(),
        })
    }

    /// The fault of an entry that is there but should be something else.
    pub(crate) fn wrong(&self, key: &str, expected: &str) -> Fault {
        Fault::Entry {
            key: key.to_owned(),
            expected: expected.to_owned(),
            got: self.metadata.get(key).cloned().unwrap_or_default(),
        }
    }

    fn expect_word(&self, key: &str, expected: &str) -> Result<(), Fault> {
        let expected_text = format!("`{expected}`");
        if self.entry(key, &expected_text)? == expected {
            Ok(())
        } else {
            Err(self.wrong(key, &expected_text))
        }
    }

    fn expect_shape(&self, name: &str, expected: &[usize]) -> Result<(), Fault> {
        let got = self.tensor(name)?.shape();
        if got == expected {
            Ok(())
        } else {
            Err(Fault::shape(name, format!("{expected:?}"), got))
        }
    }

    fn listed_gradients(&self) -> Vec<String> {
        let names = self.metadata.get("gradients").map_or("", String::as_str);
        names.split_whitespace().map(str::to_owned).collect()
    }

    fn check_tensors(&self) -> Result<(), Fault> {
        self.check_names()?;
        for name in &self.gradients {
            let input = self.tensor(&format!("in.{name}"))?.shape();
            self.expect_shape(&format!("grad.{name}"), input)?;
        }
        if self.outputs().next().is_none() {
            return Err(Fault::MissingTensor {
                tensor: "out.*".to_owned(),
            });
        }
        for (name, tensor) in &self.tensors {
            let is_count = name.starts_with("out.") && tensor.is_integer();
            if !is_count && !name.starts_with("in.") {
                check_finite(name, tensor.float(name)?)?;
            }
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), Fault> {
        for name in self.tensors.keys() {
            if let Some(reason) = self.objection(name) {
                return Err(Fault::UnexpectedTensor {
                    tensor: name.clone(),
                    reason,
                });
            }
        }
        Ok(())
    }

    /// The reason why a tensor of this name has no place in the file.
    fn objection(&self, name: &str) -> Option<&'static str> {
        match name.split_once('.') {
            Some(("in" | "out", _)) => None,
            Some(("grad", input)) => (!self.gradients.iter().any(|name| name == input))
                .then_some("which the metadata's `gradients` does not list"),
            _ if name == "cotangent" => self
                .gradients
                .is_empty()
                .then_some("but the metadata lists no `gradients`"),
            _ => Some("whose name does not begin with in., out. or grad."),
        }
    }
}

fn check_finite(name: &str, x: &ArrayD<f64>) -> Result<(), Fault> {
    match x.iter().find(|x| !x.is_finite()) {
        None => Ok(()),
        Some(x) => Err(Fault::Element {
            tensor: name.to_owned(),
            expected: "only finite numbers",
            got: x.to_string(),
        }),
    }
}
