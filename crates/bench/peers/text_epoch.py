"""One epoch of the sentence classifier at desk scale, float32, eager.

    softmax        torch.nn.TransformerEncoderLayer(norm_first=True)
    ikan_direct    the same layer, squared non-stationary kernel, spectral points as parameters
    mikan          the same with points drawn jointly over the heads, for every sentence anew

The shape is (rows, words, classes, d, heads, ff, R); p = 1.5. The lengths are those of the
training part of MR in fold 0 (8,528 sentences, 174,188 tokens); the words are drawn from Zipf's
law. One layer, embeddings times sqrt(d), sinusoidal positions, padding mask, mean over the kept
positions, cross entropy, gradient norm clipped at 1, fused Adam, batches of 64.

`epoch` is a training epoch with batches of similar length (windows of 50 batches, sorted);
`shuffled` one with batches drawn at random, padded to their longest; `evaluate` a forward pass over
as many sentences. Divide `tokens` by them for a throughput.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from common import main

FLOOR, P, PRIOR, BETA, SLOPE = 1e-5, 1.5, 0.1, 0.1, 0.2
DROPOUT, BATCH, WINDOW, PAD = 0.1, 64, 50, 0
# LENGTHS[i] sentences have i + 1 tokens
LENGTHS = [
    5, 45, 72, 107, 153, 135, 178, 218, 223, 240, 238, 252, 298, 294, 333, 318, 356, 338, 343, 349,
    311, 333, 300, 307, 292, 289, 262, 245, 202, 221, 184, 148, 155, 116, 99, 95, 92, 69, 54, 45,
    46, 26, 38, 27, 19, 14, 14, 9, 9, 3, 3, 3, 1, 1, 0, 1,
]  # fmt: skip


def sinusoids(length, d):
    rate = torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
    at = torch.arange(length).unsqueeze(1) * rate
    return torch.stack([at.sin(), at.cos()], -1).flatten(1)


def three_layers(inputs, width):
    return nn.ModuleList([nn.Linear(n, width) for n in (inputs, width, width)])


class Direct(nn.Module):
    def __init__(self, d, heads, r):
        super().__init__()
        start = torch.randn(2, heads, r, d) / math.sqrt(2 * math.sqrt(d))
        self.w1 = nn.Parameter(start[0])
        self.w2 = nn.Parameter(start[0] + 0.1 * start[1])

    def forward(self, q, k, kept):
        return self.w1, self.w2, 0.0


class Joint(nn.Module):
    """Points [B, heads, R, d] of an implicit density, joined by a Gaussian copula."""

    def __init__(self, d, heads, r):
        super().__init__()
        self.shape = heads, r, d
        self.inference = three_layers(2 * d, d)
        self.densities = nn.ModuleList([three_layers(d, d) for _ in range(2)])
        self.factor = nn.Linear(d, d)

    def forward(self, q, k, kept):
        weight = kept.unsqueeze(-1) / kept.sum(-1).view(-1, 1, 1, 1)
        h = torch.cat([(q * weight).sum(-2), (k * weight).sum(-2)], -1)
        first, mean, spread = self.inference
        hidden = F.leaky_relu(first(h), SLOPE)
        mu, log_sigma = mean(hidden), spread(hidden) + math.log(PRIOR)
        t = self.factor(hidden).tanh().mT
        lower = (t.unsqueeze(-1) * t.unsqueeze(-2)).tril(-1) + torch.eye(self.shape[0])
        lower = lower / lower.norm(dim=-1, keepdim=True)
        x = torch.einsum("blmn,bnrl->bmrl", lower, torch.randn(len(q), *self.shape))
        z = mu.unsqueeze(-2) + log_sigma.exp().unsqueeze(-2) * x
        ratio = (log_sigma.exp() ** 2 + mu**2) / (2 * PRIOR**2)
        kl = (math.log(PRIOR) - log_sigma + ratio - 0.5).flatten(1).sum(1)
        kl = kl - lower.diagonal(dim1=-2, dim2=-1).log().flatten(1).sum(1)
        return *(self.density(net, z) for net in self.densities), BETA * kl.mean()

    @staticmethod
    def density(net, z):
        y = z.abs()
        for layer in net[:-1]:
            y = F.leaky_relu(layer(y), SLOPE)
        return z.sign() * net[-1](y)


class KernelLayer(nn.Module):
    def __init__(self, kind, d, heads, ff, r):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.points = {"ikan_direct": Direct, "mikan": Joint}[kind](d // heads, heads, r)
        self.feed_forward = nn.Sequential(
            nn.Linear(d, ff), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(ff, d)
        )
        self.norm1, self.norm2, self.dropout = nn.LayerNorm(d), nn.LayerNorm(d), nn.Dropout(DROPOUT)

    def forward(self, x, padding):
        kept = (~padding)[:, None].float()
        y, penalty = self.attention(self.norm1(x), kept)
        x = x + self.dropout(y)
        return x + self.dropout(self.feed_forward(self.norm2(x))), penalty

    def attention(self, x, kept):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1)
        )
        w1, w2, penalty = self.points(q, k, kept)
        f = features(q, w1, w2) @ features(k, w1, w2).mT / (4 * w1.shape[-2])
        m = k.abs().pow(P).sum(-1).pow(2 / P) / (2 * math.sqrt(k.shape[-1]))
        g = (m - m.amax(-1, keepdim=True)).exp() * kept
        a = (f.square() + FLOOR) * g.unsqueeze(-2)
        weights = F.dropout(a / a.sum(-1, keepdim=True), DROPOUT, self.training)
        return self.out((weights @ v).transpose(1, 2).flatten(-2)), penalty


def features(x, w1, w2):
    a, b = x @ w1.mT, x @ w2.mT
    return torch.cat([a.cos() + b.cos(), a.sin() + b.sin()], -1)


class SoftmaxLayer(nn.Module):
    def __init__(self, d, heads, ff):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            d, heads, ff, DROPOUT, batch_first=True, norm_first=True
        )

    def forward(self, x, padding):
        return self.layer(x, src_key_padding_mask=padding), 0.0


class Classifier(nn.Module):
    def __init__(self, kind, words, classes, d, heads, ff, r):
        super().__init__()
        self.embedding, self.head = nn.Embedding(words, d), nn.Linear(d, classes)
        nn.init.normal_(self.embedding.weight, std=d**-0.5)
        if kind == "softmax":
            self.layer = SoftmaxLayer(d, heads, ff)
        else:
            self.layer = KernelLayer(kind, d, heads, ff, r)
        self.norm, self.dropout = nn.LayerNorm(d), nn.Dropout(DROPOUT)
        self.register_buffer("positions", sinusoids(len(LENGTHS), d))

    def forward(self, tokens):
        padding = tokens == PAD
        scale = math.sqrt(self.embedding.embedding_dim)
        x = self.embedding(tokens) * scale + self.positions[: tokens.shape[1]]
        x, penalty = self.layer(self.dropout(x), padding)
        kept = (~padding).unsqueeze(-1).float()
        return self.head((self.norm(x) * kept).sum(1) / kept.sum(1)), penalty


def corpus(rows, words):
    """Token lists with MR's lengths, every len/rows-th of them."""
    lengths = torch.repeat_interleave(torch.arange(len(LENGTHS)) + 1, torch.tensor(LENGTHS))
    lengths = lengths[torch.linspace(0, len(lengths) - 1, rows).long()]
    zipf = 1 / torch.arange(2, words).float()
    tokens = torch.multinomial(zipf, int(lengths.sum()), replacement=True) + 2
    return tokens.split(lengths.tolist())


def batches(sentences, window):
    order = torch.randperm(len(sentences)).tolist()
    out = []
    for start in range(0, len(order), window * BATCH):
        part = sorted(order[start : start + window * BATCH], key=lambda i: len(sentences[i]))
        out += [part[i : i + BATCH] for i in range(0, len(part), BATCH)]
    return [
        (nn.utils.rnn.pad_sequence([sentences[i] for i in out[b]], True, PAD), torch.tensor(out[b]))
        for b in torch.randperm(len(out)).tolist()
    ]


def build(impl, shape, tokens=None):
    rows, words, classes, d, heads, ff, r = shape
    model = Classifier(impl, words, classes, d, heads, ff, r)
    sentences, labels = corpus(rows, words), torch.randint(classes, (rows,))
    adam = torch.optim.Adam(model.parameters(), fused=True)

    def epoch(window):
        model.train()
        for tokens, where in batches(sentences, window):
            adam.zero_grad()
            logits, penalty = model(tokens)
            (F.cross_entropy(logits, labels[where]) + penalty / rows).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()

    @torch.no_grad()
    def evaluate():
        model.eval()
        return [model(tokens)[0].argmax(-1) for tokens, _ in batches(sentences, WINDOW)]

    return {"epoch": lambda: epoch(WINDOW), "shuffled": lambda: epoch(1), "evaluate": evaluate}


def prepare(impl, shape, tokens=None):
    """Load what the case needs before memory is measured."""
    for run in build(impl, (200, 50, 2, 8, 2, 8, 4)).values():
        run()


MR = (sum(LENGTHS), 16_904, 2)
TOKENS = sum((i + 1) * n for i, n in enumerate(LENGTHS))
CASES = [
    {"impl": impl, "shape": (*MR, d, d // 16, 2 * d, 32), "tokens": TOKENS}
    for d in (64, 128)
    for impl in ("softmax", "ikan_direct", "mikan")
]

if __name__ == "__main__":
    main(__file__, CASES, build, prepare)
