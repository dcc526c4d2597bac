"""What a GPU is asked, in at most six minutes and with few packages: `python -m benchmarks.gpu --arrays FILE`.

The machine needs torch, transformers, accelerate, tokenizers, numpy and pandas, the repository, and the file that
`python -m benchmarks.arrays` wrote elsewhere; it needs no network.
"""

from benchmarks import ceilings, cells, epoch, generation, inference, tables, training
from benchmarks.suite import Part, main

PARTS: dict[str, Part] = {
    "ceilings": ceilings.part,
    "epoch": epoch.part,
    "training": training.part,
    "inference": inference.speeds,
    "latency": inference.latencies,
    "scoring": inference.scoring,
    "generation": generation.part,
    "article-a": tables.article_a,
    "article-d": tables.article_d,
    "memory": cells.memory,
    "time": cells.times,
    "steps": cells.steps,
}
DESCRIPTION = """\
Measures this lab on a GPU beside the articles' plain code, Hugging Face and torch.nn.TransformerEncoder, and ends within
6 minutes. Each part is written when it is whole; --only measures some again. --device cpu --quick shows that all runs.
"""


if __name__ == "__main__":
    main("Speed and memory on a GPU", PARTS, DESCRIPTION, device="cuda", minutes=5)
