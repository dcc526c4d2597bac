"""Every rule on made-up figures of every outcome that it can come to."""

import re

import pytest

from core.claims.catalog import CLAIMS, find
from core.claims.claim import OUTCOMES, THEMES, Measured, Read
from core.claims.figures import DISTANCES, of_loss, of_state

HOLDS, FAILS, ONLY, UNKNOWN = OUTCOMES


def over(name, value, half, seeds=3, **more):
    """A difference over seeds, with its interval."""
    return {name: value, f"{name}, from": value - half, f"{name}, to": value + half, "seeds": seeds, **more}


def both(first, second, **more):
    """Two differences of the same seeds."""
    return over(*first) | over(*second) | more


def gradients(gone, seeds=3):
    """Gradients of a BiLSTM's states that are lost from a distance on."""
    states = {of_state("bilstm", at): 1.0 if at < gone else 0.001 for at in DISTANCES}
    return states | {of_loss("bilstm", at): 0.5 for at in DISTANCES} | {"seeds": seeds}


def shares(*percents):
    return {f"share at {length} tokens, %": float(share) for length, share in zip((128, 512, 2048), percents, strict=True)}


def saved(*ratios):
    return {f"training at {length}, eager over sdpa": ratio for length, ratio in zip((512, 1024, 2048), ratios, strict=True)}


def timed(short, long, device="cpu"):
    return {f"eager's time over sdpa's at {length} tokens, {device}": ratio for length, ratio in ((128, short), (512, long))}


def cached(*gains):
    names = [f"time without a cache over time with it, prompt of {prompt} tokens, cpu" for prompt in (8, 64)]
    return dict(zip(names, gains, strict=True))


def scored(factor, loose, tight):
    variances = {f"d_head {size}: variance over d_head": factor for size in (16, 64, 256)}
    return variances | {"d_head 256, not scaled: largest weight": loose, "d_head 256, scaled: largest weight": tight}


def filled(nothing, one, other=0):
    return {"nothing to see, -inf: not finite": nothing, "one token to see, -inf: not finite": one, "-1e9 in float16": "-inf",
            "nothing to see, -1e9: not finite": other, "one token to see, -1e9: not finite": 0}  # fmt: skip


def overflows(short, long, scaled):
    return {"128 tokens, product first: overflows from size": short, "1024 tokens, product first: overflows from size": long,
            "1024 tokens, scale first: overflows from size": scaled, "1024 tokens: largest score at size 1": 45.0}  # fmt: skip


def masked(total, moves, right=1.0):
    return {"mask after softmax: smallest sum of a row": total, "mask after softmax: an output moves with padding by": moves,
            "this lab: smallest sum of a row": right, "this lab: an output moves with padding by": 0.0}  # fmt: skip


def shapes(for_heads, flat, square):
    names = ("(B, 1, 1, T)", "(B, T)", "(B, T, T)", "(B, T, T) where B is H")
    return dict(zip(names, (for_heads, flat, "refused", square), strict=True))


def orders(*taken):
    names = ("transpose, view", "transpose, contiguous, view", "projection, view, transpose")
    return dict(zip(names, taken, strict=True))


def flickering(training, evaluation):
    spread = "spread of a probability, points"
    return {f"training mode: {spread}": training, f"evaluation mode: {spread}": evaluation, "passes": 10, "reviews": 40,
            "training mode: reviews whose label changes, %": 5.0}  # fmt: skip


def read_longer(sinusoidal, rotary, alibi, seeds=3):
    found = {}
    for name, value in (("sinusoidal", sinusoidal), ("rotary", rotary), ("alibi", alibi)):
        found |= over(f"{name}: change, points", value, 2.0, seeds)
    return found | {"learned": "refused: got 500 tokens"}


def shuffled(none, others):
    return {"none: logits move by": none} | {
        f"{name}: logits move by": others for name in ("sinusoidal", "learned", "rotary", "alibi")
    }


def attended(received, share):
    return {"attention received, %": received, "share of the tokens, %": share, "reviews": 40}


def heads(alike):
    return {"pairs alike": alike, "pairs": 12, "smallest distance": 0.2, "mean distance of two heads of a layer": 0.5,
            "of": "layer 1, heads 1 and 2"}  # fmt: skip


def rates(small, large, seeds=3, lowest=0.5):
    losses = {f"d_head {size}, rate 0.001: lowest validation loss, nats": lowest for size in (16, 128)}
    return losses | {"d_head 16: best rate of each seed": small, "d_head 128: best rate of each seed": large, "seeds": seeds}


def flash(held, moved, training=1.0):
    return {"memory held grows by length to the power of": held, "bytes moved grow by length to the power of": moved,
            "operations over eager's, forward": 1.0, "operations over eager's, training": training}  # fmt: skip


def kept(one, layer):
    return {"one matrix of scores, GiB": one, "kept by a layer for backward, GiB": layer, "whole layer at its peak, GiB": 3.2}


TRAINING, LATENCY = "transformer's rate over the BiLSTM's", "BiLSTM's latency over the transformer's"
MEMORY = "transformer's memory over the BiLSTM's"
GAIN, DROP, SMALL = "gain of the transformer, points", "larger drop of the bilstm, points", "gain of the bilstm, points"
ONE, SIXTEEN = "loss by one head, points", "loss by sixteen heads, points"
PADDED, FIRST = "loss by pooling padding, points", "loss by the first token alone, points"
SCALE, FAILED = "loss without the scale, points", "scale-off: trainings that failed"
HIGHER, LOWER = "higher loss without, {} layers, nats", "lower loss of pre, {} layers, nats"
MOVED, TABLE = "moved, % of its norm", "gain of the fixed table, points"
SHORT = "transformer up to 96 words, %"
TOLD = {"bilstm up to 96 words, %": 80.0, SHORT: 75.0}
SHIPPED = {"shipped models: gain of the transformer, points": -1.1}
PLACES = "numbers in another place, %"
BASE, WEAK = {"base, accuracy %": 80.0}, {"base, accuracy %": 65.0}
PAIR = {"bilstm, %": 80.0, "transformer, %": 79.0}
F1, EACH = {"base, f1 %": 80.0}, {"each token, %": 71.0}
BEST = {"accuracy, %": 88.0, "accuracy, from, %": 86.6, "accuracy, to, %": 89.2}


def of_difference(name, told=None, margin=1.0, weak=None, **more):
    """What every rule of a difference over seeds has to tell apart; `weak` networks have nothing to lose."""
    told = margin if told is None else told
    unlearned = [] if weak is None else [
        (over(name, 0.0, told / 2, **more | weak), UNKNOWN), (over(name, 2 * told, told / 2, **more | weak), HOLDS)
    ]  # fmt: skip
    return unlearned + [
        (over(name, 2 * told, told / 2, **more), HOLDS), (over(name, 0.0, told / 2, **more), FAILS),
        (over(name, told, 2 * told, **more), UNKNOWN), (over(name, 2 * told, told / 2, seeds=2, **more), UNKNOWN),
        (over(name, -2 * told, told / 2, **more), FAILS),
    ]  # fmt: skip


CASES = {
    "faster-epochs": [({f"{TRAINING}, cpu": 3.6}, HOLDS), ({f"{TRAINING}, cpu": 0.5}, FAILS),
                      ({f"{TRAINING}, cpu": 0.5, f"{TRAINING}, cuda": 3.4}, ONLY), ({f"{TRAINING}, cpu": None}, UNKNOWN)],
    "lower-latency": [({f"{LATENCY}, cuda": 2.0}, HOLDS), ({f"{LATENCY}, cpu": 0.2}, FAILS),
                      ({f"{LATENCY}, cpu": 0.5, f"{LATENCY}, cuda": 1.9}, ONLY), ({f"{LATENCY}, cpu": None}, UNKNOWN)],
    "four-times-an-lstm": [({f"{TRAINING}, cpu": 4.1}, HOLDS), ({f"{TRAINING}, cpu": 2.9}, FAILS),
                           ({f"{TRAINING}, cpu": 0.5, f"{TRAINING}, cuda": 4.0}, ONLY), ({f"{TRAINING}, cpu": None}, UNKNOWN)],
    "naive-71-percent-more": [({f"{MEMORY}, cpu": 2.08}, HOLDS), ({f"{MEMORY}, cpu": 1.1}, FAILS),
                              ({f"{MEMORY}, cpu": 4.0}, FAILS), ({f"{MEMORY}, cpu": 4.0, f"{MEMORY}, cuda": 1.7}, ONLY),
                              ({f"{MEMORY}, cpu": None}, UNKNOWN)],
    "flash-saves-7.5": [(saved(7.0, 12, 24), HOLDS), (saved(3.4, 6.1, 11.4), ONLY), (saved(1, 2, 3), FAILS)],
    "scores-1.5-gb": [({"scores, GiB": 1.5}, HOLDS), ({"scores, GiB": 3.0}, FAILS)],
    "layer-1-gb": [(kept(1.0, 1.0), HOLDS), (kept(1.0, 2.0), ONLY), (kept(2.0, 4.0), FAILS)],
    "matrix-4-gb": [({"16 bits, GiB": 4.0}, HOLDS), ({"8 bits, GiB": 4.0, "16 bits, GiB": 8.0}, ONLY),
                    ({"16 bits, GiB": 8.0}, FAILS)],
    "attention-30-40-percent": [(shares(31, 35, 39), HOLDS), (shares(8, 34, 74), ONLY), (shares(8, 20, 74), FAILS)],
    "flash-reads-linear": [(flash(1.0, 1.0), HOLDS), (flash(1.0, 1.9, 1.17), ONLY), (flash(2.0, 2.0), FAILS)],
    "flash-from-512": [(timed(1.04, 1.5), HOLDS), (timed(1.5, 2), FAILS), (timed(1, 1.1), FAILS),
                       (timed(1.04, 1.5) | timed(1.5, 2, "cuda"), ONLY), ({}, UNKNOWN), (timed(1.04, None), UNKNOWN)],
    "cache-for-a-classifier": [(cached(1.7, 2.9), ONLY), (cached(1.1, 1.2), FAILS), ({}, UNKNOWN), (cached(1.1, None), FAILS)],
    "batch-rule": [({"a": 1.1, "b": 0.9}, HOLDS), ({"a": 1.1, "b": 9.0}, ONLY), ({"a": 3.0, "b": 9.0}, FAILS)],
    "checkpointing-a-third": [
        ({"time with over without": ratio, "lowest": ratio - 0.1, "highest": ratio + 0.1, "pairs": 9}, outcome)
        for ratio, outcome in ((1.33, HOLDS), (1.8, FAILS), (1.15, FAILS), (1.05, UNKNOWN))],
    "from-scratch-91.6": [(BEST | {"seeds": 1}, UNKNOWN), (BEST | {"seeds": 3}, FAILS),
                          (BEST | {"seeds": 3, "accuracy, to, %": 92.0}, HOLDS)],
    "better-than-bilstm": of_difference(GAIN, 4.4, **SHIPPED),
    "bilstm-drops-with-length": [*of_difference(DROP, **TOLD), (over(DROP, 17, 6, **TOLD | {SHORT: 52.5}), UNKNOWN)],
    "lstm-forgets": [(gradients(20), HOLDS), (gradients(30), ONLY), (gradients(60), ONLY),
                     (gradients(999), FAILS), (gradients(20, seeds=1), UNKNOWN)],
    "eight-heads": [(both((ONE, 3, 1), (SIXTEEN, 2, 1)), HOLDS), (both((ONE, 3, 1), (SIXTEEN, 0, 3)), ONLY),
                    (both((ONE, 0, 0.5), (SIXTEEN, 0, 0.5), **BASE), FAILS),
                    (both((ONE, 0, 0.5), (SIXTEEN, 0, 0.5), **WEAK), UNKNOWN), (both((ONE, 0, 3), (SIXTEEN, 0, 0.5)), UNKNOWN)],
    "positions-matter": of_difference("loss without positions, points", weak=WEAK, **BASE),
    "batch-norm-costs-5": of_difference("loss by batch norm, points", 5.0, weak=WEAK, **BASE),
    "wrong-mask-costs-1.3": of_difference(
        "loss by a mask after the softmax, points", 1.3, weak={"base, f1 %": 60.0}, **F1),
    "lstm-wins-on-few": of_difference(SMALL, weak={"transformer, %": 49.0}, **PAIR),
    "pooling-matters": [(both((PADDED, 3, 1), (FIRST, 2, 1)), HOLDS), (both((PADDED, 0, 3), (FIRST, 2, 1)), ONLY),
                        (both((PADDED, 0, 0.5), (FIRST, 0, 0.5), **BASE), FAILS),
                        (both((PADDED, 0, 0.5), (FIRST, 0, 0.5), **WEAK), UNKNOWN),
                        (both((PADDED, 0, 3), (FIRST, 0, 3)), UNKNOWN)],
    "scale-or-diverge": [
        (over(SCALE, 3, 1, **{FAILED: 0}), HOLDS), (over(SCALE, 0, 3, **{FAILED: 0}), FAILS), ({FAILED: 3, "seeds": 0}, HOLDS),
        (over(SCALE, -4, 1, **{FAILED: 0}), FAILS), ({FAILED: 2, "seeds": 1}, UNKNOWN), ({FAILED: 1, "seeds": 0}, UNKNOWN)],
    "softmax-saturates": [(scored(1.0, 0.9, 0.1), HOLDS), (scored(1.0, 0.5, 0.1), ONLY), (scored(2.0, 0.9, 0.1), FAILS)],
    "warm-up-calms": of_difference("more change from step to step without, nats", margin=0.02),
    "residuals-needed": [
        (both((HIGHER.format(2), 0.1, 0.05), (HIGHER.format(12), 0.2, 0.05)), HOLDS),
        (both((HIGHER.format(2), 0.0, 0.01), (HIGHER.format(12), 0.2, 0.05)), ONLY),
        (both((HIGHER.format(2), 0.0, 0.01), (HIGHER.format(12), 0.0, 0.01)), FAILS),
        (both((HIGHER.format(2), 0.0, 0.1), (HIGHER.format(12), 0.0, 0.1)), UNKNOWN)],
    "pre-norm-stabler": [
        (both((LOWER.format(2), 0.0, 0.05), (LOWER.format(12), 0.2, 0.05)), HOLDS),
        (both((LOWER.format(2), 0.3, 0.05), (LOWER.format(12), 0.2, 0.05)), UNKNOWN),
        (both((LOWER.format(2), 0.0, 0.05), (LOWER.format(12), 0.0, 0.01)), FAILS),
        (both((LOWER.format(2), 0.0, 0.05), (LOWER.format(12), 0.2, 0.5)), UNKNOWN)],
    "beta2-with-warm-up": of_difference("more of it with warm-up than without, nats", margin=0.02),
    "smoothing-generalises": of_difference("gain of label smoothing, points", weak=WEAK, **BASE),
    "wide-heads-slower": [(rates("0.004, 0.016, 0.004", "0.001, 0.004, 0.001"), HOLDS),
                          (rates("0.001, 0.004, 0.001", "0.004, 0.004, 0.016"), FAILS),
                          (rates("0.004, 0.004, 0.001", "0.001, 0.004, 0.001"), UNKNOWN),
                          (rates("0.004", "0.001", seeds=1), UNKNOWN),
                          (rates("0.004", "0.001", lowest=0.69), UNKNOWN)],
    "table-drifts": [(over(TABLE, 3, 1, **{MOVED: 5.0}), HOLDS), (over(TABLE, 0, 3, **{MOVED: 5.0}), ONLY),
                     (over(TABLE, 3, 1, **{MOVED: 0.1}), FAILS), (over(TABLE, 3, 1, seeds=2, **{MOVED: 5.0}), UNKNOWN)],
    "inf-makes-nan": [(filled(64, 3), HOLDS), (filled(64, 0), ONLY), (filled(0, 0), FAILS), (filled(64, 0, 1), FAILS)],
    "fp16-overflows": [(overflows(2, 1, None), HOLDS), (overflows(64, 64, 128), ONLY), (overflows(None, None, None), FAILS)],
    "mask-after-softmax": [(masked(0.5, 0.7), HOLDS), (masked(1.0, 0.0), FAILS), (masked(0.5, 0.0), FAILS),
                           (masked(0.5, 0.7, right=0.5), FAILS)],
    "mask-broadcasts": [(shapes("taken", "refused", "right"), HOLDS), (shapes("taken", "refused", "taken for heads"), ONLY),
                        (shapes("refused", "refused", "right"), FAILS), (shapes("taken", "taken", "right"), FAILS)],
    "view-after-transpose": [(orders("refused", "taken", "refused"), HOLDS), (orders("refused", "taken", "taken"), ONLY),
                             (orders("taken", "taken", "taken"), FAILS)],
    "reshape-is-wrong": [({"runs": "true", PLACES: 85.0}, HOLDS), ({"runs": "true", PLACES: 0.0}, FAILS),
                         ({"runs": "false", PLACES: 85.0}, FAILS)],
    "eval-forgotten": [(flickering(27.0, 0.0), HOLDS), (flickering(0.0, 0.0), FAILS), (flickering(27.0, 5.0), FAILS)],
    "norm-over-text": of_difference("loss by the whole text, points", weak={"each token, %": 60.0}, **EACH),
    "slice-beyond-max-len": [
        ({"rows asked for": 200, "rows got": 200, "sum with 200 tokens": "adds"}, HOLDS),
        ({"rows asked for": 200, "rows got": 128, "sum with 200 tokens": "refused"}, ONLY),
        ({"rows asked for": 200, "rows got": 128, "sum with 200 tokens": "adds"}, FAILS)],
    "trained-128-tested-500": [(read_longer(-10, 0, 1), HOLDS), (read_longer(0, 0, 1), FAILS), (read_longer(-10, -10, 1), ONLY),
                               (read_longer(-4, 0, 0), UNKNOWN), (read_longer(-10, -9, -9), UNKNOWN),
                               (read_longer(-10, 0, 1, seeds=2), UNKNOWN)],
    "shift-is-linear": [({"k = 1: largest error": 1e-6}, HOLDS),
                        ({"k = 1: largest error": 1e-6, "k = 5: largest error": 1.0}, FAILS)],
    "learned-faster": of_difference("lower loss of learned, nats", margin=0.02),
    "order-without-positions": [(shuffled(1e-7, 0.1), HOLDS), (shuffled(0.1, 0.1), FAILS), (shuffled(1e-7, 1e-7), FAILS)],
    "attention-to-stop-words": [(attended(60.0, 50.0), HOLDS), (attended(55.0, 58.0), ONLY), (attended(41.0, 56.0), FAILS)],
    "heads-differ": [(heads(0), HOLDS), (heads(3), ONLY), (heads(12), FAILS)],
    "parameters": [({"transformer, million": 9.2, "bilstm, million": 8.6}, HOLDS),
                   ({"transformer, million": 7.5, "bilstm, million": 8.6}, FAILS),
                   ({"transformer, million": 7.5, "bilstm, million": 4.9}, FAILS)],
}  # fmt: skip


def test_there_are_forty_nine_claims_each_with_cases_of_its_own():
    assert [claim.number for claim in CLAIMS.values()] == list(range(1, 50))
    assert set(CASES) == set(CLAIMS)
    assert {claim.theme for claim in CLAIMS.values()} == set(THEMES)


@pytest.mark.parametrize("name, figures, outcome", [(name, *case) for name, cases in CASES.items() for case in cases])
def test_figures_of_every_outcome(name, figures, outcome):
    verdict = CLAIMS[name].verdict(figures)
    assert verdict.outcome == outcome, verdict.why
    assert verdict.why and not verdict.why.endswith(".")


@pytest.mark.parametrize("name", CLAIMS)
def test_the_rule_in_words_names_the_outcomes_that_it_comes_to(name):
    words = {HOLDS: "hold", FAILS: "fails", ONLY: '"only when"', UNKNOWN: "not shown"}
    reached = {outcome for _, outcome in CASES[name]}
    assert {HOLDS, FAILS} <= reached or ONLY in reached
    assert [words[outcome] for outcome in reached if words[outcome] not in CLAIMS[name].rule.lower()] == []


def test_figures_of_another_version_are_a_sentence():
    with pytest.raises(ValueError, match="figure 'scores, GiB': got None, expected a number; measure the claim again"):
        CLAIMS["scores-1.5-gb"].verdict({"other": 1.0})


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_claim_says_all_that_a_person_needs(claim):
    for text in (claim.told, claim.method):
        assert text.endswith(".") and text[0] not in " a"
    assert claim.question.endswith("?") and claim.scale and not claim.scale.endswith(".")
    assert re.fullmatch(r"[A-DP](, [A-D])*", claim.source) and re.fullmatch(r"[a-z0-9.-]+", claim.name)
    assert isinstance(claim, Measured | Read)


def test_a_verdict_names_what_was_claimed_beside_what_was_found():
    assert CLAIMS["faster-epochs"].verdict({"transformer's rate over the BiLSTM's, cpu": 0.53}).why == (
        "the Transformer trains 0.530 times as fast on a CPU (claimed: 3.5); not measured on a GPU: run python -m "
        "benchmarks.gpu on one"
    )
    found = {"gain of the bilstm, points": 4.0, "gain of the bilstm, points, from": 1.0, "gain of the bilstm, points, to": 7.0}
    verdict = CLAIMS["lstm-wins-on-few"].verdict(found | {"seeds": 3, "bilstm, %": 80.0, "transformer, %": 76.0})
    assert verdict.why == "gain of the BiLSTM +4.0 points, 95% between +1.0 and +7.0, 3 seeds"


def test_an_unknown_claim_is_a_sentence():
    with pytest.raises(ValueError, match="claim: got 'x', expected one of faster-epochs, lower-latency"):
        find("x")
