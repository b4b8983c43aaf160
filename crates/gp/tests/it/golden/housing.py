"""Makes housing.json: what scikit-learn says of Gaussian processes on the Housing data.

usage: python housing.py DIRECTORY/housing/housing.data > housing.json
"""

import hashlib
import json
import platform
import sys

import numpy
import scipy
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

MEAN, NOISE, VARIANCE = 0.1, 0.02, 0.8
EACH = [0.9 + 0.3 * n for n in range(13)]
CASES = [
    ("scaled_rbf", RBF(1.7), [1.7]),
    ("scaled_rbf_ard", RBF(EACH), EACH),
    ("scaled_matern_three_halves", Matern(2.1, nu=1.5), [2.1]),
    ("scaled_matern_five_halves_ard", Matern(EACH, nu=2.5), EACH),
]


def fitted(base, x, y):
    kernel = ConstantKernel(VARIANCE) * base + WhiteKernel(NOISE)
    return GaussianProcessRegressor(kernel, alpha=0, optimizer=None).fit(x, y - MEAN)


def case(name, base, lengthscales, x, y):
    everything = fitted(base, x, y)
    theta = everything.kernel_.theta
    evidence, gradient = everything.log_marginal_likelihood(theta, eval_gradient=True)
    asked = numpy.arange(len(y)) % 10 == 0
    mean, std = fitted(base, x[~asked], y[~asked]).predict(x[asked], return_std=True)
    return {
        "name": name,
        "mean": MEAN,
        "noise": NOISE,
        "variance": VARIANCE,
        "lengthscales": lengthscales,
        "log_marginal_likelihood": evidence,
        "gradient": [gradient[-1], *gradient[:-1]],
        "predictive_mean": list(mean + MEAN),
        "predictive_variance": list(std**2),
    }


with open(sys.argv[1], "rb") as file:
    data = file.read()
table = numpy.array([[float(cell) for cell in line.split()] for line in data.splitlines()])
low, high = table.min(0), table.max(0)
table = 2 * (table - low) / (high - low) - 1
x, y = table[:, :-1], table[:, -1]
provenance = {
    "made_by": "housing.py: GaussianProcessRegressor, alpha = 0, optimizer = None, "
    "kernel + WhiteKernel(noise), targets less the mean",
    "python": platform.python_version(),
    "sklearn": sklearn.__version__,
    "numpy": numpy.__version__,
    "scipy": scipy.__version__,
    "file": "housing/housing.data",
    "sha256": hashlib.sha256(data).hexdigest(),
    "rows": "every column scaled to [-1, 1], the last one is the target; evidence and gradient "
    "of all rows; predictions of every tenth row from the others",
    "gradient": "along the logarithms: noise, variance, lengthscales",
    "predictive_variance": "of observations, noise included",
}
cases = [case(*settings, x, y) for settings in CASES]
json.dump({"provenance": provenance, "cases": cases}, sys.stdout, indent=1)
print()
