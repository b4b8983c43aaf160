//! Errors of the arguments.

use bochner_numerics::ArgumentError;

/// The reason that a density, a posterior, a source of points or a bound could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has the wrong shape, is empty, out of range or not finite.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// Two settings do not go together.
    #[error("{what} is not supported: use {instead}")]
    Unsupported {
        /// The combination.
        what: &'static str,
        /// The alternative.
        instead: &'static str,
    },
    /// The backward pass was given what another source returned, or this one for other features or
    /// parameters.
    #[error(
        "the backward pass was given the result of another forward pass: pass what the same settings returned \
         for the same features and parameters"
    )]
    ForeignDraw,
    /// A fit reached an error that is not finite.
    #[error(
        "after step {step} of the fit the error is {loss}: give a smaller learning rate; the best parameters seen are kept"
    )]
    Diverged {
        /// The step after which the error was not finite.
        step: usize,
        /// The squared error there.
        loss: f64,
    },
    /// The kernel refused the inputs or the spectral points.
    #[error(transparent)]
    Kernel(#[from] bochner_kernels::Error),
    /// The copula refused a factor.
    #[error(transparent)]
    Copula(#[from] bochner_copula::Error),
}
