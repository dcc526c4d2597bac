"""What stands beside a widget."""

from dataclasses import fields

import pytest

from core.config import BiLSTMArchitecture, DataConfig, EncoderArchitecture, TrainingConfig
from ui import knobs


@pytest.mark.parametrize("part", [EncoderArchitecture, BiLSTMArchitecture, TrainingConfig, DataConfig])
def test_every_knob_says_what_it_does(part):
    asked = {knob.name for knob in fields(part)} - set(knobs.SETTLED)
    assert asked <= set(knobs.explanations(part))
