//! A squared kernel with random points, in either form.

use crate::Error;
use bochner_attention::engine::Output;
use bochner_attention::{
    Form, Magnitude, Mask, Settings, attend,
    kernels::{self, Points},
    mechanism::DirectInit,
};
use bochner_numerics::{Seed, standard_normal};
use bochner_spectral::direct_points;
use ndarray::{Array3, Array4};

/// Queries, keys, values and spectral points.
pub(super) struct SquaredKernel {
    qkv: [Array4<f32>; 3],
    w1: Array3<f32>,
    w2: Array3<f32>,
}

impl SquaredKernel {
    /// One sequence of a width over all heads.
    pub(super) fn random(tokens: usize, points: usize, width: usize, heads: usize) -> Self {
        let seed = Seed::new(2021);
        let mut stream = seed.stream("inputs");
        let shape = (1, heads, tokens, width / heads);
        let mut x = || Array4::from_shape_simple_fn(shape, || standard_normal(&mut stream));
        let qkv = [x(), x(), x()];
        let mut stream = seed.stream("initial values");
        let start = DirectInit::NearSoftmax;
        let points = direct_points(heads, points, width / heads, start, &mut stream);
        let points = points.expect("sizes that are not zero");
        Self {
            qkv,
            w1: points.w1,
            w2: points.w2,
        }
    }

    pub(super) fn attend(&self, form: Form) -> Result<Output<f32>, Error> {
        let points = Points::shared_nonstationary(self.w1.view(), self.w2.view());
        let kernel = kernels::squared(points, 1e-5, &Mask::none());
        let settings = Settings {
            form,
            ..kernel.with_key_weight(Magnitude::Norm { p: 2.0 })
        };
        let [q, k, v] = self.qkv.each_ref().map(|x| x.view());
        let attended = attend(&settings, q, k, v).map_err(bochner_attention::Error::from)?;
        Ok(attended.0)
    }
}
