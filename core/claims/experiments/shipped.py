"""What the models that come along reached, read from their folders: one seed each."""

from core.artifact import models_root, read_run
from core.claims.figures import Figures, Found
from core.evaluation import predictions
from core.evaluation.paired import compare

ENCODER, BILSTM = "imdb-encoder", "imdb-bilstm"


def encoder() -> Figures:
    """Accuracy of the encoder on its test reviews, with Wilson's interval. ValueError where the model is not there."""
    test = read_run(models_root() / ENCODER)["metrics"]["test"]
    ends = {"accuracy, %": "accuracy", "accuracy, from, %": "low", "accuracy, to, %": "high"}
    return {name: 100 * test[of] for name, of in ends.items()} | {"reviews": test["n"], "seeds": 1}


def gain() -> Found:
    """Of the encoder over the BiLSTM, on the same test reviews."""
    found = compare(*(predictions.read(models_root() / name) for name in (BILSTM, ENCODER))).accuracy
    return {"shipped models: gain of the transformer, points": 100 * found.value, "shipped models: p": found.p}
