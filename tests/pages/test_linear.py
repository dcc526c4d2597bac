"""A linear model on the pages: asked for by the knobs that it has, followed fit by fit, and read without a map."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import artifact
from core.checked import to_json
from core.config import RunConfig, TrainingConfig
from core.data import tokenizer as tokenizers
from core.events import EpochFinished, TrainingStarted
from core.presets import flags, preset
from core.runs import read_model
from core.training.linear import untrained
from core.training.loop import Examples
from tests import small_models
from ui import compare, live


@pytest.fixture
def linear_root(tmp_path, monkeypatch):
    """Small models, and a linear one that calls what has "good" in it positive."""
    root = small_models.write(tmp_path / "models")
    tokenizer = tokenizers.load(root / "imdb-encoder")
    config = preset("nb-svm")
    ids = [tokenizers.encode(tokenizer, text).ids for text in small_models.TEXTS]
    architecture = config.model.__class__(vocab_size=tokenizer.get_vocab_size(), min_reviews=1, longest_run=1)
    network = untrained(architecture, ("negative", "positive"), Examples(ids, np.zeros(3, dtype=np.int64)))
    good = network.network.runs.tolist().index(tokenizer.token_to_id("good") + 1)
    network.network.weight.data[good, 1] = 1.5
    config = RunConfig(model=network.config.architecture, training=config.training)
    artifact.write_network(root / "nb", network, tokenizer, config)
    (root / "nb" / "run.json").write_text(json.dumps({"config": to_json(config)}))
    small_models.predictions().to_parquet(root / "nb" / "predictions.parquet")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(root))
    return root


def test_inspect_shows_what_each_word_adds(first_page, linear_root):
    page = first_page.run().switch_page("../pages/inspect.py").run()
    page.text_area(key="inspect_review").set_value("not good <b>film</b>")
    page.multiselect(key="inspect_models").set_value(["nb", "imdb-encoder"]).run(timeout=120)
    assert not page.exception
    assert any("A linear model attends to nothing" in text.value for text in page.markdown)
    table = next(frame.value for frame in page.dataframe if "adds to the log-odds" in frame.value)
    assert table.iloc[0].tolist() == ["good", 1.5] and not table["adds to the log-odds"][1:].any()
    assert any("Linear model · nb" in html.proto.body for html in page.get("html"))


def test_other_words_are_tried_with_it_and_it_has_no_neighbours(first_page, linear_root):
    page = first_page.run().switch_page("../pages/whatif.py").run()
    page.selectbox(key="whatif_model").set_value("nb")
    for what, said in (
        ("other words", "positive: as typed"),
        ("fewer words", "'good', the answer turns"),
        ("not and names", ""),
    ):
        page.text_area(key="inspect_review").set_value("it is good")
        page.segmented_control(key="whatif_try").set_value(what).run()
        assert not page.exception and not page.error
        assert said in "".join(text.value for text in page.markdown).replace("\\", "")
    page.text_area(key="inspect_review").set_value("it is good")
    page.segmented_control(key="whatif_try").set_value("similar reviews").run()
    assert "a linear model, which makes no vector" in page.error[0].value.replace("\\", "")


def test_compare_calls_it_by_its_features(linear_root):
    run = read_model(linear_root / "nb")
    assert compare.kind(run) == "Linear, naive Bayes of up to 1 token"


def test_compare_holds_no_knob_against_it_that_it_does_not_have(linear_root, tmp_path):
    network = tmp_path / "models" / "imdb-encoder"
    (network / "run.json").write_text(json.dumps({"config": to_json(RunConfig(training=TrainingConfig(seed=7)))}))
    knobs = compare.knobs([read_model(linear_root / "nb"), read_model(network)])
    assert knobs.loc["seed"].tolist() == ["0", "7"] and knobs.loc["epochs"].tolist() == ["n/a", "5"]
    assert knobs.loc["device"].tolist() == ["n/a", "auto"] and knobs.loc["longest_run"].tolist() == ["1", "n/a"]


def test_only_the_knobs_that_it_has_are_asked():
    def page():
        import streamlit as st

        from core.config import DataConfig
        from core.presets import flags, preset
        from ui import knobs

        st.code(" ".join(flags("nb-svm", knobs.choose(preset("nb-svm"), DataConfig(), "train"))))

    app = AppTest.from_function(page, default_timeout=30).run()
    asked = {widget.label for widget in [*app.number_input, *app.selectbox, *app.text_input]}
    assert {"c_values", "longest_run", "features", "limit", "seed", "weights", "max_len"} <= asked
    assert not asked & {"epochs", "lr", "batch_size", "device", "backend", "dropout"}
    app.text_input(key="train_c_values").set_value("0.5, 2").run()
    assert app.code[0].value == "--preset nb-svm --c-values 0.5 2.0"
    app.text_input(key="train_c_values").set_value("much").run()
    assert "c_values: got 'much', expected numbers with a comma between them" in app.exception[0].message


def test_a_preset_of_it_is_told_by_flags():
    assert flags("tfidf", preset("tfidf")) == ["--preset", "tfidf"]
    with pytest.raises(ValueError, match="preset: got 'tiny', an encoder, for a linear"):
        flags("tiny", preset("tfidf"))


def test_progress_is_that_of_its_fits():
    started = TrainingStarted(
        n_parameters=1_000, n_train=900, n_validation=50, epochs=4, device="cpu", precision="float32", backend=None
    )
    fit = EpochFinished(epoch=1, step=1, train_loss=0.1, val_loss=0.3, val_accuracy=0.9, elapsed_s=20.0)
    assert live._fitted(started, None, "cpu") == (0.0, "1,000 parameters, 900 reviews, cpu")
    share, said = live._fitted(started, fit, "cpu")
    assert share == 0.25 and said.startswith("Fit 1 of 4 · validation accuracy 90.0% · about 60 s left")


def test_its_curves_are_over_fits(linear_root):
    assert read_model(linear_root / "nb").step_name == "fit"
    assert read_model(linear_root / "imdb-encoder").step_name == "step"
