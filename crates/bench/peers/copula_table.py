"""Copulas by scipy and statsmodels: a table of thirty Gamma columns, and copulas of ten coordinates over 100,000 rows.

    OMP_NUM_THREADS=1 python copula_table.py

The other side is `cargo run --release --package bochner-copula --example table`. Needs statsmodels.
"""

from time import perf_counter

import numpy as np
import scipy.linalg
import scipy.special as sp
import scipy.stats as st
from statsmodels.distributions.copula.api import CopulaDistribution, GaussianCopula


def least(name, call, times=5):
    """Calls a function and prints the least time."""
    seconds = []
    for _ in range(times):
        begin = perf_counter()
        result = call()
        seconds.append(perf_counter() - begin)
    print(f"{name:30} {1e3 * min(seconds):8.1f} ms", flush=True)
    return result


def neighbours(columns):
    """A correlation matrix in which neighbours are correlated."""
    return 0.8 ** np.abs(np.subtract.outer(np.arange(columns), np.arange(columns)))


def table(rows, columns):
    """Draws with Gamma marginals."""
    z = rng.standard_normal((rows, columns)) @ np.linalg.cholesky(neighbours(columns)).T
    shapes = 0.5 + 0.25 * np.arange(columns)
    return np.column_stack(
        [st.gamma.ppf(sp.ndtr(z[:, j]), shape, scale=2.0) for j, shape in enumerate(shapes)]
    )


def fit(x):
    gammas = [st.gamma.fit(column, floc=0) for column in x.T]
    ranks = st.rankdata(x, axis=0) / (len(x) + 1)
    return gammas, np.corrcoef(sp.ndtri(ranks).T)


def log_density(u, lower):
    x = sp.ndtri(u)
    white = scipy.linalg.solve_triangular(lower, x.T, lower=True)
    return 0.5 * ((x * x).sum(1) - (white * white).sum(0)) - np.log(lower.diagonal()).sum()


def t_log_density(u, r, freedom):
    y = st.t.ppf(u, freedom)
    joint = st.multivariate_t(shape=r, df=freedom)
    return joint.logpdf(y) - st.t.logpdf(y, freedom).sum(1)


def t_draws(n, lower, freedom):
    x = rng.standard_normal((n, len(lower))) @ lower.T
    return st.t.cdf(x / np.sqrt(rng.chisquare(freedom, (n, 1)) / freedom), freedom)


rng = np.random.default_rng(1)
x = table(10_000, 30)
gammas, r = least("fit, normal scores", lambda: fit(x))
joint = CopulaDistribution(
    GaussianCopula(corr=r, k_dim=30), [st.gamma(shape, scale=scale) for shape, _, scale in gammas]
)
draws = least("10,000 draws", lambda: joint.rvs(10_000))
least("their log densities", lambda: joint.logpdf(draws))
long = table(100_000, 20)
pairs = [(i, j) for i in range(20) for j in range(i)]
least("Kendall, 100,000 x 20", lambda: [st.kendalltau(long[:, i], long[:, j]) for i, j in pairs], 1)

r = neighbours(10)
lower = np.linalg.cholesky(r)
u = least(
    "Gaussian, 100,000 draws of 10",
    lambda: sp.ndtr(rng.standard_normal((100_000, 10)) @ lower.T),
)
least("Gaussian, their log densities", lambda: log_density(u, lower))
# The correlation of the scores, which is the most likely one only if their variances are one.
least("Gaussian, their fit", lambda: np.corrcoef(sp.ndtri(u).T))
u = least("t, 100,000 draws of 10", lambda: t_draws(100_000, lower, 4.0))
least("t, their log densities", lambda: t_log_density(u, r, 4.0), 2)
