"""Every knob of a run as frozen values: the single truth behind the page, the command line and the artefact.

A configuration is validated once, at birth, and travels as JSON both ways (`core.checked`). A variant is `dataclasses.replace`.
"""

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from core.checked import Bounds, Checked

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[MASK]")
"""The first entries of every vocabulary; the place is the id."""

LONGEST = 65_536
"""Tokens at most in a measured cell."""
MOST_IN_A_SWEEP = 16
"""Lengths of a sweep at most, backends and batches."""
LARGEST_BATCH = 1024
"""Reviews at most in a measured cell."""
MOST_ABLATIONS, MOST_SEEDS = 64, 32
"""Of one experiment."""


MOST = 10**6
"""Of anything that is counted: beyond what any machine holds, and within what any browser counts."""
Count = Annotated[int, Bounds(1, MOST)]
Layers = Annotated[int, Bounds(1, 1000)]
Probability = Annotated[float, Bounds(0.0, 0.95)]
Truncation = Literal["head", "head+tail"]
Mistake = Literal[
    "none", "mask_after_softmax", "no_mask", "fill_-1e9", "fill_-inf", "fill_finfo_min", "mean_over_padding",
    "reshape_without_transpose", "batch_norm", "layer_norm_over_text", "positions_as_parameter", "dropout_in_evaluation",
]  # fmt: skip
MISTAKES_OF_ATTENTION = ("mask_after_softmax", "no_mask", "fill_-1e9", "fill_-inf", "fill_finfo_min")
"""Those that written-out attention alone can make."""


@dataclass(frozen=True, kw_only=True)
class TransformerArchitecture(Checked):
    """What the layers of a Transformer are built of (arXiv:1706.03762); the defaults are article A's."""

    vocab_size: Annotated[int, Bounds(8, MOST)] = 20_000
    """Entries of the tokeniser at most; a small corpus fills fewer."""
    d_model: Count = 256
    """Numbers that stand for a token between layers."""
    n_heads: Count = 8
    """Of each layer; each attends with d_model / n_heads of a token's numbers."""
    n_layers: Layers = 3
    """Of attention and feed-forward, one above the other."""
    d_ff: Count = 1024
    """Hidden units of the feed-forward."""
    max_len: Count = 256
    """Tokens read of one text."""
    activation: Literal["relu", "gelu"] = "relu"
    """Of the feed-forward's hidden units."""
    norm: Literal["post", "pre"] = "post"
    """Layer norm after each residual sum, or before each sublayer with a last one at the end (arXiv:2002.04745)."""
    positional: Literal["none", "sinusoidal", "learned", "rotary", "alibi"] = "sinusoidal"
    """How a token's place is told; none: a review is a bag of words."""
    residual: bool = True
    """Add each sublayer's input to its output (arXiv:1512.03385)."""
    attention_scale: Literal["sqrt_d_head", "sqrt_d_model", "none"] = "sqrt_d_head"
    """What attention logits are divided by."""
    dropout: Probability = 0.1
    """On each sublayer's output, on the hidden units of the feed-forward and before a classifier."""
    embedding_dropout: Probability = 0.1
    """On the embedded tokens."""
    attention_dropout: Probability = 0.0
    """On attention weights: costly, since it draws T x T numbers for each head."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.n_heads:
            raise ValueError(
                f"n_heads: got {self.n_heads} for d_model {self.d_model}, expected a divisor of d_model, "
                f"such as {max(n for n in range(1, self.n_heads + 1) if self.d_model % n == 0)}"
            )
        if self.positional == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"d_model: got {self.d_model}, expected an even number for sinusoidal positions")
        if self.positional == "rotary" and self.d_model // self.n_heads % 2:
            raise ValueError(
                f"n_heads: got {self.n_heads} for d_model {self.d_model}, expected an even size of a head for rotary positions"
            )


@dataclass(frozen=True, kw_only=True)
class EncoderArchitecture(TransformerArchitecture):
    """A Transformer encoder for classification."""

    kind: Literal["encoder"] = "encoder"
    n_classes: Annotated[int, Bounds(2, MOST)] = 2
    """Set from the data when training starts."""
    truncation: Truncation = "head"
    """Which tokens of a longer review are read: its first ones, or as many from its start as from its end."""
    embedding_scale: bool = False
    """Multiply token embeddings by sqrt(d_model)."""
    window: Count | None = None
    """Tokens to each side that a token sees; none: all."""
    n_global: Annotated[int, Bounds(0, MOST)] = 0
    """First tokens of each review that see beyond the window and are seen from beyond it (arXiv:2004.05150)."""
    pooling: Literal["cls", "mean", "max", "mean+max"] = "mean"
    """How a review's tokens become one vector: the first token's, or over all of them."""
    token_dropout: Probability = 0.0
    """Share of tokens replaced by [MASK] in training."""
    mistake: Mistake = "none"
    """A mistake often seen in other people's code, made on purpose to measure what it costs; none: all is right.

    How padding is hidden in attention: mask_after_softmax (weights no longer sum to 1), no_mask (not at all), fill_-1e9,
    fill_-inf, fill_finfo_min (by this number, which tells where nothing is left to see); backend eager alone makes these five.
    Elsewhere: mean_over_padding (pooled with the words), reshape_without_transpose (heads are cut across tokens), batch_norm
    (in place of layer norm), layer_norm_over_text (over all tokens at once), positions_as_parameter (sines are trained),
    dropout_in_evaluation (never switched off).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_global and self.window is None:
            raise ValueError(f"n_global: got {self.n_global} without a window, expected 0: without one all tokens see all")
        for mistake, shows, need in (
            ("mean_over_padding", "mean" in self.pooling, "pooling by mean"),
            ("reshape_without_transpose", self.n_heads > 1, "several heads"),
            ("positions_as_parameter", self.positional == "sinusoidal", "sinusoidal positions"),
            ("dropout_in_evaluation", any((self.dropout, self.embedding_dropout, self.attention_dropout)), "dropout"),
        ):
            if self.mistake == mistake and not shows:
                raise ValueError(f"mistake: got {mistake!r}, which without {need} changes nothing; expected another, or none")


@dataclass(frozen=True, kw_only=True)
class DecoderArchitecture(TransformerArchitecture):
    """A causal Transformer that continues texts; its output layer is its embedding (arXiv:1608.05859)."""

    kind: Literal["decoder"] = "decoder"
    window: Count | None = None
    """Tokens back that a token sees; none: all."""


@dataclass(frozen=True, kw_only=True)
class BiLSTMArchitecture(Checked):
    """A bidirectional LSTM whose states are pooled by one learned attention query; the defaults are article A's."""

    kind: Literal["bilstm"] = "bilstm"
    vocab_size: Annotated[int, Bounds(8, MOST)] = 20_000
    """Entries of the tokeniser at most; a small corpus fills fewer."""
    n_classes: Annotated[int, Bounds(2, MOST)] = 2
    """Set from the data when training starts."""
    d_embedding: Count = 200
    """Numbers that stand for a token."""
    d_hidden: Count = 256
    """Units of each direction."""
    n_layers: Annotated[int, Bounds(1, 2)] = 1
    """One above the other."""
    max_len: Count = 256
    """Tokens read of one review."""
    truncation: Truncation = "head"
    """Which tokens of a longer review are read: its first ones, or as many from its start as from its end."""
    dropout: Probability = 0.1
    """Between layers and before the classifier."""
    embedding_dropout: Probability = 0.1
    """On the embedded tokens."""
    token_dropout: Probability = 0.0
    """Share of tokens replaced by [MASK] in training."""


@dataclass(frozen=True, kw_only=True)
class LinearArchitecture(Checked):
    """A linear classifier on runs of neighbouring tokens: it knows no order beyond a run, and attends to nothing."""

    kind: Literal["linear"] = "linear"
    features: Literal["naive-bayes", "tfidf"] = "naive-bayes"
    """naive-bayes: whether a run is there, times how much more often one class has it than the others, in logarithms (Wang and
    Manning 2012, aclanthology.org/P12-2018); tfidf: how often it is there, and in how few reviews."""
    vocab_size: Annotated[int, Bounds(8, MOST)] = 30_000
    """Entries of the tokeniser at most; a small corpus fills fewer."""
    n_classes: Annotated[int, Bounds(2, MOST)] = 2
    """Set from the data when training starts."""
    longest_run: Annotated[int, Bounds(1, 3)] = 2
    """Tokens of a run at most."""
    min_reviews: Count = 2
    """Reviews to train on that have a run, at least, or it is left out."""
    n_features: Count = 500_000
    """Runs at most, the most frequent first; a small corpus has fewer."""
    c_values: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    """Strengths of the data against that of the regularisation, as liblinear's C; the most accurate one on validation stays."""
    max_len: Count = 20_000
    """Tokens read of one review."""
    truncation: Truncation = "head"
    """Which tokens of a longer review are read: its first ones, or as many from its start as from its end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.c_values or not all(0 < c <= 10**6 for c in self.c_values) or len(set(self.c_values)) < len(self.c_values):
            raise ValueError(f"c_values: got {self.c_values}, expected one or more different numbers above 0, up to 1,000,000")


Architecture = EncoderArchitecture | BiLSTMArchitecture | LinearArchitecture
KNOBS_OF_FITS = ("weights", "seed")
"""Of `TrainingConfig`, those that a linear model has a use for: it is fitted, on a CPU, and not trained step by step."""


@dataclass(frozen=True, kw_only=True)
class DataConfig(Checked):
    """Which reviews; they are split 85/5/10 into training, validation and test by a hash of their text."""

    data: str = "imdb"
    """A name of the catalogue, or the path of a CSV, TSV, JSON lines or Parquet file."""
    text_column: str | tuple[str, ...] = "text"
    """The column of a table that holds the text, or several, which are joined by a line break."""
    label_column: str = "label"
    """The column of a table that holds the classes."""
    limit: Annotated[int, Bounds(1, 10**9)] | None = None
    """Use at most so many reviews, drawn by the seed, before they are split."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Checked):
    """How the weights are found: AdamW (arXiv:1711.05101) on cross-entropy."""

    epochs: Count = 5
    """Times that all reviews for training are read."""
    batch_size: Count = 64
    """Reviews in a batch of average length: batches hold about equally many tokens."""
    lr: Annotated[float, Bounds(0.0, 10.0)] = 3e-4
    """Highest learning rate of the schedule."""
    betas: tuple[float, float] = (0.9, 0.999)
    """How slowly AdamW forgets: of the gradient, and of its square."""
    weight_decay: Annotated[float, Bounds(0.0)] = 0.01
    """Share of a weight that is taken off in each step, times the learning rate."""
    schedule: Literal["one-cycle", "linear", "constant", "inverse-sqrt"] = "one-cycle"
    """How the learning rate falls after it has risen."""
    warmup_ratio: Annotated[float, Bounds(0.0, 1.0)] = 0.1
    """Share of all steps in which the learning rate rises."""
    clip_norm: Annotated[float, Bounds(0.0)] | None = 1.0
    """Largest norm of the gradient of all parameters together; none: no clipping."""
    label_smoothing: Annotated[float, Bounds(0.0, 0.9)] = 0.0
    """Share of each label that is spread over all classes (arXiv:1512.00567)."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: bfloat16 arithmetic where the machine has it, with float32 weights."""
    backend: Literal[
        "auto", "eager", "sdpa", "sdpa-flash", "sdpa-efficient", "sdpa-math", "cudnn", "chunked", "flex", "varlen"
    ] = "auto"
    """Attention kernel in training; auto: the one that suits device, precision and network."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""
    checkpointing: Literal["auto", "on", "off"] = "auto"
    """Recompute activations in the backward pass (arXiv:1604.06174); auto: beyond 512 tokens."""
    checkpoint_s: Annotated[float, Bounds(0.0)] = 30.0
    """Seconds between two checkpoints, from which an interrupted training goes on; 0: after each step. Longer where writing one
    takes long."""
    weights: Literal["float32", "float16"] = "float32"
    """Format of the stored weights; figures are always those of the stored ones."""
    seed: Annotated[int, Bounds(0, 2**32 - 1)] = 0
    """Of all that is drawn: first weights, order, dropout, and which reviews a limit leaves."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas: got {self.betas}, expected two numbers from 0 to below 1")


@dataclass(frozen=True, kw_only=True)
class RunConfig(Checked):
    """One training run, whole."""

    model: Architecture = field(default_factory=EncoderArchitecture)
    reviews: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        mistake = self.model.mistake if isinstance(self.model, EncoderArchitecture) else "none"
        if mistake in MISTAKES_OF_ATTENTION and self.training.backend not in ("auto", "eager"):
            raise ValueError(
                f"backend: got {self.training.backend!r} for mistake {mistake!r}, which written-out attention alone makes; "
                "expected 'eager' or 'auto'"
            )
        if isinstance(self.model, LinearArchitecture):
            _refuse_steps(self.training)

    @property
    def epochs(self) -> int:
        """What a training counts: times that all reviews are read, or fits of a linear model."""
        return len(self.model.c_values) if isinstance(self.model, LinearArchitecture) else self.training.epochs

    @property
    def epoch_name(self) -> str:
        """What people call one of these."""
        return "fit" if isinstance(self.model, LinearArchitecture) else "epoch"


def _refuse_steps(training: TrainingConfig) -> None:
    """What would change nothing is refused."""
    if training.device == "cuda":
        raise ValueError("device: got 'cuda' for a linear model, which is fitted on a CPU; expected 'cpu' or 'auto'")
    for knob in fields(TrainingConfig):
        value = getattr(training, knob.name)
        if knob.name not in (*KNOBS_OF_FITS, "device") and value != knob.default:
            raise ValueError(f"{knob.name}: got {value!r} for a linear model, which has no use for it; leave it out")


@dataclass(frozen=True, kw_only=True)
class SweepConfig(Checked):
    """Memory and time of networks and attention backends over lengths and batches; `core.records.Cell` says of what.

    The encoder is measured on every backend, a BiLSTM once, each at every length and batch, in processes of their own.
    """

    networks: tuple[Literal["encoder", "bilstm"], ...] = ("encoder",)
    backends: tuple[str, ...] = ("eager", "sdpa")
    """Names of the catalogue, for the encoder."""
    lengths: tuple[int, ...] = (128, 256, 512, 1024, 2048)
    """Tokens of a review."""
    batches: tuple[int, ...] = (8,)
    """Reviews at once."""
    what: Literal["forward", "backward", "step"] = "backward"
    """forward: without gradients, as in prediction; backward: forward and backward; step: a whole step of training."""
    checkpointing: bool = False
    """Whether a layer's activations are computed again in the backward pass (arXiv:1604.06174)."""
    n_heads: Annotated[int, Bounds(1, 64)] = 8
    d_head: Annotated[int, Bounds(8, 256)] = 32
    n_layers: Annotated[int, Bounds(1, 48)] = 1
    dtype: Literal["float32", "bfloat16", "mixed"] = "float32"
    """Format of weights and activations; mixed: float32 weights under autocast to bfloat16, as in training."""
    device: Literal["auto", "cpu", "cuda"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        for knob in ("networks", "backends", "lengths", "batches"):
            values = getattr(self, knob)
            if not 1 <= len(values) <= MOST_IN_A_SWEEP:
                raise ValueError(f"{knob}: got {len(values)} values, expected from 1 to {MOST_IN_A_SWEEP}")
            if len(set(values)) < len(values):
                raise ValueError(f"{knob}: got {', '.join(map(str, values))}, expected each only once")
        for knob, most in (("lengths", LONGEST), ("batches", LARGEST_BATCH)):
            for number in getattr(self, knob):
                if not 1 <= number <= most:
                    raise ValueError(f"{knob}: got {number}, expected int from 1 to {most}")


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig(Checked):
    """Does it matter? A configuration, ablations of it, and the seeds that each is trained with."""

    base: RunConfig = field(default_factory=RunConfig)
    """What is ablated; of its own seed nothing is trained."""
    ablations: tuple[str, ...]
    """Names of `core.ablations`."""
    seeds: tuple[int, ...] = (0, 1, 2)

    def __post_init__(self) -> None:
        super().__post_init__()
        for knob, most in (("ablations", MOST_ABLATIONS), ("seeds", MOST_SEEDS)):
            values = getattr(self, knob)
            if not 1 <= len(values) <= most:
                raise ValueError(f"{knob}: got {len(values)} values, expected from 1 to {most}")
            if len(set(values)) < len(values):
                raise ValueError(f"{knob}: got {', '.join(map(str, values))}, expected each only once")


@dataclass(frozen=True, kw_only=True)
class ClaimConfig(Checked):
    """A claim that is measured again."""

    claim: str
    """Its name, of `core.claims`."""


@dataclass(frozen=True, kw_only=True)
class BackendsConfig(Checked):
    """The same weights and the same reviews through every attention backend."""

    model: str
    """Folder of a model."""
    n: Annotated[int, Bounds(1, 1024)] = 64
    """Of its test reviews, spread evenly."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
