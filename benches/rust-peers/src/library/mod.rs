//! The libraries.

mod bochner;
mod burn;
mod candle;
mod ruvector;

use crate::Error;
use crate::form::{Form, Inputs, Pass};
use std::rc::Rc;

/// The library that the others are compared with.
pub(crate) const OURS: &str = "bochner";

/// The others, as the tables name them.
pub(crate) const PEERS: [&str; 3] = [BURN, CANDLE, RUVECTOR];

const BURN: &str = "burn";
const CANDLE: &str = "candle";
const RUVECTOR: &str = "ruvector";

/// All forms of a pass; ours comes first.
pub(crate) fn forms(pass: Pass, inputs: &Rc<Inputs>) -> Result<Vec<Form>, Error> {
    let mut forms = vec![bochner::form(pass, Rc::clone(inputs))];
    forms.extend(burn::forms(pass, inputs));
    forms.extend(candle::forms(pass, inputs)?);
    if pass == Pass::Forward {
        forms.extend(ruvector::forms(inputs)?);
    }
    Ok(forms)
}
