"""Operators played forward and back as autograd plays them, with bytes in place of tensors. No torch here."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

KEPT, WORKING, GRADIENTS = "activations kept", "working memory", "gradients"


@dataclass(frozen=True, kw_only=True)
class Op:
    """One operator, by the tensors that it reads and makes."""

    reads: Sequence[str] = ()
    """Of these, each that an operator made gets a gradient in backward."""
    makes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of each result."""
    view: bool = False
    """Whether the results are the very memory of what is read; their bytes are then those of their gradients."""
    keeps: Sequence[str] = ()
    """What stays for backward."""
    holds: Sequence[str] = ()
    """What is alive besides, since a local name of running Python still means it."""
    scratch: int = 0
    """Working memory in forward."""
    back: int = 0
    """Working memory in backward, beside the gradients of what is read."""
    passes: bool = False
    """Whether backward hands on the gradient that it is given, as that of a sum does, where it is as large as it should be."""
    cuts: bool = False
    """Whether backward hands on parts of the gradient that it is given, as that of putting side by side does."""
    parameters: int = 0
    """Bytes of the gradients of parameters."""
    part: str = KEPT
    """What the results are called while they are kept."""


@dataclass(frozen=True)
class Segment:
    """Operators in a row."""

    ops: Sequence[Op]
    again: bool = False
    """Whether nothing but the first tensor they read is kept, and backward makes the rest again (arXiv:1604.06174)."""


@dataclass
class _Gradient:
    size: int
    names: int = 1


class Tape:
    """Bytes alive by part, now and when they were most."""

    def __init__(self, always: Mapping[str, int]) -> None:
        self.now = self.peak = Counter(always)
        self.total = self.most = sum(always.values())
        self.sizes: dict[str, int] = {}
        self.memory: dict[str, str] = {}
        """The tensor whose memory a tensor is."""
        self.parts: dict[str, str] = {}
        self.alive: dict[str, str] = {}
        """Of memory that is alive, the part that it counts to now."""
        self.kept: Counter[str] = Counter()
        self.gradients: dict[str, _Gradient] = {}

    def forward(self, segments: Sequence[Segment], keep: bool = True) -> None:
        """Makes what each operator makes; what none needs any more dies, but for what is kept for backward."""
        ops = [op for segment in segments for op in segment.ops]
        last: dict[str, int] = {}
        for number, op in enumerate(ops):
            for name in op.makes:
                self._know(name, op)
            last |= {memory: number for memory in self._used(op)}
        numbers = iter(range(len(ops)))
        for segment in segments:
            if keep and segment.again:
                self.keep(segment.ops[0].reads[0])
            for op in segment.ops:
                self._make(op, keep and not segment.again)
                number = next(numbers)
                for memory in self._used(op):
                    if last[memory] == number and not self.kept[memory]:
                        self._free(memory)

    def backward(self, segments: Sequence[Segment]) -> None:
        """Gradients of what each operator read, from the last to the first; then what it kept is free."""
        for segment in reversed(segments):
            if segment.again:
                self.forward([Segment(segment.ops)])
            for op in reversed(segment.ops):
                self._differentiate(op)
            if segment.again:
                self.drop(segment.ops[0].reads[0])

    def keep(self, name: str) -> None:
        """Holds a tensor until it is dropped."""
        memory = self.memory[name]
        self.kept[memory] += 1
        if self.alive[memory] == WORKING:
            self._free(memory)
            self._take(memory, self.parts[memory])

    def drop(self, name: str) -> None:
        """Ends one reason for which a tensor is kept."""
        memory = self.memory[name]
        self.kept[memory] -= 1
        if not self.kept[memory]:
            self._free(memory)

    def _used(self, op: Op) -> set[str]:
        return {self.memory[name] for name in (*op.reads, *op.makes, *op.keeps, *op.holds)}

    def _make(self, op: Op, keep: bool) -> None:
        made = () if op.view else op.makes
        twice = sum(self.sizes[name] for name in made if name in self.alive)  # made again while the first is still there
        for name in made:
            if name not in self.alive:
                self._take(name, WORKING)
        self._mark(op.scratch + twice)
        for name in op.keeps if keep else ():
            self.keep(name)

    def _differentiate(self, op: Op) -> None:
        given = [self.gradients.pop(name) for name in op.makes if name in self.gradients]
        found = {name: self._gradient(op, self.sizes[name], given) for name in op.reads}
        self._add(GRADIENTS, op.parameters)
        self._mark(op.back)
        for gradient in given:
            self._release(gradient)
        for name in op.keeps:
            self.drop(name)
        for name, gradient in found.items():
            self._accumulate(name, gradient)

    def seed(self, name: str) -> None:
        """The gradient of a result, from above; whoever gives it counts it, and has it to the end."""
        self.gradients[name] = _Gradient(self.sizes[name], names=2)

    def _gradient(self, op: Op, size: int, given: Sequence[_Gradient]) -> _Gradient:
        if op.cuts or op.passes and given[0].size == size:
            given[0].names += 1
            return given[0]
        self._add(WORKING, size)
        return _Gradient(size)

    def _accumulate(self, name: str, gradient: _Gradient) -> None:
        """Added up in place where the sum so far is this tensor's alone."""
        known = self.gradients.get(name)
        if known is not None and known.names == 1:
            self._release(gradient)
            return
        if known is not None:
            self._release(known)
        self.gradients[name] = gradient

    def _release(self, gradient: _Gradient) -> None:
        gradient.names -= 1
        if not gradient.names:
            self._add(WORKING, -gradient.size)

    def _know(self, name: str, op: Op) -> None:
        self.sizes[name] = op.makes[name]
        self.memory[name] = self.memory[op.reads[0]] if op.view else name
        self.parts[name] = op.part

    def _take(self, memory: str, part: str) -> None:
        self.alive[memory] = part
        self._add(part, self.sizes[memory])

    def _free(self, memory: str) -> None:
        self._add(self.alive.pop(memory), -self.sizes[memory])

    def _add(self, part: str, n_bytes: int) -> None:
        self.now[part] += n_bytes
        self.total += n_bytes

    def _mark(self, working: int = 0) -> None:
        if self.total + working > self.most:
            self.most = self.total + working
            self.peak = self.now + Counter({WORKING: working})
