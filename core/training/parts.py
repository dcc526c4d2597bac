"""In how many tokens at a time a batch is computed. No torch here: what fits into memory is asked before a training starts."""

from core.config import Architecture, EncoderArchitecture

ENCODER_TOKENS, BILSTM_TOKENS = 2_048, 4_096
"""Of a part of a batch on a CPU, as measured: an LSTM's products need many reviews side by side."""


def tokens_at_once(model: Architecture, device: str) -> int | None:
    """Tokens of a batch that are computed at a time, their gradients summed; None for all.

    On a CPU activations then stay in its cache, and memory is used again in place of being asked of the system anew.
    """
    if device != "cpu":
        return None
    return ENCODER_TOKENS if isinstance(model, EncoderArchitecture) else BILSTM_TOKENS
