"""How much faster a text is continued with a cache of keys and values: `python -m benchmarks.kv_cache > RESULT.md`.

Both ways continue one prompt greedily, in interleaved pairs, and have to find the same tokens. Only ratios are told: times of
a machine that others use, too, are worth little.
"""

import datetime
import statistics
import subprocess
import time

import torch

from core.config import DecoderArchitecture
from core.networks.decoder import Decoder, generate
from core.training.machine import hardware

ARCHITECTURE = DecoderArchitecture(max_len=1024, norm="pre", positional="rotary")
PROMPT = 8
"""Tokens."""
NEW = (32, 64, 128, 256)
"""Tokens to add."""
PAIRS = 5
HEADING = """\
# Continuing a text with a cache of keys and values, and without

`python -m benchmarks.kv_cache`, {date:%d %B %Y}, commit {commit}, {cpu}, threads: {threads} on {cores} cores that other
processes used, too. PyTorch {version}, float32, backend sdpa, random weights of one seed.

A decoder of {n_layers} layers, d_model {d_model}, {n_heads} heads, d_ff {d_ff}, {vocab_size:,} tokens; one prompt of {prompt}
tokens, greedy. Tokens per second with the cache over tokens per second without it: the median of {pairs} interleaved pairs,
and their range. Both ways found the same tokens.

| new tokens | ratio | range | keys and values, MiB |
|---:|---:|---:|---:|"""


def ratios(network: Decoder, ids: torch.Tensor, max_new_tokens: int) -> list[float]:
    """Seconds without the cache over seconds with it, of each pair."""
    found = []
    for _ in range(PAIRS):
        (with_cache, tokens), (without, same) = (timed(network, ids, max_new_tokens, use) for use in (True, False))
        assert torch.equal(tokens, same)
        found.append(without / with_cache)
    return found


def timed(network: Decoder, ids: torch.Tensor, max_new_tokens: int, use_cache: bool) -> tuple[float, torch.Tensor]:
    """Seconds, and the tokens."""
    start = time.perf_counter()
    tokens = generate(network, ids, max_new_tokens=max_new_tokens, use_cache=use_cache)
    return time.perf_counter() - start, tokens


def main() -> None:
    """Prints a table in Markdown."""
    torch.manual_seed(0)
    network = Decoder(ARCHITECTURE).eval()
    ids = torch.randint(4, ARCHITECTURE.vocab_size, (1, PROMPT))
    timed(network, ids, NEW[0], True)  # warm up
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    circumstances = {"date": datetime.date.today(), "version": torch.__version__, "commit": commit}
    print(HEADING.format(**hardware("cpu") | vars(ARCHITECTURE) | circumstances, prompt=PROMPT, pairs=PAIRS))
    for new in NEW:
        found = ratios(network, ids, new)
        size = network.new_cache(1, PROMPT + new - 1).n_bytes / 2**20
        print(f"| {new} | {statistics.median(found):.1f} | {min(found):.1f} to {max(found):.1f} | {size:.2f} |", flush=True)


if __name__ == "__main__":
    main()
