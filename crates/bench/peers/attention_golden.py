"""Golden cases of PyTorch's scaled_dot_product_attention, in double precision.

    python attention_golden.py ../../crates/attention/tests/it/torch.json

What bochner-attention makes of biases, windows, packed sequences and shared heads, here written as the masks,
biases and options that PyTorch takes. Each case holds queries, keys, values, what the call gives, and the
gradients of the sum of the output times a cotangent, all as flat lists with their shapes.
"""

import json
import math
import sys

import torch
from torch.nn.functional import scaled_dot_product_attention as attention

B, M, QUERIES, KEYS, WIDTH, VALUES = 2, 4, 4, 6, 3, 2
REACH = 2


def short(*shape):
    """Normal numbers of two decimals, which are short to write."""
    return (torch.randn(shape) * 100).round() / 100


def distances(queries, keys):
    """Query i stands at key i + keys - queries: its place less the key's."""
    i, j = torch.arange(queries).view(-1, 1), torch.arange(keys)
    return i + keys - queries - j


def flat(x):
    return None if x is None else {"shape": list(x.shape), "data": x.flatten().tolist()}


def case(name, mask=None, bias=None, learnt=(), heads=M, batch=B, lengths=(QUERIES, KEYS), **options):
    """`mask` keeps pairs, `bias` makes what is added to logits of the tensors in `learnt`."""
    torch.manual_seed(sum(map(ord, name)))
    queries, keys = lengths
    q = short(batch, M, queries, WIDTH).requires_grad_()
    k = short(batch, heads, keys, WIDTH).requires_grad_()
    v = short(batch, heads, keys, VALUES).requires_grad_()
    learnt = [short(*shape).requires_grad_() for shape in learnt]
    added = bias(*learnt) if bias else torch.zeros(1, 1, queries, keys)
    if mask is not None:
        added = added.masked_fill(~mask, -math.inf)
    shared = {"enable_gqa": True} if heads < M else {}
    output = attention(q, k, v, attn_mask=added, **shared, **options)
    cotangent = short(*output.shape)
    (output * cotangent).sum().backward()
    return {
        "name": name,
        "q": flat(q.detach()),
        "k": flat(k.detach()),
        "v": flat(v.detach()),
        "bias": flat(learnt[0].detach()) if learnt else None,
        "output": flat(output.detach()),
        "cotangent": flat(cotangent),
        "gradients": [flat(x.grad) for x in (q, k, v)],
        "bias_gradient": flat(learnt[0].grad) if learnt else None,
    }


def main(path):
    torch.set_default_dtype(torch.float64)
    away = distances(QUERIES, KEYS)
    slopes = torch.tensor([2.0 ** (-8.0 * m / M) for m in range(1, M + 1)]).view(1, M, 1, 1)
    lengths = torch.tensor([KEYS, 3]).view(B, 1, 1, 1)
    of_pieces = torch.tensor([0, 0, 1, 1, 1, 2])
    block = 2
    places = torch.arange(QUERIES).view(-1, 1) + KEYS - QUERIES
    blocks = torch.arange(KEYS) // block <= places // block
    cases = [
        case("plain"),
        case("scale", scale=0.3),
        case("causal", mask=away >= 0),
        case("lengths", mask=torch.arange(KEYS) < lengths),
        case("window", mask=(away <= 2) & (away >= -1)),
        case("causal-window", mask=(away <= 1) & (away >= 0)),
        case("prefix", mask=(torch.arange(KEYS) < 4) | (away >= 0)),
        case("blocks", mask=blocks),
        case(
            "packed",
            batch=1,
            lengths=(KEYS, KEYS),
            mask=of_pieces.view(-1, 1) == of_pieces,
        ),
        case("matrices", mask=(torch.arange(B * M * QUERIES * KEYS) % 3 != 1).view(B, M, QUERIES, KEYS)),
        case("bias", bias=lambda bias: bias, learnt=[(1, M, QUERIES, KEYS)]),
        case("bias-by-example", bias=lambda bias: bias, learnt=[(B, 1, QUERIES, KEYS)]),
        case("alibi", bias=lambda: -slopes * away.abs()),
        case(
            "relative",
            bias=lambda table: table[:, away.clamp(-REACH, REACH) + REACH].unsqueeze(0),
            learnt=[(M, 2 * REACH + 1)],
        ),
        case("shared-heads", heads=2),
        case("one-shared-head", heads=1, mask=away >= 0),
        case(
            "shared-heads-window-relative",
            heads=2,
            mask=(away <= 2) & (away >= 0),
            bias=lambda table: table[:, away.clamp(-REACH, REACH) + REACH].unsqueeze(0),
            learnt=[(M, 2 * REACH + 1)],
        ),
    ]
    with open(path, "w") as file:
        json.dump({"torch": torch.__version__, "cases": cases}, file)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
