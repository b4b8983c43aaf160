//! The singular value decomposition of an asymmetric kernel, and the objective that it makes zero.

use crate::{Error, svd};
use bochner_numerics::argument;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

/// The first singular values of a kernel matrix, and the projections of features that belong to them.
///
/// See [`kernel_svd`].
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSvd {
    /// The singular values $\Sigma$ in descending order, `[s]`.
    pub sigma: Array1<f64>,
    /// $W_e = \Phi_k^\top H_r$, `[p, s]`.
    pub we: Array2<f64>,
    /// $W_r = \Phi_q^\top H_e$, `[p, s]`.
    pub wr: Array2<f64>,
}

/// The first `rank` singular values of the kernel matrix $K = \Phi_q \Phi_k^\top$, with the projections of
/// both features.
///
/// $$K H_r = H_e \Sigma, \quad K^\top H_e = H_r \Sigma, \qquad W_e = \Phi_k^\top H_r, \quad
/// W_r = \Phi_q^\top H_e$$
///
/// With $\Lambda = \Sigma^{-1}$ the projections are a stationary point of the [`svd_objective`]:
/// $\Phi_q^\top \Phi_q W_e \Lambda = W_r$ and $\Phi_k^\top \Phi_k W_r \Lambda = W_e$. The signs of a pair of
/// columns are arbitrary together.
///
/// # Shapes
/// `phi_q: [N, p]`, `phi_k: [N', p]`.
///
/// # Errors
/// [`Error::Argument`] if the widths differ, if `rank` is zero or above the number of singular values that
/// are not zero to rounding, or if a feature is not finite; [`Error::NoConvergence`].
///
/// # Numerics
/// $O(N N' (p + \min(N, N')))$ time.
///
/// # Reference
/// Suykens, *SVD revisited*, 2016; Chen, Tao, Tonin, Suykens 2023, section 3.
///
/// ```
/// use bochner_dense::ndarray::array;
/// use bochner_dense::{kernel_svd, svd_objective};
///
/// let (phi_q, phi_k) = (array![[3.0, 0.0], [0.0, 1.0]], array![[1.0, 0.0], [0.0, 2.0]]);
/// let svd = kernel_svd(phi_q.view(), phi_k.view(), 2)?;
/// assert!((svd.sigma[0] - 3.0).abs() < 1e-14 && (svd.sigma[1] - 2.0).abs() < 1e-14);
///
/// let lambda = svd.sigma.recip();
/// let [phi_q, phi_k] = [phi_q.view(), phi_k.view()];
/// let at = svd_objective(phi_q, phi_k, svd.we.view(), svd.wr.view(), lambda.view())?;
/// assert!(at.value.abs() < 1e-13);
/// # Ok::<(), bochner_dense::Error>(())
/// ```
pub fn kernel_svd(
    phi_q: ArrayView2<f64>,
    phi_k: ArrayView2<f64>,
    rank: usize,
) -> Result<KernelSvd, Error> {
    let width = phi_q.ncols();
    argument::shape("phi_k", &[phi_k.nrows(), width], phi_k.shape())?;
    argument::finite("phi_q", phi_q.shape(), phi_q)?;
    argument::finite("phi_k", phi_k.shape(), phi_k)?;
    let parts = svd(phi_q.dot(&phi_k.t()).view())?;
    let largest = parts.s.first().copied().unwrap_or(0.0);
    let lowest = largest * f64::EPSILON * phi_q.nrows().max(phi_k.nrows()) as f64;
    let found = parts.s.iter().filter(|&&sigma| sigma > lowest).count();
    let (name, allowed) = ("largest singular value of the kernel matrix", "above 0");
    argument::in_range(found > 0, name, largest, allowed)?;
    let allowed = format!("from 1 to {found}, the rank of the kernel matrix");
    argument::in_range((1..=found).contains(&rank), "rank", rank as f64, allowed)?;
    let first = ndarray::s![.., ..rank];
    Ok(KernelSvd {
        sigma: parts.s.slice(ndarray::s![..rank]).to_owned(),
        we: phi_k.t().dot(&parts.vt.t().slice(first)),
        wr: phi_q.t().dot(&parts.u.slice(first)),
    })
}

/// The value of [`svd_objective`], in its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct SvdObjective {
    /// J.
    pub value: f64,
    /// The sum over the rows of $\Phi_q$, that over the rows of $\Phi_k$, and the trace.
    pub parts: [f64; 3],
    /// $\Phi_q W_e$, `[N, s]`.
    pub e: Array2<f64>,
    /// $\Phi_k W_r$, `[N', s]`.
    pub r: Array2<f64>,
}

/// The primal objective of the asymmetric kernel singular value decomposition.
///
/// $$J = \tfrac12 \sum_i e_i^\top \Lambda e_i + \tfrac12 \sum_j r_j^\top \Lambda r_j
/// - \operatorname{tr} W_e^\top W_r, \qquad e = \Phi_q W_e, \quad r = \Phi_k W_r$$
///
/// where $\Lambda$ is the diagonal matrix of `lambda`. It is zero at every stationary point, since it is a
/// quadratic form in $(W_e, W_r)$, and so along the whole ray through one: zero is necessary for a solution
/// ([`kernel_svd`]), not sufficient. The form is indefinite, so that J has no minimum.
///
/// # Shapes
/// `phi_q: [N, p]`, `phi_k: [N', p]`, `we, wr: [p, s]`, `lambda: [s]`.
///
/// # Errors
/// [`Error::Argument`] if the shapes do not fit.
pub fn svd_objective(
    phi_q: ArrayView2<f64>,
    phi_k: ArrayView2<f64>,
    we: ArrayView2<f64>,
    wr: ArrayView2<f64>,
    lambda: ArrayView1<f64>,
) -> Result<SvdObjective, Error> {
    let (width, rank) = (phi_q.ncols(), lambda.len());
    argument::shape("phi_k", &[phi_k.nrows(), width], phi_k.shape())?;
    argument::shape("we", &[width, rank], we.shape())?;
    argument::shape("wr", &[width, rank], wr.shape())?;
    let (e, r) = (phi_q.dot(&we), phi_k.dot(&wr));
    let half = |x: &Array2<f64>| 0.5 * (x * x).dot(&lambda).sum();
    let parts = [half(&e), half(&r), (&we * &wr).sum()];
    let value = parts[0] + parts[1] - parts[2];
    Ok(SvdObjective { value, parts, e, r })
}

/// Gradients of [`svd_objective`], shaped as its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct SvdObjectiveGradients {
    /// With respect to $\Phi_q$.
    pub phi_q: Array2<f64>,
    /// With respect to $\Phi_k$.
    pub phi_k: Array2<f64>,
    /// With respect to $W_e$.
    pub we: Array2<f64>,
    /// With respect to $W_r$.
    pub wr: Array2<f64>,
    /// With respect to the diagonal of $\Lambda$.
    pub lambda: Array1<f64>,
}

/// The gradients of [`svd_objective`].
///
/// # Errors
/// The errors of [`svd_objective`].
pub fn svd_objective_gradients(
    phi_q: ArrayView2<f64>,
    phi_k: ArrayView2<f64>,
    we: ArrayView2<f64>,
    wr: ArrayView2<f64>,
    lambda: ArrayView1<f64>,
) -> Result<SvdObjectiveGradients, Error> {
    let SvdObjective { e, r, .. } = svd_objective(phi_q, phi_k, we, wr, lambda)?;
    let (along_e, along_r) = (&e * &lambda, &r * &lambda);
    Ok(SvdObjectiveGradients {
        phi_q: along_e.dot(&we.t()),
        phi_k: along_r.dot(&wr.t()),
        we: phi_q.t().dot(&along_e) - wr,
        wr: phi_k.t().dot(&along_r) - we,
        lambda: ((&e * &e).sum_axis(Axis(0)) + (&r * &r).sum_axis(Axis(0))) * 0.5,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::check::random;
    use bochner_numerics::{finite_difference, relative_error};

    /// Random features `[40, 12]` of both sides, and the solution of rank 5.
    fn solved() -> ([Array2<f64>; 2], KernelSvd) {
        let features = ["queries", "keys"].map(|name| random((40, 12), name));
        let svd = kernel_svd(features[0].view(), features[1].view(), 5).unwrap();
        (features, svd)
    }

    fn value(
        [q, k]: &[Array2<f64>; 2],
        we: &Array2<f64>,
        wr: &Array2<f64>,
        lambda: &Array1<f64>,
    ) -> f64 {
        let at = svd_objective(q.view(), k.view(), we.view(), wr.view(), lambda.view());
        at.unwrap().value
    }

    fn gradients(
        [q, k]: &[Array2<f64>; 2],
        we: &Array2<f64>,
        wr: &Array2<f64>,
        lambda: &Array1<f64>,
    ) -> SvdObjectiveGradients {
        let views = [q, k, we, wr].map(|x| x.view());
        let [q, k, we, wr] = views;
        svd_objective_gradients(q, k, we, wr, lambda.view()).unwrap()
    }

    fn largest<'a>(x: impl IntoIterator<Item = &'a f64>) -> f64 {
        x.into_iter().fold(0.0, |m: f64, x| m.max(x.abs()))
    }

    /// The zero-value theorem: half the singular values, twice, less all of them.
    #[test]
    fn the_objective_is_zero_at_the_solution() {
        let (features, svd) = solved();
        let lambda = svd.sigma.recip();
        let [q, k] = features.each_ref().map(|x| x.view());
        let at = svd_objective(q, k, svd.we.view(), svd.wr.view(), lambda.view()).unwrap();
        let trace = svd.sigma.sum();
        for (part, want) in at.parts.into_iter().zip([0.5 * trace, 0.5 * trace, trace]) {
            assert!((part - want).abs() < 1e-11, "{part} instead of {want}");
        }
        assert!(at.value.abs() < 1e-11, "{:e}", at.value);
        // Stationary, and zero along the whole ray: no minimum.
        let g = gradients(&features, &svd.we, &svd.wr, &lambda);
        assert!(largest(g.we.iter().chain(&g.wr)) < 1e-11);
        let twice = value(&features, &(&svd.we * 2.0), &(&svd.wr * 2.0), &lambda);
        assert!(twice.abs() < 1e-10);
    }

    /// The property is one of the solution, not of the formula.
    #[test]
    fn elsewhere_it_is_not() {
        let (features, svd) = solved();
        let lambda = svd.sigma.recip();
        let moved = &svd.we + random((12, 5), "step") * 0.1;
        assert!(value(&features, &moved, &svd.wr, &lambda).abs() > 0.01);
        assert!(value(&features, &svd.we, &svd.wr, &(&lambda * 1.1)).abs() > 0.1);
        // Values of both signs: the form is indefinite.
        let signs =
            [1.0, -1.0].map(|sign| value(&features, &svd.we, &(&svd.wr * sign), &(&lambda * 0.9)));
        assert!(signs[0] < 0.0 && signs[1] > 0.0, "{signs:?}");
    }

    #[test]
    fn projections_are_singular_vectors_times_their_values() {
        let (features, svd) = solved();
        let [q, k] = &features;
        let lambda = svd.sigma.recip();
        let both = [
            q.t().dot(&q.dot(&svd.we)) * &lambda - &svd.wr,
            k.t().dot(&k.dot(&svd.wr)) * &lambda - &svd.we,
        ];
        assert!(both.iter().all(|x| largest(x) < 1e-11), "stationarity");
        for scores in [q.dot(&svd.we), k.dot(&svd.wr)] {
            let square = scores.t().dot(&scores) - Array2::from_diag(&svd.sigma.mapv(|x| x * x));
            assert!(largest(&square) < 1e-10, "{square}");
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let features = [random((6, 4), "queries"), random((5, 4), "keys")];
        let (we, wr) = (random((4, 3), "we"), random((4, 3), "wr"));
        let lambda = random((3, 1), "lambda").remove_axis(Axis(1));
        let g = gradients(&features, &we, &wr, &lambda);
        let start: Vec<f64> = we.iter().chain(&wr).chain(&lambda).copied().collect();
        let want = finite_difference(&start, |x| {
            let matrix = |x: &[f64]| Array2::from_shape_vec((4, 3), x.to_vec()).unwrap();
            let lambda = Array1::from_vec(x[24..].to_vec());
            value(&features, &matrix(&x[..12]), &matrix(&x[12..24]), &lambda)
        });
        let got: Vec<f64> = g.we.iter().chain(&g.wr).chain(&g.lambda).copied().collect();
        assert!(relative_error(&got, &want) < 1e-8);
        let start: Vec<f64> = features[0].iter().chain(&features[1]).copied().collect();
        let want = finite_difference(&start, |x| {
            let q = Array2::from_shape_vec((6, 4), x[..24].to_vec()).unwrap();
            let k = Array2::from_shape_vec((5, 4), x[24..].to_vec()).unwrap();
            value(&[q, k], &we, &wr, &lambda)
        });
        let got: Vec<f64> = g.phi_q.iter().chain(&g.phi_k).copied().collect();
        assert!(relative_error(&got, &want) < 1e-8);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let phi: Array2<f64> = random((6, 2), "features");
        let named = |phi_k: &Array2<f64>, rank| {
            let error = kernel_svd(phi.view(), phi_k.view(), rank).unwrap_err();
            error.to_string()
        };
        for rank in [0, 3] {
            assert!(named(&phi, rank).contains("rank"));
        }
        assert!(named(&random((6, 3), "features"), 1).contains("phi_k"));
        assert!(named(&(&phi * f64::NAN), 1).contains("phi_k"));
    }
}
