"""Writes causality_lab.json, what IntelLabs' causality-lab finds in a few attention matrices.

Its second round, with one node given, is made the general one here: its own asks for all neighbours of the two ends,
possible causes or not, and so finds other structures where tests err.

    git clone https://github.com/IntelLabs/causality-lab && git -C causality-lab checkout 812235d
    pip install numpy==2.4.6 scipy==1.17.1 matplotlib
    PYTHONPATH=causality-lab python causality_lab.py > causality_lab.json
"""

import json
import platform

import numpy as np
import scipy
from causal_discovery_algs import LearnStructICD
from causal_discovery_utils.cond_indep_tests import CondIndepParCorr
from causal_discovery_utils.stat_utils import cov_to_corr

LEFT, RIGHT = {1: "o", 2: "<", 3: "-"}, {1: "o", 2: ">", 3: "-"}


class General(LearnStructICD):
    def _learn_struct_base_step_1(self):
        return self._learn_struct_incremental_step(1)


def linear_model(nodes, seed):
    """Total effects of a sparse random model, its nodes shuffled; weights uniform in +-[.5, 2]."""
    rng = np.random.default_rng(seed)
    present = np.tril(rng.random((nodes, nodes)) < 2 / (nodes - 1), -1)
    weights = rng.uniform(0.5, 2, (nodes, nodes)) * rng.choice([-1, 1], (nodes, nodes)) * present
    order = rng.permutation(nodes)
    return np.linalg.inv(np.eye(nodes) - weights)[np.ix_(order, order)]


def softmax(nodes, seed, causal):
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.standard_normal((nodes, nodes))
    weights = np.exp(logits) * (np.tri(nodes) if causal else 1)
    return weights / weights.sum(1, keepdims=True)


def edges(graph):
    marks = graph.get_adj_mat()
    joined = [(i, j) for i in range(len(marks)) for j in range(i + 1, len(marks)) if marks[i, j]]
    return ", ".join(f"{i} {LEFT[marks[j, i]]}-{RIGHT[marks[i, j]]} {j}" for i, j in joined)


def test_of(a, samples, level):
    test = CondIndepParCorr(level, None, num_records=samples, num_vars=len(a))
    test.correlation_matrix = cov_to_corr(a @ a.T)
    return test


def case(name, a, samples, level=0.01):
    search = General(set(range(len(a))), test_of(a, samples, level))
    search.learn_structure()
    return dict(name=name, samples=samples, level=level, a=a.tolist(), edges=edges(search.graph))


def provenance(script):
    """The beginning of the file that a script writes, up to its cases."""
    made = dict(
        made_by=f"{script} beside this file, whose first lines have the command",
        causality_lab="812235d", python=platform.python_version(),
        numpy=np.__version__, scipy=scipy.__version__)
    return json.dumps(dict(provenance=made)).rstrip("}") + "}"


if __name__ == "__main__":
    cases = [case(f"linear-{nodes}-{seed}", linear_model(nodes, seed), 1_000_000)
             for nodes in (6, 9, 12) for seed in range(4)]
    cases += [case(f"softmax-{nodes}-{seed}", softmax(nodes, seed, False), 64)
              for nodes in (6, 8) for seed in range(4)]
    cases += [case(f"causal-{nodes}-{seed}", softmax(nodes, seed, True), 64)
              for nodes in (6, 8) for seed in range(4)]
    print(provenance("causality_lab.py") + ', "cases": [')
    print(",\n".join(json.dumps(c) for c in cases))
    print("]}")
