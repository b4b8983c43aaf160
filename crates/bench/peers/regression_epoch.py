"""One epoch of the paper's regressor on one sequence, float32, eager.

    transformer    softmax attention, as the formula reads
    rbf_only       its similarity without the magnitude
    ikan_direct    (f_NS^2 + e) exp(|k|_p^2 / (2 sqrt d)), spectral points as parameters
    mikan          the same with points drawn jointly over the heads

The shape is (N, inputs, width, heads, R); the spectral kinds take the norm p from the case. `epoch`
is what a run repeats a thousand times: a training step over all rows (forward, mean square error
of nine tenths of them, backward, clipping, Adam) and one evaluation.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from common import main

FLOOR = 1e-5
PRIOR = 0.1
BETA = 0.1
SLOPE = 0.2


def three_layers(inputs, width):
    """Linear layers from `inputs` to `width`, twice more to `width`."""
    return nn.ModuleList([nn.Linear(n, width) for n in (inputs, width, width)])


class Direct(nn.Module):
    """Spectral points as parameters."""

    def __init__(self, d, heads, r):
        super().__init__()
        start = torch.randn(2, heads, r, d) / math.sqrt(2 * math.sqrt(d))
        self.w1 = nn.Parameter(start[0])
        self.w2 = nn.Parameter(start[0] + 0.1 * start[1])

    def forward(self, q, k):
        return self.w1, self.w2, 0.0


class Joint(nn.Module):
    """Spectral points of an implicit density, drawn through a Gaussian copula over the heads."""

    def __init__(self, d, heads, r):
        super().__init__()
        self.shape = heads, r, d
        self.inference = three_layers(2 * d, d)
        self.densities = nn.ModuleList([three_layers(d, d) for _ in range(2)])
        self.factor = nn.Linear(d, d)

    def forward(self, q, k):
        hidden, mu, log_sigma = self.infer(torch.cat([q.mean(-2), k.mean(-2)], -1))
        t = self.factor(hidden).tanh().mT
        lower = (t.unsqueeze(-1) * t.unsqueeze(-2)).tril(-1) + torch.eye(self.shape[0])
        lower = lower / lower.norm(dim=-1, keepdim=True)
        x = torch.einsum("lmn,nrl->mrl", lower, torch.randn(self.shape))
        z = mu.unsqueeze(1) + log_sigma.exp().unsqueeze(1) * x
        ratio = (log_sigma.exp() ** 2 + mu**2) / (2 * PRIOR**2)
        kl = (math.log(PRIOR) - log_sigma + ratio - 0.5).sum()
        kl = kl - lower.diagonal(dim1=-2, dim2=-1).log().sum()
        return *(self.density(net, z) for net in self.densities), BETA * kl

    def infer(self, h):
        first, mean, spread = self.inference
        hidden = F.leaky_relu(first(h), SLOPE)
        return hidden, mean(hidden), spread(hidden) + math.log(PRIOR)

    @staticmethod
    def density(net, z):
        y = z.abs()
        for layer in net[:-1]:
            y = F.leaky_relu(layer(y), SLOPE)
        return z.sign() * net[-1](y)


class Attention(nn.Module):
    """Self-attention of one sequence, `[N, width]`; its output and the penalty."""

    def __init__(self, kind, width, heads, r, p):
        super().__init__()
        self.kind, self.heads, self.p = kind, heads, p
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        points = {"ikan_direct": Direct, "mikan": Joint}.get(kind)
        self.points = points(width // heads, heads, r) if points else None

    def forward(self, x):
        q, k, v = (
            y(x).unflatten(-1, (self.heads, -1)).transpose(0, 1) for y in (self.q, self.k, self.v)
        )
        weights, penalty = self.weights(q, k)
        return self.o((weights @ v).transpose(0, 1).flatten(-2)), penalty

    def weights(self, q, k):
        root = math.sqrt(q.shape[-1])
        if self.kind == "transformer":
            return (q @ k.mT / root).softmax(-1), 0.0
        if self.kind == "rbf_only":
            return (-(torch.cdist(q, k) ** 2) / (2 * root)).softmax(-1), 0.0
        w1, w2, penalty = self.points(q, k)
        f = features(q, w1, w2) @ features(k, w1, w2).mT / (4 * w1.shape[1])
        m = k.abs().pow(self.p).sum(-1).pow(2 / self.p) / (2 * root)
        a = (f.square() + FLOOR) * (m - m.amax(-1, keepdim=True)).exp().unsqueeze(-2)
        return a / a.sum(-1, keepdim=True), penalty


def features(x, w1, w2):
    a, b = x @ w1.mT, x @ w2.mT
    return torch.cat([a.cos() + b.cos(), a.sin() + b.sin()], -1)


class Regressor(nn.Module):
    def __init__(self, kind, inputs, width, heads, r, p):
        super().__init__()
        self.input, self.output = nn.Linear(inputs, width), nn.Linear(width, 1)
        self.attention = Attention(kind, width, heads, r, p)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )

    def forward(self, rows):
        x = self.input(rows)
        y, penalty = self.attention(x)
        x = self.norm1(x + y)
        x = self.norm2(x + self.feed_forward(x))
        return self.output(x).squeeze(-1), penalty


def build(impl, shape, p=2.0):
    n, inputs, width, heads, r = shape
    model = Regressor(impl, inputs, width, heads, r, p)
    rows, target = torch.rand(n, inputs) * 2 - 1, torch.randn(n)
    train = torch.randperm(n)[: n * 9 // 10]
    adam = torch.optim.Adam(model.parameters(), lr=0.01)

    def epoch():
        model.train()
        adam.zero_grad()
        y, penalty = model(rows)
        (F.mse_loss(y[train], target[train]) + penalty / len(train)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1000.0)
        adam.step()
        model.eval()
        with torch.no_grad():
            return model(rows)

    return {"epoch": epoch}


def prepare(impl, shape, p=2.0):
    """Load what the case needs before memory is measured."""
    for run in build(impl, (20, 2, 8, 2, 4), p).values():
        run()


SETS = {
    "Passenger": (144, 1),
    "Housing": (506, 13),
    "CO2": (527, 1),
    "Concrete": (1030, 8),
    "Parkinsons": (5875, 20),
}
CASES = [
    {"impl": impl, "shape": (n, inputs, 64, heads, r), "p": p}
    for n, inputs in SETS.values()
    for impl, heads, r, p in (
        ("transformer", 4, 0, 2.0),
        ("transformer", 8, 0, 2.0),
        ("rbf_only", 8, 0, 2.0),
        ("ikan_direct", 8, 64, 3.0),
        ("mikan", 8, 64, 3.0),
    )
]

if __name__ == "__main__":
    main(__file__, CASES, build, prepare)
