"""The real reviews, read once."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from core.data import tokenizer as wordpiece
from core.data.reviews import Reviews
from core.data.sources import bundled

PROBES = json.loads((Path(__file__).parent.parent / "probes.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def imdb() -> Reviews:
    return bundled.imdb()


@pytest.fixture(scope="session")
def tokenizer(imdb: Reviews) -> Tokenizer:
    return wordpiece.train(imdb.texts[:1500], 3000)


@pytest.fixture(params=PROBES)
def probe(request: pytest.FixtureRequest) -> str:
    return PROBES[request.param]
