"""Writes ter.json: lines of few words, with the edits and the TER that sacrebleu 2.6.0 gives them.

    pip install sacrebleu==2.6.0; python ter.py > ter.json
"""

import json
import random

import sacrebleu
from sacrebleu.metrics import TER

drawn = random.Random(1)


def line(words, length):
    return " ".join(drawn.choice("abcdefghijklmnop"[:words]) for _ in range(length))


def moved(text):
    """The words with one run of them in another place, and one word replaced."""
    words = text.split()
    start = drawn.randrange(len(words))
    run = words[start : start + drawn.randint(1, 12)]
    rest = words[:start] + words[start + len(run) :]
    place = drawn.randrange(len(rest) + 1)
    words = rest[:place] + run + rest[place:]
    words[drawn.randrange(len(words))] = "Z"
    return " ".join(words)


rows = []
for _ in range(60):
    reference = line(drawn.randint(2, 16), drawn.randint(1, 24))
    rows.append((moved(reference), reference, line(4, drawn.randint(0, 20))))
# Long lines, lines of very different lengths and the limit of the number of shifts.
for words, length, of_reference in [(16, 90, 90), (3, 80, 60), (5, 1, 70), (5, 120, 4), (2, 60, 90)]:
    rows.append((line(words, length), line(words, of_reference), line(words, 5)))
rows += [("", "a b", "a"), ("a B", "", ""), ("", "", ""), ("The  cat\u3000sat", "the cat SAT", "x")]

hypotheses, first, second = (list(column) for column in zip(*rows))
scores = {}
for name, sensitive in [("lower", False), ("mixed", True)]:
    ter = TER(case_sensitive=sensitive)
    corpus = ter.corpus_score(hypotheses, [first, second])
    lines = [ter.sentence_score(h, [r, s]) for h, r, s in rows]
    alone = [ter.sentence_score(h, [r]) for h, r, _ in rows]
    scores[name] = {
        "corpus": [corpus.score, corpus.num_edits, corpus.ref_length],
        "lines": [[s.score, s.num_edits, s.ref_length] for s in lines],
        "alone": [[s.score, s.num_edits, s.ref_length] for s in alone],
    }
print(json.dumps({"sacrebleu": sacrebleu.__version__, "rows": rows, **scores}))
