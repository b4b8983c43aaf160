//! The features elu + 1: attention in linear time, and a cache of constant size.
//!
//! `cargo run --package bochner-engine --example elu`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::{Array4, s};
use bochner_engine::numerics::Real;
use bochner_engine::{
    Decoder, DecoderSize, Error, FeatureMap, Form, HeadRows, Mask, Settings, Shape, attend,
    numerics::argument,
};

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

    fn check(&self, shape: &Shape) -> Result<(), Error> {
        let fits = shape.width == self.width;
        Ok(argument::in_range(
            fits,
            "width",
            shape.width as f64,
            self.width.to_string(),
        )?)
    }

    fn map(&self, rows: HeadRows<T>, values: &mut [T], _logs: &mut [T]) {
        let numbers = values.iter_mut().zip(rows.x.data());
        numbers.for_each(|(f, &x)| *f = if x > T::zero() { x + T::one() } else { x.exp() });
    }

    fn pull(&self, _: HeadRows<T>, values: &[T], gradient: &[T], out: &mut [T], _: &mut [T]) {
        let all = out.iter_mut().zip(values).zip(gradient);
        all.for_each(|((d, &f), &g)| *d += g * f.min(T::one()));
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 2, 500, 8), |(_, m, t, n)| {
        ((m + t * (n + 1)) as f32).sin()
    });
    let settings = Settings::features(Elu { width: 8 }, &Mask::causal());
    let of = |form| {
        attend(
            &Settings {
                form,
                ..settings.clone()
            },
            x.view(),
            x.view(),
            x.view(),
        )
    };
    let off = &of(Form::LinearTime)?.0 - &of(Form::Pairwise)?.0;
    println!(
        "linear time and pairs differ by {:e}",
        off.iter().fold(0.0_f32, |most, x| most.max(x.abs()))
    );
    let size = DecoderSize {
        batch: 1,
        heads: 2,
        width: 8,
        value_width: 8,
    };
    let mut decoder = Decoder::new(&settings, size)?;
    for t in [0..100, 100..500] {
        let x = x.slice(s![.., .., t, ..]);
        decoder.step(x, x, x)?;
        println!(
            "after {} positions the cache holds {} numbers",
            decoder.lengths()[0],
            decoder.held()
        );
    }
    Ok(())
}
