"""A small causal Transformer that continues texts, token by token. Imports torch alone."""

import math
from collections.abc import Collection
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from core.attention.masks import AttentionMask
from core.catalog import POSITIONAL, resolve
from core.config import SPECIAL_TOKENS, DecoderArchitecture
from core.networks.blocks import EncoderLayer, attention_function, refuse_no_batch, xavier_
from core.networks.dropout import Dropout

PAD_ID = SPECIAL_TOKENS.index("[PAD]")


class KeyValueCache:
    """Keys and values that a decoder has computed for the tokens read so far, so that no token is read twice.

    Room for `max_len` tokens is taken at once, and written in place.
    """

    def __init__(
        self,
        architecture: DecoderArchitecture,
        batch: int,
        max_len: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        a = architecture
        shape = (a.n_layers, batch, a.n_heads, max_len, a.d_model // a.n_heads)
        self.keys: Float[Tensor, "L B H max_len K"] = torch.empty(shape, dtype=dtype, device=device)
        self.values = torch.empty_like(self.keys)
        self.token_mask: Bool[Tensor, "B max_len"] = torch.ones(batch, max_len, dtype=torch.bool, device=device)
        self.length = 0
        """Tokens held of each text, padding counted."""
        self.padded = False

    @property
    def max_len(self) -> int:
        """Tokens that there is room for."""
        return self.keys.shape[3]

    @property
    def n_bytes(self) -> int:
        """Bytes of all keys and values, held or not: 2 L B H max_len K times the bytes of a number."""
        return self.keys.nbytes + self.values.nbytes

    def admit(self, input_ids: Int[Tensor, "B T"], token_mask: Bool[Tensor, "B T"] | None) -> Bool[Tensor, "B S"] | None:
        """Which of the tokens held and of these new ones are real; None if all are.

        ValueError if there is no room for them, or if they belong to other texts.
        """
        batch, new = input_ids.shape
        after = self.length + new
        if batch != self.keys.shape[1]:
            raise ValueError(f"got {batch} texts, expected the {self.keys.shape[1]} of this cache; begin another cache")
        if after > self.max_len:
            raise ValueError(
                f"got {after} tokens, {self.length} of them held, expected at most max_len {self.max_len}; "
                "make a longer cache, or read less"
            )
        self.token_mask[:, self.length : after] = True if token_mask is None else token_mask
        self.padded = self.padded or token_mask is not None
        if not self.padded:
            return None
        return self.token_mask[:, :after]

    def write(
        self, layer: int, k: Float[Tensor, "B H T K"], v: Float[Tensor, "B H T K"]
    ) -> tuple[Float[Tensor, "B H S K"], Float[Tensor, "B H S K"]]:
        """All keys and values of a layer, the new ones written after those held; `advance` makes them stay.

        ValueError for another number format than the cache's, or if gradients are taken.
        """
        if k.dtype != self.keys.dtype:
            raise ValueError(f"got keys of {k.dtype}, expected {self.keys.dtype}, the format of this cache")
        if k.requires_grad:
            raise ValueError("got a cache while gradients are taken, expected torch.no_grad(): in training, read whole texts")
        after = self.length + k.shape[2]
        self.keys[layer, :, :, self.length : after] = k
        self.values[layer, :, :, self.length : after] = v
        return self.keys[layer, :, :, :after], self.values[layer, :, :, :after]

    def advance(self, n_tokens: int) -> None:
        """Holds what every layer has written."""
        self.length += n_tokens


class Decoder(nn.Module):
    """Embedding, positions, layers in which no token sees a later one, and the embedding again (arXiv:1706.03762, section 3.4).

    The matrix that reads tokens also scores them, as there: its rows are multiplied by sqrt(D) where they are read.
    """

    def __init__(self, architecture: DecoderArchitecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.embedding = nn.Embedding(architecture.vocab_size, architecture.d_model)
        self.positional = resolve(POSITIONAL, "positional", architecture.positional)(architecture)
        self.embedding_dropout = Dropout(architecture.embedding_dropout)
        self.layers = nn.ModuleList(EncoderLayer(architecture) for _ in range(architecture.n_layers))
        self.final_norm = nn.LayerNorm(architecture.d_model) if architecture.norm == "pre" else nn.Identity()
        self.apply(xavier_)
        nn.init.normal_(self.embedding.weight, std=architecture.d_model**-0.5)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        token_mask: Bool[Tensor, "B T"] | None = None,
        *,
        cache: KeyValueCache | None = None,
        backend: str = "sdpa",
    ) -> Float[Tensor, "B T V"]:
        """Logits of the token that follows each token. `token_mask` is True on real tokens; None: all are real.

        With a cache, the tokens follow those that it holds, and are held in it afterwards. Texts may be padded on either
        side, though not within. ValueError as from the cache, for no token, and for a text beyond learned positions.
        """
        return self.logits(self.states(input_ids, token_mask, cache=cache, backend=backend))

    def states(
        self,
        input_ids: Int[Tensor, "B T"],
        token_mask: Bool[Tensor, "B T"] | None = None,
        *,
        cache: KeyValueCache | None = None,
        backend: str = "sdpa",
    ) -> Float[Tensor, "B T D"]:
        """What `logits` reads, of each token, as in `forward`: who wants the last token alone scores that alone."""
        refuse_no_batch(input_ids, token_mask)
        attend = attention_function(backend, weights=False)
        held = 0 if cache is None else cache.length
        seen = token_mask if cache is None else cache.admit(input_ids, token_mask)
        if seen is not None:
            _refuse_gaps(seen)
        mask = AttentionMask(seen, causal=True, window=self.architecture.window)
        codes = self.positional.codes(_positions(input_ids, seen, held), held + input_ids.shape[1])
        x = self.embedding(input_ids) * self.architecture.d_model**0.5
        x = self.embedding_dropout(self.positional.embed(x, codes))
        for index, layer in enumerate(self.layers):
            write = None if cache is None else partial(cache.write, index)
            x, _ = layer(x, codes, mask, self.positional, attend, None, write)
        if cache is not None:
            cache.advance(input_ids.shape[1])
        return self.final_norm(x)

    def logits(self, states: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape V"]:
        """How well each token of the vocabulary would follow."""
        return F.linear(states, self.embedding.weight)

    def new_cache(self, batch: int, max_len: int) -> KeyValueCache:
        """An empty cache where this network's weights are, in the number format in which it computes now."""
        weight = self.embedding.weight
        kind = weight.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        return KeyValueCache(self.architecture, batch, max_len, dtype, weight.device)


def _positions(input_ids: Tensor, seen: Tensor | None, held: int) -> Int[Tensor, "#B T"]:
    """Each new token's place in its text, from 0; padding counts for nothing."""
    if seen is None:
        return torch.arange(held, held + input_ids.shape[1], device=input_ids.device)[None]
    return (seen.cumsum(-1)[:, held:] - 1).clamp(min=0)


def _refuse_unknown_places(architecture: DecoderArchitecture, length: int) -> None:
    if architecture.positional == "learned" and length > architecture.max_len:
        raise ValueError(
            f"got {length} tokens, expected at most max_len {architecture.max_len}: learned positions end there; "
            "ask for fewer, or choose other positions"
        )


def _refuse_gaps(token_mask: Bool[Tensor, "B T"]) -> None:
    """A window and alibi count distances in columns, which padding between two tokens would stretch."""
    starts = token_mask & ~F.pad(token_mask[:, :-1], (1, 0))
    if (starts.sum(-1) > 1).any():
        raise ValueError("got padding between tokens, expected it before or after a text; to continue one, pad it on the left")


@torch.no_grad()
def generate(
    network: Decoder,
    ids: Int[Tensor, "B T"],
    *,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_p: float = 1.0,
    stop: Collection[int] = (),
    generator: torch.Generator | None = None,
    use_cache: bool = True,
    token_mask: Bool[Tensor, "B T"] | None = None,
    backend: str = "sdpa",
) -> Int[Tensor, "B N"]:
    """What follows the prompts `ids`: up to `max_new_tokens`, or to a token of `stop` and [PAD] after it until all have ended.

    Temperature 0 takes the likeliest token; any other draws from the `nucleus` of `tempered` logits. Prompts of unequal
    length are padded on the left. Without the cache each step reads the whole text anew, for the same tokens. ValueError for
    settings and prompts that mean nothing, and for more tokens than there are learned positions.
    """
    _refuse_settings(network, max_new_tokens, temperature, top_p)
    _refuse_prompts(ids, token_mask)
    begin, longest = ids.shape[1], ids.shape[1] + max_new_tokens
    _refuse_unknown_places(network.architecture, longest - 1)  # the last token is never read
    cache = network.new_cache(len(ids), longest - 1) if use_cache else None
    text = F.pad(ids, (0, max_new_tokens), value=PAD_ID)
    real = None if token_mask is None else F.pad(token_mask, (0, max_new_tokens), value=True)
    ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for place in range(begin, longest):
        unread = slice(0 if cache is None else cache.length, place)
        states = network.states(text[:, unread], None if real is None else real[:, unread], cache=cache, backend=backend)
        text[:, place] = choose(network.logits(states[:, -1]), temperature, top_p, generator).masked_fill(ended, PAD_ID)
        ended |= torch.isin(text[:, place], torch.tensor(sorted(stop), dtype=ids.dtype, device=ids.device))
        if ended.all():
            return text[:, begin : place + 1]
    return text[:, begin:]


def choose(
    logits: Float[Tensor, "B V"], temperature: float, top_p: float, generator: torch.Generator | None
) -> Int[Tensor, "B"]:
    """One token for each text, as `generate` says."""
    if temperature == 0:
        return logits.argmax(-1)
    return torch.multinomial(nucleus(tempered(logits, temperature), top_p), 1, generator=generator)[:, 0]


def tempered(logits: Float[Tensor, "B V"], temperature: float) -> Float[Tensor, "B V"]:
    """softmax(logits / temperature), in float64: a small temperature makes large numbers."""
    logits = logits.double()
    return ((logits - logits.amax(-1, keepdim=True)) / temperature).softmax(-1)


def nucleus(probabilities: Float[Tensor, "B V"], top_p: float) -> Float[Tensor, "B V"]:
    """The smallest set of likeliest tokens that reach `top_p` together, scaled to sum to 1 (arXiv:1904.09751)."""
    if top_p == 1:
        return probabilities
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    before = F.pad(ordered.cumsum(-1)[:, :-1], (1, 0))  # what likelier tokens reach: 0 for the first, which is always in
    kept = ordered.masked_fill(before >= top_p, 0.0)
    return torch.zeros_like(probabilities).scatter(-1, order, kept / kept.sum(-1, keepdim=True))


def _refuse_settings(network: Decoder, max_new_tokens: int, temperature: float, top_p: float) -> None:
    if network.training:
        raise ValueError("got a network in training, whose dropout changes every answer; expected one after network.eval()")
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens: got {max_new_tokens}, expected at least 1")
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature: got {temperature:g}, expected at least 0, which takes the likeliest token")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p: got {top_p:g}, expected above 0 and at most 1, which leaves every token in")


def _refuse_prompts(ids: Int[Tensor, "B T"], token_mask: Bool[Tensor, "B T"] | None) -> None:
    if ids.numel() == 0 or (token_mask is not None and not token_mask.any(-1).all()):
        raise ValueError("got an empty prompt, expected at least one token to follow, such as [CLS]")
    if token_mask is not None and not token_mask[:, -1].all():
        raise ValueError("got a prompt with padding on the right, where its continuation belongs; pad prompts on the left")
