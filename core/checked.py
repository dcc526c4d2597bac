"""Frozen dataclasses that hold their fields to their annotations when they are born, and travel as JSON both ways."""

import json
import math
import sys
import types
from dataclasses import asdict, fields, is_dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints


class Bounds(NamedTuple):
    """The closed range of a number."""

    low: float
    high: float = math.inf


class Checked:
    """A dataclass whose fields are held to their annotations when it is born; a wrong one is a ValueError.

    A whole number where a float is expected becomes one, so that equal settings are equal values.
    """

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            object.__setattr__(self, name, _checked(name, getattr(self, name), hint))


def _checked(name: str, value: Any, hint: Any) -> Any:
    options = [option for option in options_of(hint) if _is_of_type(value, option)]
    if not options:
        raise ValueError(f"{name}: got {value!r}, expected {_describe(hint)}")
    for option in options:
        for bounds in getattr(option, "__metadata__", ()):
            if isinstance(bounds, Bounds) and not bounds.low <= value <= bounds.high:
                raise ValueError(f"{name}: got {value!r}, expected {_describe(hint)}")
    return _converted(value, options[0])


def options_of(hint: Any) -> tuple[Any, ...]:
    """The types of which a value of this type is one: several where any of them will do."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _base(option: Any) -> Any:
    return get_args(option)[0] if get_origin(option) is Annotated else option


def _is_of_type(value: Any, option: Any) -> bool:
    base = _base(option)
    if get_origin(base) is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(base))
    if get_origin(base) is tuple:
        parts = _parts(base, value) if isinstance(value, tuple) else None
        return parts is not None and len(value) == len(parts) and all(map(_is_of_type, value, parts))
    if base is float:
        return isinstance(value, float | int) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, base) and not (base is int and isinstance(value, bool))


def _parts(base: Any, value: tuple[Any, ...]) -> tuple[Any, ...]:
    """The type of each part of a tuple: its own, or of a tuple of any length the one for all."""
    parts = get_args(base)
    return parts[:1] * len(value) if parts[-1] is Ellipsis else parts


def _converted(value: Any, option: Any) -> Any:
    base = _base(option)
    if get_origin(base) is tuple:
        return tuple(map(_converted, value, _parts(base, value)))
    return float(value) if base is float else value


def _describe(hint: Any) -> str:
    words = []
    for option in options_of(hint):
        base = _base(option)
        name = base.__name__ if get_origin(base) is None else str(base)
        text = f"one of {', '.join(get_args(base))}" if get_origin(base) is Literal else name
        for bounds in getattr(option, "__metadata__", ()):
            low, high = (f"{end:.15g}" for end in bounds)
            text += f" of at least {low}" if math.isinf(bounds.high) else f" from {low} to {high}"
        words.append("none" if base is type(None) else text)
    return " or ".join(words)


T = TypeVar("T", bound=Checked)


def to_json(value: Checked) -> dict[str, Any]:
    """Plain values, to be read back by `from_json`."""
    assert is_dataclass(value)
    return json.loads(json.dumps(asdict(value)))


def from_json(cls: type[T], values: dict[str, Any]) -> T:
    """What `to_json` wrote of a `cls`; a field that older versions lacked has its default.

    ValueError for a field that is unknown, a value that is wrong, and a part that is missing or of an unknown kind.
    """
    assert is_dataclass(cls)
    hints = {field.name: get_type_hints(cls, include_extras=True)[field.name] for field in fields(cls)}
    if unknown := sorted(set(values) - set(hints)):
        raise ValueError(f"unknown knobs {', '.join(unknown)} in {cls.__name__}: was this written by a newer version?")
    parts = {name: _part(name, options_of(hint), values.get(name)) for name, hint in hints.items() if _is_part(hint)}
    own = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return cls(**own | parts)


def _is_part(hint: Any) -> bool:
    return all(isinstance(option, type) and issubclass(option, Checked) for option in options_of(hint))


def _part(name: str, options: tuple[Any, ...], values: Any) -> Checked:
    """Of several classes, the one whose `kind` the values name."""
    if not isinstance(values, dict):
        raise ValueError(f"{name}: got {values!r}, expected its knobs and their values")
    if len(options) == 1:
        return from_json(options[0], values)
    kinds = {option.kind: option for option in options}
    if values.get("kind") not in list(kinds):
        raise ValueError(f"kind: got {values.get('kind')!r}, expected one of {', '.join(kinds)}")
    return from_json(kinds[values["kind"]], values)
