"""Makes tokenizers.json: what Hugging Face's `tokenizers` learns, and how it splits with our file.

usage: cargo run --package bochner-text --example tokenizer_json 120 < train.txt > ours.json
       python tokenizers.py ours.json > tokenizers.json
"""

import json
import pathlib
import sys

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
MERGES, END = 120, "</w>"


def read(name):
    return (HERE / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def pieces(tokens):
    return [token.removesuffix(END) if token.endswith(END) else token + "@@" for token in tokens]


def trained():
    train = read("train.txt")
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix=END))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=10_000,
        min_frequency=2,
        special_tokens=["<unk>"],
        end_of_word_suffix=END,
        show_progress=False,
    )
    tokenizer.train_from_iterator(train, trainer)
    return tokenizer


theirs = trained()
ours = Tokenizer.from_str(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
lines = read("lines.txt")
print(
    json.dumps(
        {
            "version": tokenizers.__version__,
            "trained": json.loads(theirs.to_str()),
            # Lines with a character that is unknown there have no pieces to compare.
            "pieces_with_theirs": [
                None if "<unk>" in tokens else pieces(tokens)
                for tokens in (theirs.encode(line).tokens for line in lines)
            ],
            "ours": json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")),
            "numbers_with_ours": [ours.encode(line).ids for line in lines],
        },
        ensure_ascii=False,
        indent=1,
    )
)
