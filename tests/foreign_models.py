"""Classifiers as transformers saves them: tiny random ones of each kind that opens."""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertTokenizerFast,
    DistilBertConfig,
    ModernBertConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

L, H, D = 2, 4, 24
PAD = 0
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>", "a", "dull", "film", "un", "##moving", "!", "good"]
SIZES = dict(vocab_size=100, num_hidden_layers=L, num_attention_heads=H, hidden_size=D, intermediate_size=20, num_labels=3)
ENDS = dict(bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3)
CONFIGS = {
    "bert": BertConfig(**SIZES, max_position_embeddings=20),
    "distilbert": DistilBertConfig(
        vocab_size=100, n_layers=L, n_heads=H, dim=D, hidden_dim=20, num_labels=3, max_position_embeddings=20
    ),
    "roberta": RobertaConfig(**SIZES, pad_token_id=PAD, max_position_embeddings=21),
    "modernbert": ModernBertConfig(
        **SIZES, **ENDS, pad_token_id=PAD, max_position_embeddings=20, local_attention=4, classifier_pooling="mean",
        layer_types=["full_attention", "sliding_attention"],
    ),
}  # fmt: skip
SPECIAL = {
    "roberta": dict(pad_token="<pad>", unk_token="<unk>", cls_token="<s>", sep_token="</s>", mask_token="<mask>"),
    "modernbert": dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]"),
}
"""Of the kinds whose texts are read byte by byte."""
BYTE_LEVEL = tuple(SPECIAL)


def write(root: Path) -> Path:
    """A folder for each kind, its weights large enough that attention is far from uniform."""
    (root / "vocab.txt").write_text("\n".join(VOCABULARY))
    for kind, config in CONFIGS.items():
        _write_network(root / kind, config)
        BertTokenizerFast.from_pretrained(str(root / "vocab.txt")).save_pretrained(root / kind)
    return root


def write_byte_level(root: Path) -> Path:
    """A folder for each of `BYTE_LEVEL`, with a tokeniser of bytes as that kind has it."""
    for kind, special in SPECIAL.items():
        tokenizer = _byte_level(special, roberta=kind == "roberta")
        config = CONFIGS[kind].__class__(**CONFIGS[kind].to_dict() | {"vocab_size": tokenizer.get_vocab_size()})
        _write_network(root / kind, config)
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(root / kind)
    return root


def rewrite(folder: Path, **changes: object) -> None:
    """Change what config.json says."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def _write_network(folder: Path, config: object) -> None:
    torch.manual_seed(0)
    network = AutoModelForSequenceClassification.from_config(config)
    for weights in network.parameters():
        torch.nn.init.normal_(weights, std=0.5)
    network.save_pretrained(folder)


def _byte_level(special: dict[str, str], *, roberta: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token=special["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, show_progress=False, special_tokens=list(special.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator(["a good film, and not a dull one"] * 3, trainer)
    before, after = ((name, tokenizer.token_to_id(name)) for name in (special["cls_token"], special["sep_token"]))
    tokenizer.post_processor = (
        processors.RobertaProcessing(after, before, trim_offsets=True, add_prefix_space=False)
        if roberta
        else processors.TemplateProcessing(single=f"{before[0]} $A {after[0]}", special_tokens=[before, after])
    )
    return tokenizer
