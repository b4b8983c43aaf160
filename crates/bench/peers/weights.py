"""Weights of PyTorch's and PyTorch Geometric's layers with what the layers give, as safetensors files.

    python weights.py ../..

writes `torch-f64.safetensors` and `torch-f32.safetensors` below the tests of bochner-attention and bochner-models,
and `pyg-*.safetensors` below those of bochner-graph. Needs torch, torch_geometric and safetensors. A case is the
weights under `CASE.layer.` as `state_dict()` names them, its inputs and its outputs.

    python weights.py --check DIR

loads `multi-head.safetensors`, `encoder.safetensors`, `gat.safetensors`, `gatv2.safetensors` and `gcn.safetensors`
of DIR, which hold a case each under `layer.` that bochner has written, and prints the largest difference of outputs.
"""

import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv

torch.backends.mha.set_fastpath_enabled(False)
WIDTH, HEADS, HIDDEN, MEMORY = 8, 2, 12, 6
# The padding of two sequences of lengths 5 and 3, and of their memories of lengths 2 and 4.
PADDED = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
MEMORY_PADDED = torch.tensor([[False] * 2 + [True] * 2, [False] * 4])
CAUSAL = torch.ones(5, 5, dtype=torch.bool).triu(1)
EDGES = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 1), (3, 2), (4, 3), (1, 4), (2, 4)]


def draw(module):
    """Normal weights, so that no bias is zero and no scale one."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.6)
    return module.eval()


def encoder_layer(**options):
    return nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, batch_first=True, **options)


def tanh_gelu(x):
    return nn.functional.gelu(x, approximate="tanh")


def attention():
    torch.manual_seed(1)
    x, memory = torch.randn(2, 5, WIDTH), torch.randn(2, 4, MEMORY)
    layer = draw(nn.MultiheadAttention(WIDTH, HEADS, batch_first=True))
    plain = draw(nn.MultiheadAttention(WIDTH, HEADS, bias=False, batch_first=True))
    cross = draw(nn.MultiheadAttention(WIDTH, HEADS, kdim=MEMORY, vdim=MEMORY, batch_first=True))
    with_keys = draw(nn.MultiheadAttention(WIDTH, HEADS, add_bias_kv=True, batch_first=True))
    return {
        "self": (layer, {
            "x": x,
            "padded": layer(x, x, x, key_padding_mask=PADDED)[0],
            "causal": layer(x, x, x, attn_mask=CAUSAL)[0],
        }),
        "plain": (plain, {"x": x, "padded": plain(x, x, x, key_padding_mask=PADDED)[0]}),
        "cross": (cross, {
            "x": x,
            "memory": memory,
            "padded": cross(x, memory, memory, key_padding_mask=MEMORY_PADDED)[0],
        }),
        "bias-kv": (with_keys, {}),
    }


def encoders():
    torch.manual_seed(2)
    x = torch.randn(2, 5, WIDTH)
    options = {
        "post": {},
        "pre": {"norm_first": True, "activation": tanh_gelu, "layer_norm_eps": 1e-2},
        "gelu": {"activation": "gelu"},
    }
    modules = {name: draw(encoder_layer(**chosen)) for name, chosen in options.items()}
    for name, first in [("stack-pre", True), ("stack-post", False)]:
        layer = encoder_layer(norm_first=first)
        norm = nn.LayerNorm(WIDTH) if first else None
        modules[name] = draw(nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False))
    norm = nn.LayerNorm(WIDTH)
    modules["stack-normed"] = draw(
        nn.TransformerEncoder(encoder_layer(), 1, norm, enable_nested_tensor=False)
    )
    return {
        name: (module, {"x": x, "padded": module(x, src_key_padding_mask=PADDED)})
        for name, module in modules.items()
    }


def graphs():
    torch.manual_seed(3)
    edges = torch.tensor(EDGES).T
    x, y, attributes = torch.randn(5, 4), torch.randn(5, 3), torch.randn(len(EDGES), 2)
    gat = draw(GATConv(4, 3, heads=2))
    mean = draw(GATConv(4, 3, heads=2, concat=False, edge_dim=2, add_self_loops=False, residual=True))
    apart = draw(GATConv((3, 4), 3, heads=2, bias=False, add_self_loops=False))
    v2 = draw(GATv2Conv(4, 3, heads=2))
    v2_edges = draw(GATv2Conv(4, 3, heads=2, edge_dim=2, add_self_loops=False))
    shared = draw(GATv2Conv(4, 3, heads=2, share_weights=True))
    gcn = draw(GCNConv(4, 3))
    return {
        "gat": (gat, {"x": x, "output": gat(x, edges)}),
        "gat-mean": (mean, {"x": x, "attributes": attributes, "output": mean(x, edges, attributes)}),
        "gat-apart": (apart, {"x": x, "sources": y, "output": apart((y, x), edges)}),
        "gatv2": (v2, {"x": x, "output": v2(x, edges)}),
        "gatv2-edges": (v2_edges, {
            "x": x,
            "attributes": attributes,
            "output": v2_edges(x, edges, attributes),
        }),
        "gatv2-shared": (shared, {"x": x, "output": shared(x, edges)}),
        "gcn": (gcn, {"x": x, "output": gcn(x, edges)}),
    }


FILES = {
    "attention/tests/it/layer/torch": attention,
    "models/tests/it/torch": encoders,
    "graph/tests/it/layer/pyg": graphs,
}


def write(root):
    for path, cases in FILES.items():
        for name, dtype in [("f64", torch.float64), ("f32", torch.float32)]:
            torch.set_default_dtype(dtype)
            tensors = {}
            for case, (module, others) in cases().items():
                state = {f"layer.{key}": value for key, value in module.state_dict().items()}
                for key, value in (state | others).items():
                    tensors[f"{case}.{key}"] = value.detach().clone().contiguous()
            save_file(tensors, pathlib.Path(root, "crates", f"{path}-{name}.safetensors"))


def check(directory):
    torch.set_default_dtype(torch.float64)
    edges = torch.tensor(EDGES).T
    norm = nn.LayerNorm(WIDTH)
    stack = nn.TransformerEncoder(
        encoder_layer(norm_first=True, activation="gelu"), 2, norm, enable_nested_tensor=False
    )
    modules = {
        "multi-head": (nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), lambda m, x: m(x, x, x)[0]),
        "encoder": (stack, lambda m, x: m(x)),
        "gat": (GATConv(4, 3, heads=2), lambda m, x: m(x, edges)),
        "gatv2": (GATv2Conv(4, 3, heads=2), lambda m, x: m(x, edges)),
        "gcn": (GCNConv(4, 3), lambda m, x: m(x, edges)),
    }
    for name, (module, apply) in modules.items():
        path = pathlib.Path(directory, f"{name}.safetensors")
        if not path.exists():
            print(f"{name}: no file")
            continue
        tensors = load_file(path)
        state = {key[6:]: value for key, value in tensors.items() if key.startswith("layer.")}
        module.load_state_dict(state)
        output = apply(module.eval(), tensors["x"])
        print(f"{name}: {(output - tensors['output']).abs().max().item():.2e}")


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(sys.argv[2])
    else:
        write(sys.argv[1])
