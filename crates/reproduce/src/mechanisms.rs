//! The nine attention mechanisms of the paper's tables, by the names that tables give them.

use crate::Preset;
use bochner_attention::{DirectInit, Expsin, IkanDirect, Linear, Mikan, RbfOnly, Softmax, Variant};

/// The mechanism of a name in a reading of the method, with the norm `p` and so many spectral points where it has
/// them. Everything not given is the mechanism's own default; the name of a Transformer is softmax attention.
pub fn mechanism(name: &str, preset: Preset, p: Option<f64>, points: usize) -> Variant {
    let (followed, start) = match preset {
        Preset::Paper => (bochner_attention::Preset::Paper, DirectInit::NearSoftmax),
        Preset::Released => (
            bochner_attention::Preset::Released,
            DirectInit::KaimingUniform,
        ),
    };
    let implicit = |mikan: Mikan| {
        let p = p.unwrap_or(mikan.p);
        Variant::from(Mikan { p, points, ..mikan })
    };
    match name {
        "RBF-only" => RbfOnly {}.into(),
        "Expsin" => Expsin::default().into(),
        "Linear" => Linear {}.into(),
        "IKA-S" => implicit(Mikan::ika_s()),
        "IKA-NS" => implicit(Mikan::ika_ns()),
        "IKAN" => implicit(Mikan::ikan()),
        "IKAN-direct" => {
            let usual = IkanDirect::default();
            let direct = IkanDirect {
                p: p.unwrap_or(usual.p),
                points,
                preset: followed,
                start,
                ..usual
            };
            direct.into()
        }
        "MIKAN" => implicit(Mikan {
            preset: followed,
            ..Mikan::default()
        }),
        _ => Softmax {}.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_its_mechanism() {
        let names = [
            "RBF-only",
            "Expsin",
            "Linear",
            "IKA-S",
            "IKA-NS",
            "IKAN",
            "IKAN-direct",
            "MIKAN",
        ];
        for name in names {
            // The norm of a stationary or non-stationary kernel without one of its own is 2.
            let p = if name.starts_with("IKA-") { 2.0 } else { 3.0 };
            let variant = mechanism(name, Preset::Paper, Some(p), 8);
            assert_eq!(variant.name(), name.to_lowercase());
        }
        assert_eq!(
            mechanism("Transformer", Preset::Paper, None, 8).name(),
            "softmax"
        );
    }

    #[test]
    fn every_step_adds_one_thing() {
        let of = |name| match mechanism(name, Preset::Paper, Some(3.0), 8) {
            Variant::Mikan(mikan) => mikan,
            other => panic!("{other:?}"),
        };
        let (s, ns, ikan, mikan) = (of("IKA-S"), of("IKA-NS"), of("IKAN"), of("MIKAN"));
        assert_ne!(s, ns);
        let stationarity = ns.stationarity;
        assert_eq!(Mikan { stationarity, ..s }, ns);
        let p = ikan.p;
        assert_eq!(Mikan { p, ..ns }, ikan);
        assert_ne!(ikan, mikan);
        let copula = mikan.copula;
        assert_eq!(Mikan { copula, ..ikan }, mikan);
    }
}
