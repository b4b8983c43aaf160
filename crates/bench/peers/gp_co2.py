"""Carbon dioxide at Mauna Loa by scikit-learn: the classic sum of kernels, best of several starts.

    BOCHNER_DATA=.. python gp_co2.py [RESTARTS]

The other side is `cargo run --release --package bochner-gp --example carbon_dioxide`. Needs scikit-learn.
"""

import csv
import os
import sys
from time import perf_counter

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, RationalQuadratic, WhiteKernel


def months():
    path = os.path.join(os.environ["BOCHNER_DATA"], "co2", "mauna-loa-c02-1965-2016.csv")
    with open(path, encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))[55:]
    table = np.array([[float(row[2]), float(row[3])] for row in rows])
    return table[:, :1], table[:, 1] - table[:, 1].mean()


def regressor(**options):
    kernel = (
        50.0**2 * RBF(50.0)
        + 2.0**2 * RBF(100.0) * ExpSineSquared(1.0, 1.0)
        + 0.5**2 * RationalQuadratic(length_scale=1.0, alpha=1.0)
        + 0.1**2 * RBF(0.1)
        + WhiteKernel(0.1**2)
    )
    return GaussianProcessRegressor(kernel=kernel, alpha=0.0, random_state=0, **options)


x, y = months()
start = regressor(optimizer=None).fit(x, y)
seconds = []
for _ in range(5):
    begin = perf_counter()
    start.log_marginal_likelihood(start.kernel_.theta, eval_gradient=True)
    seconds.append(perf_counter() - begin)
print(f"{min(seconds):.3f} s an evaluation with gradient")
restarts = int(sys.argv[1]) if len(sys.argv) > 1 else 0
begin = perf_counter()
fitted = regressor(n_restarts_optimizer=restarts).fit(x, y)
print(f"ln p = {fitted.log_marginal_likelihood_value_:.3f} in {perf_counter() - begin:.2f} s")
print(fitted.kernel_)
