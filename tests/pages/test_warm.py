import gc
import threading

from ui import loaders, warm


def test_models_are_opened_once_a_page_is_drawn_and_not_before(monkeypatch, model_root):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(model_root))
    opened, painted = [], threading.Event()

    def open_or_refuse(name):
        opened.append(name)
        raise ValueError("damaged")  # which must not keep the other from being opened

    monkeypatch.setattr(warm, "page_painted", painted)
    monkeypatch.setattr(loaders, "model", open_or_refuse)
    monkeypatch.setattr(loaders, "examples", lambda: opened.append("examples"))
    monkeypatch.setattr(gc, "freeze", lambda: opened.append("frozen"))  # and no page waits for garbage among them
    thread = threading.Thread(target=warm.warm, daemon=True)
    thread.start()
    thread.join(timeout=0.2)
    assert opened == []
    painted.set()
    thread.join(timeout=10)
    assert opened == ["imdb-encoder", "imdb-bilstm", "examples", "frozen"]


def test_a_page_that_ends_early_counts_as_drawn(first_page, monkeypatch):
    warm.page_painted.clear()
    first_page.run()
    assert warm.page_painted.is_set()
    assert first_page.title[0].value == "Inspect"


def test_models_are_listed_with_the_shipped_ones_first(monkeypatch, model_root):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(model_root))
    assert loaders.model_names() == ["imdb-encoder", "imdb-bilstm", "cls", "one-head"]
