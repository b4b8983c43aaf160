//! Our values against those of a file.

use crate::error::Fault;
use crate::report::{Verdict, Worst};
use serde_json::{Map, Value};

/// The largest difference of scores, precisions and means, all of the order of 100 at most.
pub(super) const SCORE: f64 = 1e-9;

/// The largest difference of the numbers by this name.
fn bound(name: &str) -> f64 {
    match name {
        "log_prob" => 0.0,
        // sacrebleu divides in single precision.
        name if name.starts_with("sacrebleu_") => 1e-4,
        _ => SCORE,
    }
}

/// The comparisons so far: the number farthest from its expected value, and no other value that differs.
#[derive(Default)]
pub(super) struct Findings {
    compared: usize,
    worst: Option<Worst>,
}

impl Findings {
    /// Compares everything in the file's `expected`, and what else is computed with the file's value of that name.
    pub(super) fn compare(&mut self, ours: &Value, file: &Value) -> Result<(), Fault> {
        self.values("", &ours["expected"], &file["expected"])?;
        let empty = Map::new();
        for (name, ours) in ours.as_object().unwrap_or(&empty) {
            if name != "expected" {
                self.computed(name, ours, &file[name])?;
            }
        }
        Ok(())
    }

    /// Compares those fields of an object that are computed.
    fn computed(&mut self, path: &str, ours: &Value, file: &Value) -> Result<(), Fault> {
        let Value::Object(fields) = ours else {
            return self.values(path, ours, file);
        };
        let mut fields = fields.iter();
        fields.try_for_each(|(name, ours)| self.values(&joined(path, name), ours, &file[name]))
    }

    /// Compares all of an expected value.
    fn values(&mut self, path: &str, ours: &Value, expected: &Value) -> Result<(), Fault> {
        match (ours, expected) {
            (Value::Object(ours), Value::Object(expected)) => {
                for (name, expected) in expected {
                    let path = joined(path, name);
                    let Some(ours) = ours.get(name) else {
                        return Err(Fault::NotComputed { tensor: path });
                    };
                    self.values(&path, ours, expected)?;
                }
                Ok(())
            }
            (Value::Array(ours), Value::Array(expected)) => {
                for (at, (ours, expected)) in ours.iter().zip(expected).enumerate() {
                    self.values(&format!("{path}[{at}]"), ours, expected)?;
                }
                let of = |list: &[Value]| Value::from(list.len());
                self.equal(&format!("length of {path}"), &of(ours), &of(expected))
            }
            (Value::Number(a), Value::Number(b)) if !(a.is_u64() && b.is_u64()) => {
                let name = path.rsplit('.').next().unwrap_or(path);
                let name = name.split('[').next().unwrap_or(name);
                let numbers = a.as_f64().zip(b.as_f64());
                let error = numbers.map_or(f64::NAN, |(a, b)| (a - b).abs());
                self.near(path, error, bound(name));
                Ok(())
            }
            _ => self.equal(path, ours, expected),
        }
    }

    fn equal(&mut self, path: &str, ours: &Value, expected: &Value) -> Result<(), Fault> {
        self.compared += 1;
        if ours == expected {
            return Ok(());
        }
        Err(Fault::Differs {
            name: path.to_owned(),
            expected: shortened(expected),
            got: shortened(ours),
        })
    }

    fn near(&mut self, path: &str, error: f64, bound: f64) {
        self.compared += 1;
        let found = Worst {
            tensor: path.to_owned(),
            error,
            bound,
        };
        let is_worse = |worst: &Worst| found.ratio() > worst.ratio();
        if self.worst.as_ref().is_none_or(is_worse) {
            self.worst = Some(found);
        }
    }

    pub(super) fn verdict(self) -> Result<Verdict, Fault> {
        let equal = Worst {
            tensor: format!("{} values, all equal", self.compared),
            error: 0.0,
            bound: 0.0,
        };
        let worst = self.worst.unwrap_or(equal);
        Ok(match worst.within() {
            _ if self.compared == 0 => {
                return Err(Fault::NotComputed {
                    tensor: "nothing at all".to_owned(),
                });
            }
            true => Verdict::Passed(worst),
            false => Verdict::Exceeded(worst),
        })
    }
}

fn joined(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    }
}

fn shortened(value: &Value) -> String {
    const LONGEST: usize = 200;
    let mut text = value.to_string();
    if let Some((at, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(at);
        text.push('…');
    }
    text
}
