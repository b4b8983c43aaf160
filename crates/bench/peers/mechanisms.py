"""Other mechanisms, forward and forward + backward, in float32.

Shapes are those of attention.py: (B, H, T, d, dv, R). R is the number of random features, of Primal's
directions, or of the keys that a window shows; CAT has none.

    performer            performer_pytorch FastAttention, R features, not redrawn
    performer_tuned      the same sums as matrix products over features with one stabiliser a row
    performer_causal     performer_pytorch FastAttention, causal: cumulative sums over chunks of 128
    performer_causal_chunked
                         sums of whole chunks and masked products within a chunk of 128
    cat                  rfft of softmaxed scores and of values, product, irfft
    primal               Primal-Attention with data-dependent weights (10 R rows) and its loss
    softmax_flex         flex_attention, forward only
    softmax_window       flex_attention under a block mask: R keys up to the query's own, forward only
    softmax_window_sdpa  SDPA under a boolean matrix: R keys up to the query's own
    *_compile            under torch.compile
"""

import math

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from common import main

CHUNK = 128
ETA = 0.1


def frequencies(heads, features, width):
    """Orthogonal blocks with norms of normal rows, as Performer draws them."""
    blocks = [
        torch.linalg.qr(torch.randn(width, width))[0].T for _ in range(-(-features // width))
    ]
    w = torch.cat(blocks)[:features]
    return w * torch.randn(features, width).norm(dim=1, keepdim=True)


def positive_features(x, w, over):
    """exp(w.x - |x|^2 / 2) / sqrt m, but for a factor that the quotient cancels."""
    x = x * x.shape[-1] ** -0.25
    u = x @ w.T - x.square().sum(-1, keepdim=True) / 2
    return (u - u.detach().amax(over, keepdim=True)).exp() + 1e-4


def divided(o):
    return o[..., :-1] / o[..., -1:]


def with_ones(v):
    return torch.cat([v, torch.ones_like(v[..., :1])], -1)


def performer_tuned(w):
    def attend(q, k, v):
        fq, fk = positive_features(q, w, -1), positive_features(k, w, (-1, -2))
        return divided(fq @ (fk.mT @ with_ones(v)))

    return attend


def performer_causal_chunked(w):
    def attend(q, k, v):
        fq, fk = positive_features(q, w, -1), positive_features(k, w, (-1, -2))
        fq, fk, v = (x.unflatten(-2, (-1, CHUNK)) for x in (fq, fk, with_ones(v)))
        sums = (fk.mT @ v).cumsum(2).roll(1, 2)
        first = torch.arange(sums.shape[2]).view(-1, 1, 1) == 0
        sums = torch.where(first, 0.0, sums)
        return divided((fq @ sums + (fq @ fk.mT).tril() @ v).flatten(2, 3))

    return attend


def cat(_):
    def attend(z, v):
        z = torch.fft.rfft(z.softmax(-2), dim=-2)
        return torch.fft.irfft(z.conj() * torch.fft.rfft(v, dim=-2), n=v.shape[-2], dim=-2)

    return attend


def primal(rank):
    rows = 10 * rank

    def attend(q, k, x, we, wr, wc, scale):
        t = x.shape[-2]
        sample = x[:, :, torch.linspace(0, t - 1, rows, dtype=torch.int)].mT
        pe, pr = sample @ we, sample @ wr
        e, r = F.normalize(q, dim=-1) @ pe, F.normalize(k, dim=-1) @ pr
        s = scale.unsqueeze(1)
        objective = ((e * s).square().sum(-1) + (r * s).square().sum(-1)).mean() / 2
        trace = (pe * pr).sum((-1, -2)).mean()
        return torch.cat([e, r], -1) @ wc.mT, ETA * (objective - trace).square()

    return attend


def window(size):
    def attend(q, k, v):
        t = q.shape[-2]
        if t not in masks:
            kept = lambda b, h, i, j: (i >= j) & (i - j < size)
            masks[t] = create_block_mask(kept, None, None, t, t, device="cpu")
        return compiled(q, k, v, block_mask=masks[t])

    masks, compiled = {}, torch.compile(flex_attention)
    return attend


def window_sdpa(size):
    masks = {}

    def attend(q, k, v):
        t = q.shape[-2]
        if t not in masks:
            masks[t] = torch.ones(t, t, dtype=torch.bool).tril().triu(1 - size)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=masks[t])

    return attend


def flex(_):
    return torch.compile(flex_attention)


FORWARD_ONLY = ("softmax_flex", "softmax_window")


def inputs(impl, shape):
    b, h, t, d, dv, r = shape
    q, k, v = torch.randn(b, h, t, d), torch.randn(b, h, t, d), torch.randn(b, h, t, dv)
    if impl.startswith("cat"):
        args = [torch.randn(b, h, t, 1), v]
    elif impl.startswith("primal"):
        we, wr = (torch.randn(h, 10 * r, r) / math.sqrt(10 * r) for _ in range(2))
        wc = torch.randn(h, dv, 2 * r) / math.sqrt(2 * r)
        args = [q, k, torch.randn(b, h, t, d), we, wr, wc, torch.rand(h, r)]
    else:
        args = [q, k, v]
    return [x.requires_grad_() for x in args]


def implementation(impl, shape):
    _, h, _, d, _, r = shape
    name = impl.removesuffix("_compile")
    if name in ("performer", "performer_causal"):
        from performer_pytorch import FastAttention

        attend = FastAttention(dim_heads=d, nb_features=r, causal=name == "performer_causal")
    elif name.startswith("performer"):
        makers = {
            "performer_tuned": performer_tuned,
            "performer_causal_chunked": performer_causal_chunked,
        }
        attend = makers[name](frequencies(h, r, d))
    else:
        makers = {
            "cat": cat,
            "primal": primal,
            "softmax_flex": flex,
            "softmax_window": window,
            "softmax_window_sdpa": window_sdpa,
        }
        attend = makers[name](r)
    return torch.compile(attend) if impl.endswith("_compile") else attend


def outputs(result):
    return result if isinstance(result, tuple) else (result,)


def build(impl, shape):
    attend, args = implementation(impl, shape), inputs(impl, shape)
    upstream = torch.randn(*shape[:3], shape[4])

    def forward():
        with torch.no_grad():
            return attend(*(x.detach() for x in args))

    def forward_backward():
        output, *penalty = outputs(attend(*args))
        cotangents = [upstream, *(torch.ones_like(p) for p in penalty)]
        return torch.autograd.grad([output, *penalty], args, cotangents)

    both = {"fwd": forward, "fwd_bwd": forward_backward}
    return {"fwd": forward} if impl in FORWARD_ONLY else both


def expected(name, args, shape):
    """The formulas on a small case, without the speed."""
    if name == "cat":
        z, v = args
        z, t = z.softmax(-2).squeeze(-1), v.shape[-2]
        turned = torch.stack([z.roll(i, -1) for i in range(t)], -2)
        return turned @ v
    q, k, v = args
    if name == "softmax_flex":
        return F.scaled_dot_product_attention(q, k, v)
    t = q.shape[-2]
    kept = torch.ones(t, t, dtype=torch.bool).tril().triu(1 - shape[5])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=kept)


def prepare(impl, shape):
    """Loads what the case needs before memory is measured, the compiler too; checks the numbers."""
    name = impl.removesuffix("_compile")
    small = (2, 2, 2 * CHUNK, 16, 16, 2 if name == "primal" else 32)
    args = inputs(impl, small)
    attend = implementation(impl, small)
    with torch.no_grad():
        # The compiler of FlexAttention refuses inputs that want a gradient, whether or not it is taken.
        if impl in FORWARD_ONLY:
            args = [x.detach() for x in args]
        got = outputs(attend(*args))[0]
        if name == "performer_causal_chunked":
            # One row sees what the whole would show.
            part = [x[:, :, :CHUNK] for x in args]
            torch.testing.assert_close(got[:, :, 0], part[2][:, :, 0], rtol=1e-3, atol=1e-3)
        elif name == "cat" or name.startswith("softmax"):
            torch.testing.assert_close(got, expected(name, args, small), rtol=1e-3, atol=1e-4)
    if impl not in FORWARD_ONLY:
        torch.autograd.grad(outputs(attend(*args))[0].sum(), args, allow_unused=True)
    torch.compiler.reset()


LONG, MIDDLE = (1, 8, 16384, 64, 64, 256), (4, 8, 512, 64, 64, 64)
CASES = [{"impl": impl, "shape": shape} for impl, shape in [
    ("performer", LONG),
    ("performer_compile", LONG),
    ("performer_tuned", LONG),
    ("performer_tuned_compile", LONG),
    ("performer_causal", (1, 8, 2048, 64, 64, 256)),
    ("performer_causal_chunked", (1, 8, 2048, 64, 64, 256)),
    ("performer_causal_chunked_compile", (1, 8, 2048, 64, 64, 256)),
    ("cat", (4, 8, 4096, 64, 64, 1)),
    ("cat_compile", (4, 8, 4096, 64, 64, 1)),
    ("primal", (4, 8, 4096, 64, 64, 32)),
    ("primal_compile", (4, 8, 4096, 64, 64, 32)),
    ("softmax_flex", MIDDLE),
    ("softmax_window", (1, 8, 16384, 64, 64, 256)),
]]

if __name__ == "__main__":
    main(__file__, CASES, build, prepare)
