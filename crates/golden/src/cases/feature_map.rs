//! `feature_map`: features of any number of heads, and the kernel they give.

use super::{is_stationary, reshaped, sum_to_shape};
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_kernels::{SpectralPoints, feature_map_vjp, kernel_matrix};
use bochner_numerics::{Buffers, Real};
use ndarray::{Array3, ArrayD, Axis, IxDyn};

/// `x [.., T, d]` and points `[.., R, d]`, the leading axes broadcast against each other.
pub(super) fn feature_map<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let batch = Batch::<T>::read(file)?;
    let (length, count) = (batch.x.dim().1, batch.w1.dim().1);
    let mut phi = Array3::zeros((batch.sets(), length, 2 * count));
    let mut f = Array3::zeros((batch.sets(), length, length));
    let buffers = Buffers::default();
    for i in 0..batch.sets() {
        let (x, points) = (batch.x.index_axis(Axis(0), i), batch.points(i));
        let phi = phi.index_axis_mut(Axis(0), i);
        bochner_kernels::feature_map(x, &points, phi, &buffers).map_err(Fault::refused)?;
        let own = kernel_matrix(x, x, &points).map_err(Fault::refused)?;
        f.index_axis_mut(Axis(0), i).assign(&own);
    }
    let mut computed = Computed::default();
    computed.output("phi", &batch.led(phi));
    computed.output("f", &batch.led(f));
    if let Some(cotangent) = file.cotangent()? {
        batch.gradients(cotangent, &mut computed)?;
    }
    Ok(computed)
}

/// The inputs, repeated over the leading axes and these flattened into one.
struct Batch<T> {
    x: Array3<T>,
    w1: Array3<T>,
    w2: Option<Array3<T>>,
    leading: Vec<usize>,
    /// The shapes in the file, of `x` and of the points.
    shapes: [Vec<usize>; 2],
}

impl<T: Real> Batch<T> {
    fn read(file: &CaseFile) -> Result<Self, Fault> {
        let stationary = is_stationary(file)?;
        let (x, w1): (ArrayD<T>, ArrayD<T>) = (file.floats("x")?, file.floats("w1")?);
        let leading = leading_axes(x.shape(), w1.shape()).ok_or_else(|| Fault::Shape {
            tensor: "in.w1".to_owned(),
            expected: format!(
                "[.., R, d] with axes that fit those of in.x, {:?}",
                x.shape()
            ),
            got: w1.shape().to_vec(),
        })?;
        let w2 = if stationary {
            None
        } else {
            Some(spread("in.w2", &file.floats("w2")?, &leading)?)
        };
        Ok(Self {
            w2,
            shapes: [x.shape().to_vec(), w1.shape().to_vec()],
            x: spread("in.x", &x, &leading)?,
            w1: spread("in.w1", &w1, &leading)?,
            leading,
        })
    }

    fn sets(&self) -> usize {
        self.x.dim().0
    }

    fn points(&self, i: usize) -> SpectralPoints<'_, T> {
        let w1 = self.w1.index_axis(Axis(0), i);
        match &self.w2 {
            None => SpectralPoints::Stationary { w: w1 },
            Some(w2) => SpectralPoints::Nonstationary {
                w1,
                w2: w2.index_axis(Axis(0), i),
            },
        }
    }

    /// With the leading axes restored.
    fn led(&self, x: Array3<T>) -> ArrayD<T> {
        let shape = [&self.leading, &x.shape()[1..]].concat();
        reshaped(x.into_dyn(), &shape)
    }

    fn gradients(&self, cotangent: ArrayD<T>, computed: &mut Computed) -> Result<(), Fault> {
        let cotangent = spread("cotangent", &cotangent, &self.leading)?;
        let buffers = Buffers::default();
        let zeros = |like: &Array3<T>| Array3::zeros(like.dim());
        let (mut x, mut w1, mut w2) = (zeros(&self.x), zeros(&self.w1), zeros(&self.w1));
        for i in 0..self.sets() {
            let (own_x, g) = (
                self.x.index_axis(Axis(0), i),
                cotangent.index_axis(Axis(0), i),
            );
            let own =
                feature_map_vjp(own_x, &self.points(i), g, &buffers).map_err(Fault::refused)?;
            x.index_axis_mut(Axis(0), i).assign(&own.x);
            w1.index_axis_mut(Axis(0), i).assign(&own.points.w1);
            if let Some(own) = own.points.w2 {
                w2.index_axis_mut(Axis(0), i).assign(&own);
            }
        }
        let [x_shape, w_shape] = &self.shapes;
        computed.gradient("x", &sum_to_shape(self.led(x), x_shape));
        computed.gradient("w1", &sum_to_shape(self.led(w1), w_shape));
        if self.w2.is_some() {
            computed.gradient("w2", &sum_to_shape(self.led(w2), w_shape));
        }
        Ok(())
    }
}

/// The leading axes of `[.., T, d]` and `[.., R, d]`, broadcast from the right.
pub(super) fn leading_axes(x: &[usize], w: &[usize]) -> Option<Vec<usize>> {
    let (x, w) = (x.split_last_chunk::<2>()?.0, w.split_last_chunk::<2>()?.0);
    let axes = x.len().max(w.len());
    let length = |shape: &[usize], axis: usize| {
        let missing = axes - shape.len();
        if axis < missing {
            1
        } else {
            shape[axis - missing]
        }
    };
    let joined = (0..axes).map(|axis| match (length(x, axis), length(w, axis)) {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    });
    joined.collect()
}

/// An array repeated over all leading axes, these flattened into one.
pub(super) fn spread<T: Real>(
    name: &str,
    x: &ArrayD<T>,
    leading: &[usize],
) -> Result<Array3<T>, Fault> {
    let fault = || Fault::Shape {
        tensor: name.to_owned(),
        expected: format!("[.., rows, columns] over the leading axes {leading:?}"),
        got: x.shape().to_vec(),
    };
    let (_, &[rows, columns]) = x.shape().split_last_chunk().ok_or_else(fault)?;
    let full = [leading, &[rows, columns]].concat();
    let repeated = x.broadcast(IxDyn(&full)).ok_or_else(fault)?;
    let sets = leading.iter().product();
    let flat = reshaped(repeated.to_owned(), &[sets, rows, columns]);
    Ok(flat.into_dimensionality().expect("three axes"))
}
