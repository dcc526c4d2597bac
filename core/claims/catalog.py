"""Every claim, by number. No torch here."""

from core.claims import accuracy, memory, numbers, positions, speed, training
from core.claims.claim import Claim

_ALL = (*speed.CLAIMS, *memory.CLAIMS, *accuracy.CLAIMS, *training.CLAIMS, *numbers.CLAIMS, *positions.CLAIMS)

CLAIMS: dict[str, Claim] = {claim.name: claim for claim in sorted(_ALL, key=lambda claim: claim.number)}


def find(name: str) -> Claim:
    """The claim of that name. An unknown one is a ValueError that says where they are listed."""
    if name not in CLAIMS:
        raise ValueError(f"claim: got {name!r}, expected one of {', '.join(CLAIMS)}")
    return CLAIMS[name]
