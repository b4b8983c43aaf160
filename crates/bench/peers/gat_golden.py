"""Golden cases of PyTorch Geometric's GATConv and GATv2Conv, in double precision.

    python gat_golden.py ../../graph/tests/it/layer/pytorch_geometric.json

Each case holds a small graph, features, parameters in the layout of bochner-graph (matrices as lists of
rows), what the layer gives, and the gradients of the sum of the output times a cotangent. Self loops are
not added: they are among the edges, or not to be there.
"""

import json
import sys

import torch
import torch_geometric
from torch_geometric.nn import GATConv, GATv2Conv

NODES, SOURCES, INPUTS, SOURCE_INPUTS, HEADS, WIDTH, ATTRIBUTES = 6, 8, 5, 4, 3, 4, 2


def edges(targets, sources, count):
    """Pairs (source, target); node 4 receives nothing, and the first edge is there twice."""
    source = torch.randint(sources, (count,))
    target = torch.randint(targets, (count,))
    target[target == 4] = 0
    index = torch.stack([source, target])
    return torch.cat([index, index[:, :1]], dim=1)


def short(*shape):
    """Normal numbers of two decimals, which are short to write."""
    return (torch.randn(shape) * 100).round() / 100


def case(
    name,
    conv,
    concat=True,
    attributes=False,
    bipartite=False,
    bias=True,
    residual=False,
    **options,
):
    torch.manual_seed(sum(map(ord, name)))
    sizes = (SOURCE_INPUTS, INPUTS) if bipartite else INPUTS
    layer = conv(
        sizes,
        WIDTH,
        HEADS,
        concat=concat,
        negative_slope=0.2,
        add_self_loops=False,
        edge_dim=ATTRIBUTES if attributes else None,
        bias=bias,
        residual=residual,
        **options,
    )
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(short(*parameter.shape))
    sources = SOURCES if bipartite else NODES
    index = edges(NODES, sources, 17)
    x = short(NODES, INPUTS).requires_grad_()
    y = short(SOURCES, SOURCE_INPUTS).requires_grad_() if bipartite else None
    given = short(index.shape[1], ATTRIBUTES) if attributes else None
    output, (_, alpha) = layer(
        (y, x) if bipartite else x, index, given, return_attention_weights=True
    )
    cotangent = short(*output.shape)
    (output * cotangent).sum().backward()
    named = parameters(layer, conv, bipartite)
    return {
        "name": name,
        "kind": "dynamic" if conv is GATv2Conv else "classic",
        "merge": "concatenate" if concat else "average",
        "edges": index.t().tolist(),
        "targets": x.tolist(),
        "sources": None if y is None else y.tolist(),
        "attributes": None if given is None else given.tolist(),
        "parameters": {key: of.tolist() for key, (of, _) in named.items()},
        "output": output.tolist(),
        "alpha": alpha.tolist(),
        "cotangent": cotangent.tolist(),
        "gradients": {key: of.tolist() for key, (_, of) in named.items()},
        "gradient_targets": x.grad.tolist(),
        "gradient_sources": None if y is None else y.grad.tolist(),
    }


def parameters(layer, conv, bipartite):
    """Values and gradients, as bochner-graph names them and lays them out."""
    found = {}

    def put(name, *parts):
        """Puts the columns of several parameters side by side."""
        values = [(part(p).detach(), part(p.grad)) for p, part in parts]
        found[name] = [torch.cat(side, dim=-1) for side in zip(*values)]

    def transposed(p):
        return p.t()

    def heads(p):
        return p[0]

    def unchanged(p):
        return p

    if conv is GATv2Conv:
        put("weight", (layer.lin_r.weight, transposed))
        if not layer.share_weights:
            put("source_weight", (layer.lin_l.weight, transposed))
        if layer.lin_r.bias is not None:
            put("weight_bias", (layer.lin_r.bias, unchanged))
            if not layer.share_weights:
                put("source_weight_bias", (layer.lin_l.bias, unchanged))
        put("a", (layer.att, heads))
        if layer.lin_edge is not None:
            put("edge_weight", (layer.lin_edge.weight, transposed))
    else:
        if bipartite:
            put("weight", (layer.lin_dst.weight, transposed))
            put("source_weight", (layer.lin_src.weight, transposed))
        else:
            put("weight", (layer.lin.weight, transposed))
        put("a", (layer.att_dst, heads), (layer.att_src, heads))
        if layer.lin_edge is not None:
            put("edge_weight", (layer.lin_edge.weight, transposed))
            put("edge_a", (layer.att_edge, heads))
    if layer.bias is not None:
        put("bias", (layer.bias, unchanged))
    if layer.res is not None:
        put("residual", (layer.res.weight, transposed))
    return found


def main(path):
    torch.set_default_dtype(torch.float64)
    cases = [
        case("gat-concatenate", GATConv),
        case("gat-average", GATConv, concat=False),
        case("gat-attributes", GATConv, attributes=True),
        case("gat-bipartite", GATConv, bipartite=True),
        case("gat-no-bias", GATConv, bias=False),
        case("gat-residual", GATConv, residual=True),
        case(
            "gat-everything",
            GATConv,
            concat=False,
            attributes=True,
            bipartite=True,
            residual=True,
        ),
        case("gatv2-concatenate", GATv2Conv),
        case("gatv2-average", GATv2Conv, concat=False),
        case("gatv2-bipartite", GATv2Conv, bipartite=True, residual=True),
        case("gatv2-no-bias", GATv2Conv, bias=False, residual=True),
        case("gatv2-attributes", GATv2Conv, attributes=True),
        case("gatv2-attributes-no-bias", GATv2Conv, attributes=True, bias=False),
        case("gatv2-shared", GATv2Conv, share_weights=True, attributes=True),
        case(
            "gatv2-everything",
            GATv2Conv,
            concat=False,
            attributes=True,
            bipartite=True,
            residual=True,
        ),
    ]
    provenance = {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__}
    with open(path, "w") as file:
        json.dump({"provenance": provenance, "cases": cases}, file)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
