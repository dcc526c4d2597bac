"""What the lab has promised to take at most, or to reach at least, beside what was found."""

from collections.abc import Callable
from dataclasses import dataclass

from core.recorded import Column, Recorded, Table, Value

SPREAD = ("median", "lowest", "highest")
MISSED = "missed"


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A promise on a figure of a table."""

    what: str
    limit: float
    at_least: bool
    table: str
    rows: tuple[str, ...]
    """First values of the rows that are meant, all if none is named; the one that keeps the limit least counts."""
    columns: tuple[str, ...] = SPREAD
    """The figure, and where there are more its lowest and highest."""
    unit: str = ""
    hardware: str = ""
    """What it was promised of, where that is not any."""
    reason: Callable[[Recorded], str] = lambda results: ""
    """Why it is missed where it is, a sentence."""


def _no_room_above(results: Recorded) -> str:
    """Three times another's products in float32, beside what the machine multiplies."""
    scoring = results.table("scoring")
    products = dict(zip(scoring.column("way"), scoring.column("products"), strict=True))
    ours = products.pop("this lab")
    asked = 3 * max(value for value in products.values() if isinstance(value, float))
    reached = next((f", and a product of large matrices {rate:,.0f}" for table in results.tables if table.name == "ceilings"
                    for numbers, rate, _ in table.rows if numbers == "float32"), "")  # fmt: skip
    return (
        f"Batch scoring: both sides multiply in float32, ours comes to {ours:,.0f} billion operations a second{reached}; three "
        f"times the pipeline's would be {asked:,.0f}."
    )


OVER = tuple(f"ours over it, {name}" for name in SPREAD)
BUDGETS = (
    Budget(what="training encoder-small over the peer's article code", limit=5, at_least=True, table="training",
           rows=("encoder, peer article_train.py",), columns=OVER),
    Budget(what="training encoder-small over our copy of the article's code", limit=5, at_least=True, table="training",
           rows=("encoder, article code",), columns=OVER),
    Budget(what="training encoder-small over the peer's Hugging Face Trainer, its better", limit=4, at_least=True,
           table="training", columns=OVER,
           rows=("encoder, peer hf_trainer.py, float32", "encoder, peer hf_trainer.py, bfloat16")),
    Budget(what="training encoder-small over Hugging Face's Trainer, its better", limit=4, at_least=True, table="training",
           rows=("encoder, Hugging Face Trainer, float32", "encoder, Hugging Face Trainer, bfloat16"), columns=OVER),
    Budget(what="training the BiLSTM over the peer's article code", limit=1.8, at_least=True, table="training",
           rows=("bilstm, peer article_train.py",), columns=OVER),
    Budget(what="training the BiLSTM over our copy of the article's code", limit=1.8, at_least=True, table="training",
           rows=("bilstm, article code",), columns=OVER),
    Budget(what="one prediction of 250 tokens", limit=10, at_least=False, table="latency",
           rows=("this lab, from text",), unit="ms"),
    Budget(what="one prediction of 250 tokens with all maps", limit=20, at_least=False, table="latency",
           rows=("this lab, from text, with all maps",), unit="ms"),
    Budget(what="batch scoring over transformers' pipeline, its best", limit=3, at_least=True, table="scoring",
           rows=tuple(f"transformers pipeline, batch {batch}" for batch in (1, 16, 32)), columns=OVER,
           reason=_no_room_above),
    Budget(what="predicted over measured peak memory, worst cell of 64 MiB and more", limit=10, at_least=False,
           table="memory", rows=(), columns=("prediction off by",), unit="%"),
    Budget(what="first heading of a page on a cold server, later than an empty app's by", limit=0.3, at_least=False,
           table="pages", rows=("first heading, this lab later by",), unit="s"),
    Budget(what="warm prediction with its map on screen", limit=0.5, at_least=False, table="pages",
           rows=("answer with its map",), unit="s"),
    *(
        Budget(what=f"warm, 250 tokens: {step} on screen", limit=limit, at_least=False, table="pages",
               rows=(f"{step}, 250 tokens",), unit="s")
        for step, limit in (("answer and colours", 0.3), ("all maps", 0.5), ("first evidence", 2.0),
                            ("all evidence and its curves", 10.0))
    ),
    Budget(what="map of 512 tokens on screen", limit=1, at_least=False, table="pages", rows=("map of 512 tokens",), unit="s"),
    Budget(what="map of 512 tokens in a new tab", limit=4, at_least=False, table="pages",
           rows=("map of 512 tokens in a new tab",), unit="s"),
    Budget(what="what a page with a map of 512 tokens sends", limit=2, at_least=False, table="pages",
           rows=("map of 512 tokens, MiB sent",), unit="MiB"),
    Budget(what="memory of a server after 300 reviews in 3 sessions, more than after 50", limit=64, at_least=False,
           table="sessions", rows=(), columns=("more than at the first look",), unit="MiB"),
    Budget(what="one epoch of 25,000 reviews, encoder-small", limit=2, at_least=False, table="epoch", rows=(),
           columns=("epoch",), unit="s", hardware="H200"),
)  # fmt: skip


def table(results: Recorded) -> Table:
    """Those of the budgets that these results have a figure for; where one is missed, with the reason."""
    rows = {budget: row for budget in BUDGETS if (row := _row(budget, results)) is not None}
    reasons = [budget.reason(results) for budget, row in rows.items() if row[-1] == MISSED]
    said = "What was promised and what these results come to; where there are several rounds, with their range."
    return Table(
        name="budgets",
        caption=" ".join([said, *filter(None, reasons)]),
        columns=(
            Column(name="what"), Column(name="unit"), Column(name="limit"), *(Column(name=name) for name in SPREAD),
            Column(name="kept"),
        ),
        rows=tuple(rows.values()),
    )  # fmt: skip


def _row(budget: Budget, results: Recorded) -> tuple[Value, ...] | None:
    figures = _figures(budget, results)
    if not figures or budget.hardware not in results.hardware:
        return None
    worst = (min if budget.at_least else max)(figures)
    kept = worst[0] >= budget.limit if budget.at_least else worst[0] <= budget.limit
    limit = f"at {'least' if budget.at_least else 'most'} {budget.limit:g}"
    return (budget.what, budget.unit, limit, *worst, *[None] * (3 - len(worst)), "yes" if kept else MISSED)


def _figures(budget: Budget, results: Recorded) -> list[tuple[float, ...]]:
    """Of each row that is meant and was measured."""
    found = [table for table in results.tables if table.name == budget.table]
    if not found:
        return []
    names, columns = found[0].column(found[0].columns[0].name), [found[0].column(name) for name in budget.columns]
    rows = [row for name, row in zip(names, zip(*columns, strict=True), strict=True) if not budget.rows or name in budget.rows]
    return [tuple(float(value) for value in row) for row in rows if all(isinstance(value, int | float) for value in row)]
