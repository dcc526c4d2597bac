"""What a cell is counted in."""

from dataclasses import dataclass

from core.records import Cell

BYTES = {"float32": 4, "bfloat16": 2, "mixed": 2}
"""Of a number in a product."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The numbers that the bytes of a cell's operators come from."""

    device: str
    batch: int
    tokens: int
    """B T."""
    rows: int
    """B H T."""
    training: bool
    length: int
    d_model: int
    d_head: int
    d_ff: int
    dropout: bool
    item: int
    """Bytes of a number in a product."""
    stored: int
    """Bytes of a weight, and of what one layer hands to the next."""
    copies: bool
    """Whether a batched product copies q, k and v, since heads of several reviews do not lie evenly in memory."""

    @classmethod
    def of(cls, cell: Cell, d_ff: int | None, dropout: bool) -> "Sizes":
        return cls(
            d_ff=d_ff or 4 * cell.n_heads * cell.d_head, dropout=dropout,
            device=cell.device, batch=cell.batch, tokens=cell.batch * cell.length, rows=cell.batch * cell.n_heads * cell.length,
            length=cell.length, training=cell.what != "forward", d_model=cell.n_heads * cell.d_head, d_head=cell.d_head,
            item=BYTES[cell.dtype], stored=4 if cell.dtype == "mixed" else BYTES[cell.dtype],
            copies=cell.batch > 1 and cell.n_heads > 1,
        )  # fmt: skip

    @property
    def x(self) -> int:
        """An activation of every token, in a product."""
        return self.tokens * self.d_model * self.item

    @property
    def handed(self) -> int:
        """An activation of every token, between layers."""
        return self.tokens * self.d_model * self.stored
