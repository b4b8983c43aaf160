"""Writes causality_lab_as_published.json: what IntelLabs' causality-lab finds with nothing in it changed.

Its ICD on the matrices of causality_lab.json, and its Ordered ICD, which knows that no token is a cause of an earlier
one, on those of attention with a causal mask and on models whose nodes are in the order of their causes.

    git clone https://github.com/IntelLabs/causality-lab && git -C causality-lab checkout 812235d
    pip install numpy==2.4.6 scipy==1.17.1 matplotlib
    PYTHONPATH=causality-lab python causality_lab_as_published.py > causality_lab_as_published.json
"""

import json
from pathlib import Path

import numpy as np
from causal_discovery_algs import LearnStructICD, LearnStructOrderedICD
from causality_lab import edges, provenance, test_of

HERE = Path(__file__).parent


def linear_model(nodes, seed):
    """Total effects of a sparse random model, causes first; weights uniform in +-[.5, 2]."""
    rng = np.random.default_rng(seed)
    present = np.tril(rng.random((nodes, nodes)) < 2 / (nodes - 1), -1)
    weights = rng.uniform(0.5, 2, (nodes, nodes)) * rng.choice([-1, 1], (nodes, nodes)) * present
    effects = np.eye(nodes)
    for node in range(nodes):
        effects[node] += weights[node] @ effects
    return effects


def found(case, a, search):
    test = test_of(a, case["samples"], case["level"])
    search = search(set(range(len(a))), test)
    search.learn_structure()
    return case | dict(edges=edges(search.graph))


def in_order(nodes, test):
    return LearnStructOrderedICD(nodes, sorted(nodes), test)


def of(case):
    return {key: case[key] for key in ("name", "samples", "level")}


known = json.loads((HERE / "causality_lab.json").read_text())["cases"]
cases = [found(of(case), np.array(case["a"]), LearnStructICD) for case in known]
ordered = [found(of(case), np.array(case["a"]), in_order)
           for case in known if case["name"].startswith("causal")]
for nodes in (6, 9, 12):
    for seed in range(4):
        a = linear_model(nodes, seed)
        case = dict(name=f"linear-{nodes}-{seed}", samples=1_000_000, level=0.01, a=a.tolist())
        ordered.append(found(case, a, in_order))
print(provenance("causality_lab_as_published.py") + ', "cases": [')
print(",\n".join(json.dumps(c) for c in cases))
print('], "ordered": [')
print(",\n".join(json.dumps(c) for c in ordered))
print("]}")
