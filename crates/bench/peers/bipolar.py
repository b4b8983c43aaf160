"""Bipolar attention, forward and forward + backward, in float32.

Shapes are those of attention.py: (B, H, T, d, dv, R), R without a meaning here, d at most 64. Weights are
2^(t(q).t(k) - gamma) with ternary t and the smallest whole gamma with which a row sums to at most 1,
exactly; gradients go straight through the ceiling, and through a window around the thresholds.

    bipolar              as the formulas read: gamma by three sums of float64 that are exact
    bipolar_tuned        the same numbers; a row is counted where its float32 sum leaves a doubt, and the
                         product with v is divided instead of the weights
    bipolar_sdpa         the same numbers through SDPA's kernel to the base 2 and the row sums that it
                         returns, counting where they leave a doubt
    *_compile            under torch.compile
"""

import math

import torch

from common import main

SHAPES = [(4, 8, 512, 64, 64, 1), (1, 8, 2048, 64, 64, 1)]
THRESHOLD, SURROGATE_WIDTH = 0.5, 1.0


class Ternary(torch.autograd.Function):
    """sign(x) [|x| >= threshold], with the slope 1 / width around the threshold."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x.abs() >= THRESHOLD, x.sign(), 0.0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        is_near = (x.abs() - THRESHOLD).abs() < SURROGATE_WIDTH / 2
        return torch.where(is_near, g / SURROGATE_WIDTH, 0.0)


def exact_ceiling(x):
    """ceil(log2(sum 2^x)) over the last axis, exactly, for whole x from -128 to 0.

    A sum of up to 2^11 terms on 43 levels fits the 53 digits of float64: its carry is handed on.
    """
    w = x.double().exp2()
    high = torch.where(x > -43, w, 0.0).sum(-1)
    middle = torch.where((x <= -43) & (x > -86), w, 0.0).sum(-1)
    low = torch.where(x <= -86, w, 0.0).sum(-1)
    carry = (low * 2.0**85).floor() / 2.0**85
    low, middle = low - carry, middle + carry
    carry = (middle * 2.0**42).floor() / 2.0**42
    middle, high = middle - carry, high + carry
    fraction, exponent = torch.frexp(high)
    is_more = (fraction > 0.5) | (middle > 0) | (low > 0)
    return torch.where(is_more, exponent, exponent - 1)


@torch.compiler.disable
def settled(power, is_open, x):
    """Counts the rows that are open; `x` are the scores relative to the largest."""
    rows = is_open.nonzero(as_tuple=True)
    if rows[0].numel():
        power = power.clone()
        power[rows] = exact_ceiling(x[rows]).to(power.dtype)
    return power


def plain(q, k, v):
    x = Ternary.apply(q) @ Ternary.apply(k).mT
    x = x - x.detach().amax(-1, keepdim=True)
    divisor = exact_ceiling(x.detach()).float().exp2().unsqueeze(-1)
    w = x.exp2()
    total = w.sum(-1, keepdim=True)
    # Straight through the ceiling: the quotient of the two sums is a constant.
    return (w * ((total / divisor).detach() / total)) @ v


def tuned(q, k, v):
    x = Ternary.apply(q) @ Ternary.apply(k).mT
    x = x - x.detach().amax(-1, keepdim=True)
    w = x.exp2()
    total = w.sum(-1, keepdim=True)
    fraction, exponent = torch.frexp(total.detach().squeeze(-1))
    is_open = (fraction < 0.5 + 1e-5) | (fraction > 1 - 1e-5)
    power = settled(exponent, is_open, x.detach())
    share = total.detach() / power.float().exp2().unsqueeze(-1)
    return (w @ v) * (share / total)


def sdpa(q, k, v):
    q, k = Ternary.apply(q), Ternary.apply(k)
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    output, log_sum = kernel(q, k, v, scale=math.log(2))
    log_sum = log_sum.detach() / math.log(2)
    power = log_sum.ceil()
    rows = ((log_sum - log_sum.round()).abs() < 1e-4).nonzero(as_tuple=True)
    if rows[0].numel():
        x = scores_of(rows, q.detach(), k.detach())
        largest = x.amax(-1)
        power[rows] = exact_ceiling(x - largest.unsqueeze(-1)).float() + largest
    return output * (log_sum - power).exp2().unsqueeze(-1)


def scores_of(rows, q, k):
    """The scores of some rows: their keys are copied, unless there are so many that all scores are cheaper."""
    if rows[0].numel() > q.shape[-2]:
        return (q @ k.mT)[rows]
    return (k[rows[:2]] @ q[rows].unsqueeze(-1)).squeeze(-1)


EAGER = {"bipolar": plain, "bipolar_tuned": tuned, "bipolar_sdpa": sdpa}
IMPLS = ["bipolar", "bipolar_compile", "bipolar_tuned", "bipolar_tuned_compile", "bipolar_sdpa"]


def implementation(impl):
    if impl.endswith("_compile"):
        return torch.compile(EAGER[impl.removesuffix("_compile")])
    return EAGER[impl]


def inputs(shape):
    b, h, t, d, dv, _ = shape
    q, k, v = torch.randn(b, h, t, d), torch.randn(b, h, t, d), torch.randn(b, h, t, dv)
    return [x.requires_grad_() for x in (q, k, v)]


def build(impl, shape):
    attend, args = implementation(impl), inputs(shape)
    upstream = torch.randn(*shape[:3], shape[4])

    def forward():
        with torch.no_grad():
            return attend(*args)

    def forward_backward():
        return torch.autograd.grad(attend(*args), args, upstream)

    return {"fwd": forward, "fwd_bwd": forward_backward}


def prepare(impl, shape):
    """Load what the case needs before memory is measured, the compiler too; check the numbers."""
    check_ceiling()
    args, attend = inputs((2, 2, 40, 8, 8, 0)), implementation(impl)
    got, expected = attend(*args), plain(*args)
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
    upstream = torch.randn_like(got)
    gradients, wanted = (torch.autograd.grad(x, args, upstream) for x in (got, expected))
    torch.testing.assert_close(gradients, wanted, rtol=1e-3, atol=1e-4)
    torch.compiler.reset()


def check_ceiling():
    """Against whole numbers of Python, where carries and the smallest terms decide."""
    carry = list(range(-1, -129, -1)) + [-128]
    rows = [[0, -128], [-128] * 9, carry, carry + [-128], [0, -1, -43, -43], [0, -1, -1, -86]]
    generator = torch.Generator().manual_seed(0)
    draws = torch.randint(-128, 1, (50, 12), generator=generator)
    for row in rows + draws.tolist():
        row = [x - max(row) for x in row]
        total = sum(1 << (x + 128) for x in row)
        expected = (total - 1).bit_length() - 128
        assert exact_ceiling(torch.tensor([row]).float()).item() == expected, row


CASES = [{"impl": impl, "shape": shape} for shape in SHAPES for impl in IMPLS]

if __name__ == "__main__":
    main(__file__, CASES, build, prepare)
