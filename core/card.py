"""The page that goes with a model: what it is, how it was made, how good it is, and where it ends."""

from typing import Any

from core.catalog import SOURCES
from core.figures.labels import count


def card(run: dict[str, Any]) -> str:
    """A model card in Markdown, made of run.json alone (Mitchell et al. 2019, arXiv:1810.03993)."""
    model, training, data, metrics = run["config"]["model"], run["training"], run["data"], run["metrics"]
    name, n = _plain(data["name"]), data["n"]
    used = f"{n['train']:,} reviews of {name} to train on, {n['validation']:,} for validation"
    return f"""# A {_KINDS[model["kind"]]} that labels reviews as {" or ".join(_plain(label) for label in run["label_names"])}

{run["n_parameters"]:,} parameters: {", ".join(f"{knob} {value}" for knob, value in model.items() if knob != "kind")}.

## How it was made

    {run["command"]}

{used}, by which {_chosen(run)} were chosen, and {n["test"]:,} for test, which had no part in it. Sides are told
apart by a hash of the text, so that no text is on two of them. Fingerprint of the training side:
`{data["fingerprint"]["train"]}`.

{training["train_s"]:.0f} s of training in {training["precision"]} on {_hardware(run["hardware"])}, finished {run["finished"]},
with seed {run["config"]["training"]["seed"]} and {", ".join(" ".join(item) for item in run["versions"].items())}.

## How good it is

Of the stored weights, read as float32. Intervals are Wilson's, 95%.

| reviews | n | accuracy | interval | F1 |
|---|---|---|---|---|
{_row("validation", metrics["validation"])}
{_row("test", metrics["test"])}

By length of the test review, in words:

| words | n | accuracy | interval |
|---|---|---|---|
{chr(10).join(_bucket(bucket) for bucket in metrics["test"]["buckets"])}

## Where it ends

It was trained on {_subject(data["name"])} and knows nothing else: on other texts its probabilities mean little. It reads
{model["max_len"]} tokens at once ({model["truncation"]} of a longer review). {_EVIDENCE[model["kind"]]}
"""


_KINDS = {"encoder": "Transformer encoder", "bilstm": "BiLSTM with attention", "linear": "linear model"}
_LOOKS = "Attention shows where a network looks, which is\nnot by itself why it decides (arXiv:1902.10186)."
_EVIDENCE = {
    "encoder": _LOOKS,
    "bilstm": _LOOKS,
    "linear": "It attends to nothing, and\nknows no order beyond neighbours: each run of tokens adds its weight.",
}


def _chosen(run: dict[str, Any]) -> str:
    best, model = run["best_epoch"], run["config"]["model"]
    if model["kind"] == "linear":
        return f"the weights with C = {model['c_values'][best - 1]:g}"
    return f"the weights of epoch\n{best} of {len(run['epochs'])}"


def _subject(name: str) -> str:
    return SOURCES[name].subject if name in SOURCES else f"reviews of {_plain(name)}"


def _plain(text: str) -> str:
    """A name that people gave, as it may stand in Markdown."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>()#+-.!|$~&" else sign for sign in " ".join(text.split()))


def _hardware(hardware: dict[str, Any]) -> str:
    threads = hardware["threads"]
    return f"{hardware.get('gpu') or hardware['cpu']}, {count(threads, 'thread')}"


def _row(name: str, metrics: dict[str, Any]) -> str:
    interval = f"{metrics['low']:.1%} to {metrics['high']:.1%}"
    return f"| {name} | {metrics['n']:,} | {metrics['accuracy']:.1%} | {interval} | {metrics['f1']:.3f} |"


def _bucket(bucket: dict[str, Any]) -> str:
    if bucket["n"] == 0:
        return f"| {bucket['name']} | 0 | no data | |"
    return f"| {bucket['name']} | {bucket['n']:,} | {bucket['accuracy']:.1%} | {bucket['low']:.1%} to {bucket['high']:.1%} |"
