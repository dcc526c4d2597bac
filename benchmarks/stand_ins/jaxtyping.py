"""In place of jaxtyping, where that is not installed: its types without shapes, which nobody checks while measuring."""

from typing import Any


class Shaped:
    """Float[Tensor, "B T"] is Tensor."""

    def __class_getitem__(cls, array_and_shape: tuple[Any, str]) -> Any:
        return array_and_shape[0]


Bool = Float = Float32 = Int = Int32 = Int64 = Integer = Num = UInt8 = Shaped
