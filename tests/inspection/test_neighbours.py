from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.config import LinearArchitecture
from core.data.batches import collate
from core.data.reviews import Reviews
from core.data.splits import fingerprint, split
from core.inspection import neighbours
from core.inspection.neighbours import nearest, space, without_classifier
from core.inspection.reading import encode_typed
from core.networks.auto import build

WORDS = "the film is good and the plot is not bad a dull terrible really movie like".split()
NETWORKS = ("imdb-encoder", "imdb-bilstm", "cls")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path))


@pytest.fixture(scope="module")
def splits():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 40))) for _ in range(220)]
    labels = rng.integers(0, 2, len(texts)).tolist()
    return split(Reviews(name="made up", texts=texts, labels=labels, label_names=("negative", "positive")))


@pytest.fixture(params=NETWORKS)
def network(models, request):
    return models[request.param]


def test_the_vectors_are_what_the_classifier_reads(network, splits):
    reader = without_classifier(network)
    ids = [network.cut.ids(encode_typed(network, text).ids) for text in splits.train.texts[:7]]
    batch = collate(ids)
    with torch.no_grad():
        logits = network.network(**batch.arguments).logits
        pooled = reader.network(**batch.arguments).logits
        torch.testing.assert_close(network.network.network.classifier(pooled), logits)
    assert pooled.shape[1] != logits.shape[1]


def test_the_model_stays_as_it_is(network):
    classifier, logits = network.network.network.classifier, network.network(torch.tensor([[7, 8, 9]])).logits
    reader = without_classifier(network)
    assert network.network.network.classifier is classifier and reader.network is not network.network
    torch.testing.assert_close(network.network(torch.tensor([[7, 8, 9]])).logits, logits, rtol=0, atol=0)
    own = dict(network.network.named_parameters())
    assert all(weights is own[name] for name, weights in reader.network.named_parameters())  # and takes no memory


def test_the_nearest_of_a_review_of_the_training_is_itself(network, splits):
    among = space(network, splits)
    assert len(among.vectors) == among.n_train == len(splits.train)
    for i in (0, 17, len(splits.train) - 1):
        found = nearest(network, among, splits.train.texts[i])
        assert found[0].cosine == pytest.approx(1, abs=1e-6) and len(found) == 10
        same = [one for one in found if one.text == splits.train.texts[i]]
        assert len(same) == 1 and same[0].cosine == pytest.approx(1, abs=1e-6)
        assert same[0].label == splits.train.label_names[splits.train.labels[i]]


def test_neighbours_are_those_of_brute_force_and_of_the_training_alone(network, splits):
    text = "a really terrible film , and not good"
    found = nearest(network, space(network, splits), text, n=5)
    reader, cosines = without_classifier(network), {}

    def vector(text: str) -> np.ndarray:
        with torch.no_grad():
            ids = network.cut.ids(encode_typed(network, text).ids)
            return reader.network(torch.from_numpy(ids)[None].long()).logits[0].double().numpy()

    mine = vector(text)
    for other in splits.train.texts:
        theirs = vector(other)
        cosines[other] = mine @ theirs / np.linalg.norm(mine) / np.linalg.norm(theirs)
    np.testing.assert_allclose([one.cosine for one in found], sorted(cosines.values(), reverse=True)[:5], atol=1e-6)
    assert all(one.cosine == pytest.approx(cosines[one.text], abs=1e-6) for one in found)
    assert not {one.text for one in found} & {*splits.test.texts, *splits.validation.texts}


def test_some_are_spread_evenly_and_progress_is_heard(models, splits):
    heard = []
    among = space(models["one-head"], splits, 50, lambda n, total: heard.append((n, total)))
    assert among.reviews.texts == splits.train.spread(50).texts and among.n_train == len(splits.train)
    assert sum(n for n, _ in heard) == 50 == heard[-1][1]


def test_memory_is_bounded(models, splits, monkeypatch):
    monkeypatch.setattr(neighbours, "MOST_BYTES", 20 * 4 * 8)  # of vectors of 8 numbers
    among = space(models["cls"], splits)
    assert among.vectors.shape == (20, 8) and among.vectors.nbytes <= neighbours.MOST_BYTES


def test_other_reviews_than_those_of_the_training_are_refused(models, splits):
    def of(hashes):
        return replace(models["one-head"], run={"data": {"fingerprint": {"train": fingerprint(hashes)}}})

    assert space(of(splits.hashes["train"]), splits, 3)
    with pytest.raises(ValueError, match="not the same any more"):
        space(of(splits.hashes["test"]), splits, 3)


def test_a_linear_model_and_one_from_elsewhere_have_none(models, splits):
    linear = build(LinearArchitecture(vocab_size=95), ("negative", "positive"))
    with pytest.raises(ValueError, match="a linear model, which makes no vector"):
        space(replace(models["one-head"], network=linear), splits)
    own = ("network", "tokenizer", "label_names", "cut", "folder", "run")
    other = SimpleNamespace(name="bert", kind="bert", **{name: getattr(models["one-head"], name) for name in own})
    with pytest.raises(ValueError, match="trained elsewhere"):
        space(other, splits)
