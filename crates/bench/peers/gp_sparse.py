"""The sparse process of Titsias by GPyTorch, float64: one value and gradient of the bound, a fit, and its error.

    python gp_sparse.py FILE [ROWS] [INDUCING]

Writes the rows to FILE and fits the hyper-parameters by Adam, with the first INDUCING rows as fixed inducing points.
The other side fits the same rows: `cargo run --release --package bochner-gp --example fifty_thousand_rows FILE`.
"""

import sys
from time import perf_counter

import gpytorch
import numpy as np
import torch

INPUTS, TESTED, STEPS = 4, 2_000, 60


class Sparse(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, inducing):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=INPUTS))
        self.kernel = gpytorch.kernels.InducingPointKernel(base, x[:inducing].clone(), likelihood)
        self.kernel.inducing_points.requires_grad = False

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


rows, inducing = (int(a) for a in (sys.argv[2:] + [50_000, 200][len(sys.argv) - 2 :]))
torch.manual_seed(1)
x = torch.rand(rows + TESTED, INPUTS, dtype=torch.float64)
truth = (6 * x[:, 0]).sin() + x[:, 1] ** 2
y = truth + 0.1 * torch.randn(rows + TESTED, dtype=torch.float64)
np.savetxt(sys.argv[1], torch.column_stack([x, y, truth]).numpy(), delimiter=",", fmt="%.17g")
likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
model = Sparse(x[:rows], y[:rows], likelihood, inducing).double()
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
model.train()
likelihood.train()
optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.1)
seconds, begin = [], perf_counter()
for _ in range(STEPS):
    once = perf_counter()
    optimiser.zero_grad()
    loss = -objective(model(x[:rows]), y[:rows])
    loss.backward()
    seconds.append(perf_counter() - once)
    optimiser.step()
print(f"{min(seconds):.3f} s a value and gradient, {perf_counter() - begin:.1f} s for {STEPS} steps of Adam")
print(f"bound {-loss.item() * rows:.2f}")
model.eval()
likelihood.eval()
with torch.no_grad():
    mean = model(x[rows:]).mean
for name, want in (("truth", truth), ("observations", y)):
    print(f"root mean squared error against {name}: {(mean - want[rows:]).square().mean().sqrt():.6f}")
