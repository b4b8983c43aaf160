//! Mechanisms of another crate are taken wherever ours are.

#[cfg(feature = "dfdx")]
mod layers;
mod mechanisms;
mod settings;

use bochner_attention::{Error, Variant, register};
use mechanisms::{Decay, Elu, RationalQuadratic, Sigmoid, Sink, SoftCap};

fn register_all() -> Result<(), Error> {
    register::<RationalQuadratic>()?;
    register::<SoftCap>()?;
    register::<Sigmoid>()?;
    register::<Sink>()?;
    register::<Elu>()?;
    register::<Decay>()
}

fn variants() -> [Variant; 6] {
    [
        RationalQuadratic {}.into(),
        SoftCap { cap: 1.5 }.into(),
        Sigmoid {}.into(),
        Sink {}.into(),
        Elu {}.into(),
        Decay {}.into(),
    ]
}
