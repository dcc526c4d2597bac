"""The networks as citizens of transformers: importing this module makes the Auto classes and `pipeline` know them."""

from dataclasses import asdict, fields, replace
from typing import Any, no_type_check

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from core.checked import from_json
from core.config import Architecture, BiLSTMArchitecture, EncoderArchitecture, LinearArchitecture
from core.networks.bilstm import BiLSTM
from core.networks.blocks import xavier_
from core.networks.encoder import Encoder
from core.networks.linear import Linear


@no_type_check  # checked, a dataclass takes nothing but its fields, and no `num_labels`
class _ArchitectureConfig(PreTrainedConfig):
    """A transformers configuration whose knobs are the fields of an architecture, by the same names and defaults."""

    def __post_init__(self, **kwargs: Any) -> None:
        given = kwargs if self.id2label is None else {"n_classes": len(self.id2label)} | kwargs
        super().__post_init__(**asdict(ARCHITECTURES[self.model_type]()) | given)
        _ = self.architecture  # refuses what the network cannot be built of

    @property
    def architecture(self) -> Architecture:
        """The frozen architecture that these knobs describe."""
        cls = ARCHITECTURES[self.model_type]
        return from_json(cls, {knob.name: getattr(self, knob.name) for knob in fields(cls)})


class EncoderConfig(_ArchitectureConfig):
    """`core.config.EncoderArchitecture` for transformers."""

    model_type = "attention-lab-encoder"
    attribute_map = {
        "hidden_size": "d_model",
        "intermediate_size": "d_ff",
        "num_attention_heads": "n_heads",
        "num_hidden_layers": "n_layers",
        "max_position_embeddings": "max_len",
        "n_classes": "num_labels",
    }


class BiLSTMConfig(_ArchitectureConfig):
    """`core.config.BiLSTMArchitecture` for transformers."""

    model_type = "attention-lab-bilstm"
    attribute_map = {
        "hidden_size": "d_hidden",
        "num_hidden_layers": "n_layers",
        "max_position_embeddings": "max_len",
        "n_classes": "num_labels",
    }


class LinearConfig(_ArchitectureConfig):
    """`core.config.LinearArchitecture` for transformers."""

    model_type = "attention-lab-linear"
    attribute_map = {"max_position_embeddings": "max_len", "n_classes": "num_labels"}


ARCHITECTURES: dict[str, type[Architecture]] = {
    EncoderConfig.model_type: EncoderArchitecture,
    BiLSTMConfig.model_type: BiLSTMArchitecture,
    LinearConfig.model_type: LinearArchitecture,
}


class _ForSequenceClassification(PreTrainedModel):
    base_model_prefix = "network"
    network: nn.Module

    def __init__(self, config: _ArchitectureConfig, network: nn.Module) -> None:
        super().__init__(config)
        self.network = network
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """What turns ids into vectors; transformers asks every model by this name."""
        return self.network.embedding if hasattr(self.network, "embedding") else super().get_input_embeddings()

    def _init_weights(self, module: nn.Module) -> None:
        """For what a checkpoint lacks, such as a classifier for other classes; a new network has drawn its own already."""
        xavier_(module)


class EncoderForSequenceClassification(_ForSequenceClassification):
    """The Transformer encoder; `attentions` holds (B, H, T, T) weights for each layer."""

    config_class = EncoderConfig

    def __init__(self, config: EncoderConfig) -> None:
        architecture = config.architecture
        assert isinstance(architecture, EncoderArchitecture)
        super().__init__(config, Encoder(architecture))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Int[Tensor, "B T"] | None = None,
        labels: Int[Tensor, "n"] | None = None,
        output_attentions: bool = False,
        *,
        backend: str | None = None,
        head_gain: Float[Tensor, "L H"] | None = None,
        head_mean: Bool[Tensor, "L H"] | None = None,
        cu_seqlens: Int[Tensor, "n_cumulative"] | None = None,
        max_seqlen: int | None = None,
    ) -> SequenceClassifierOutput:
        """As `Encoder.forward`; `attention_mask` is 1 on real tokens."""
        logits, attentions = self.network(
            input_ids,
            None if attention_mask is None else attention_mask.bool(),
            cu_seqlens=cu_seqlens,
            max_seqlen=max_seqlen,
            backend=backend,
            output_attentions=output_attentions,
            head_gain=head_gain,
            head_mean=head_mean,
        )
        return SequenceClassifierOutput(loss=_loss(logits, labels), logits=logits, attentions=attentions)


class BiLSTMForSequenceClassification(_ForSequenceClassification):
    """The BiLSTM; `attentions` holds one (B, 1, 1, T) tensor, the pooling's weights."""

    config_class = BiLSTMConfig

    def __init__(self, config: BiLSTMConfig) -> None:
        architecture = config.architecture
        assert isinstance(architecture, BiLSTMArchitecture)
        super().__init__(config, BiLSTM(architecture))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Int[Tensor, "B T"] | None = None,
        labels: Int[Tensor, "B"] | None = None,
        output_attentions: bool = False,
    ) -> SequenceClassifierOutput:
        """`attention_mask` is 1 on real tokens, which come first."""
        logits, weights = self.network(input_ids, None if attention_mask is None else attention_mask.bool())
        attentions = (weights[:, None, None, :],) if output_attentions else None
        return SequenceClassifierOutput(loss=_loss(logits, labels), logits=logits, attentions=attentions)


class LinearForSequenceClassification(_ForSequenceClassification):
    """The linear model; `attentions` is empty, since it attends to nothing."""

    config_class = LinearConfig
    network: Linear

    def __init__(self, config: LinearConfig) -> None:
        architecture = config.architecture
        assert isinstance(architecture, LinearArchitecture)
        super().__init__(config, Linear(architecture))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Int[Tensor, "B T"] | None = None,
        labels: Int[Tensor, "B"] | None = None,
        output_attentions: bool = False,
    ) -> SequenceClassifierOutput:
        """`attention_mask` is 1 on real tokens."""
        logits = self.network(input_ids, None if attention_mask is None else attention_mask.bool())
        return SequenceClassifierOutput(loss=_loss(logits, labels), logits=logits, attentions=() if output_attentions else None)


Network = EncoderForSequenceClassification | BiLSTMForSequenceClassification | LinearForSequenceClassification


def _loss(logits: Tensor, labels: Tensor | None) -> Tensor | None:
    return None if labels is None else F.cross_entropy(logits.float(), labels)


def build(architecture: Architecture, label_names: tuple[str, ...]) -> Network:
    """A new network with random weights from torch's generator; class i is called label_names[i]."""
    names = {"id2label": dict(enumerate(label_names)), "label2id": {name: i for i, name in enumerate(label_names)}}
    knobs = asdict(replace(architecture, n_classes=len(label_names)))
    if isinstance(architecture, EncoderArchitecture):
        return EncoderForSequenceClassification(EncoderConfig(**knobs, **names))
    if isinstance(architecture, LinearArchitecture):
        return LinearForSequenceClassification(LinearConfig(**knobs, **names))
    return BiLSTMForSequenceClassification(BiLSTMConfig(**knobs, **names))


for _config, _model in (
    (EncoderConfig, EncoderForSequenceClassification),
    (BiLSTMConfig, BiLSTMForSequenceClassification),
    (LinearConfig, LinearForSequenceClassification),
):
    AutoConfig.register(_config.model_type, _config, exist_ok=True)
    AutoModelForSequenceClassification.register(_config, _model, exist_ok=True)
