"""One value and gradient of the sparse bound of Titsias by GPyTorch, float64.

    python gp_sparse.py [ROWS] [INDUCING]

The other side is `cargo run --release --package bochner-gp --example fifty_thousand_rows`. The gradient is that of
the hyper-parameters and of the inducing points, as there.
"""

import sys
from time import perf_counter

import gpytorch
import torch

ROWS, INDUCING, INPUTS = 50_000, 200, 4


class Sparse(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, inducing):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=INPUTS))
        self.kernel = gpytorch.kernels.InducingPointKernel(base, x[:inducing].clone(), likelihood)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


rows, inducing = (int(a) for a in (sys.argv[1:] + [ROWS, INDUCING][len(sys.argv) - 1 :]))
torch.manual_seed(1)
x = torch.rand(rows, INPUTS, dtype=torch.float64)
y = (6 * x[:, 0]).sin() + x[:, 1] ** 2 + 0.1 * torch.randn(rows, dtype=torch.float64)
likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
model = Sparse(x, y, likelihood, inducing).double()
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
model.train()
likelihood.train()
seconds = []
for _ in range(5):
    begin = perf_counter()
    model.zero_grad()
    (-objective(model(x), y)).backward()
    seconds.append(perf_counter() - begin)
print(f"{min(seconds):.3f} s a value and gradient")
