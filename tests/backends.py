"""Which backends a test on a CPU can ask for what."""

from core.catalog import BACKENDS


def able(**asked: bool) -> list[str]:
    """Names of those that run on a CPU and do what is asked there, by the keys of `core.catalog.CANNOT`."""
    return [name for name, backend in BACKENDS.items() if backend.why_not(device="cpu", **asked) is None]
