//! The features elu + 1: attention in linear time, and a cache of constant size.
//!
//! `cargo run --package bochner-engine --example elu`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::{Array4, s};
use bochner_engine::numerics::Real;
use bochner_engine::{Decoder, DecoderSize, Error, FeatureMap, Form, HeadRows, Mask, Settings};

/// The features $\operatorname{elu}(x) + 1$ of each coordinate (Katharopoulos et al. 2020).
#[derive(Debug)]
pub struct Elu {
    /// The width of queries and keys.
    pub width: usize,
}

impl<T: Real> FeatureMap<T> for Elu {
    fn features(&self) -> usize {
        self.width
    }

    fn map(&self, rows: HeadRows<T>, values: &mut [T], _logs: &mut [T]) {
        let elu = |x: T| if x > T::zero() { x } else { x.exp_m1() };
        let numbers = values.iter_mut().zip(rows.x.data());
        numbers.for_each(|(f, &x)| *f = elu(x) + T::one());
    }

    fn pull(&self, _: HeadRows<T>, f: &[T], gradient: &[T], out: &mut [T], _: &mut [T]) {
        let all = out.iter_mut().zip(f).zip(gradient);
        all.for_each(|((d, &f), &g)| *d += g * f.min(T::one()));
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 2, 500, 8), |(_, m, t, n)| ((m + t * n) as f32).sin());
    let settings = Settings {
        form: Form::LinearTime,
        ..Settings::features(Elu { width: 8 }, &Mask::causal())
    };
    let mut decoder = Decoder::new(
        &settings,
        DecoderSize {
            batch: 1,
            heads: 2,
            width: 8,
            value_width: 8,
        },
    )?;
    for positions in [0..100, 100..500] {
        let x = x.slice(s![.., .., positions, ..]);
        decoder.step(x, x, x)?;
        let (length, held) = (decoder.lengths()[0], decoder.held());
        println!("after {length} positions the cache holds {held} numbers");
    }
    Ok(())
}
