"""Flags that verbs of the command line share."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from core.presets import PRESETS

WithoutPrefix = tyro.conf.arg(name="")  # tyro frames what a part with a prefix refuses, and names its own insides
PresetName = Annotated[Literal[tuple(PRESETS)], tyro.conf.arg(help="Where the defaults below come from.")]  # type: ignore[valid-type]
Json = Annotated[bool, tyro.conf.arg(name="json", help="Print JSON for machines, an object a line, and no progress.")]
ModelFolder = Annotated[
    Path,
    tyro.conf.arg(
        name="model",
        help="Folder of a model, such as models/imdb-encoder, or of a transformers classifier; hub:OWNER/NAME: one of the hub.",
    ),
]
TEXT = tyro.conf.arg(help="The review; one that starts with a dash is given as --text='-...'.")
Text = Annotated[str, TEXT]
