"""Everything, on a CPU: `python -m benchmarks.cpu`, about 35 minutes on two quiet cores."""

from benchmarks import ceilings, cells, followed, generation, inference, pages, sessions, tables, training
from benchmarks.suite import Part, main

PARTS: dict[str, Part] = {
    "ceilings": ceilings.part,
    "latency": inference.latencies,
    "scoring": inference.scoring,
    "training": training.part,
    "inference": inference.speeds,
    "steps": cells.steps,
    "generation": generation.part,
    "memory": cells.memory,
    "time": cells.times,
    "article-a": tables.article_a,
    "article-d": tables.article_d,
    "pages": pages.part,
    "sessions": sessions.part,
    "followed": followed.part,
}
DESCRIPTION = """\
Measures this lab on a CPU beside the articles' plain code, Hugging Face and torch.nn.TransformerEncoder: about 35 minutes on
two quiet cores, and 8 more with --peers. Each part is written when it is whole, so that it may be interrupted; --only measures
some again and keeps the rest of the same day.
"""


if __name__ == "__main__":
    main("Speed and memory on a CPU", PARTS, DESCRIPTION, device="cpu", minutes=45)
