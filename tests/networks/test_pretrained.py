"""Classifiers that others have trained: tiny random ones of each kind, against transformers' own attention."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertLMHeadModel,
    ModernBertForTokenClassification,
)
from transformers.masking_utils import bidirectional_mask_function
from transformers.utils import logging

from core.attention.masks import AttentionMask
from core.data.tokenizer import encode
from core.inspection.reading import read
from core.networks import pretrained
from core.networks.blocks import attention_function
from core.networks.pretrained import ARCHITECTURES, NAME, open_pretrained
from tests import foreign_models
from tests.backends import able
from tests.foreign_models import BYTE_LEVEL, CONFIGS, PAD, SIZES, VOCABULARY, D, H, L, rewrite

B, T = 3, 13
LENGTHS = (13, 6, 9)
PROBES = json.loads((Path(__file__).parents[1] / "probes.json").read_text(encoding="utf-8"))
PROJECTIONS = {
    "bert": "bert.encoder.layer.{}.attention.output.dense",
    "distilbert": "distilbert.transformer.layer.{}.attention.out_lin",
    "roberta": "roberta.encoder.layer.{}.attention.output.dense",
    "modernbert": "model.layers.{}.attn.Wo",
}
RUN = ("eager", "sdpa", "chunked")
every_kind = pytest.mark.parametrize("kind", ARCHITECTURES)
every_backend = pytest.mark.parametrize("backend", RUN)
each_side = pytest.mark.parametrize("side", ["none", "right", "left"])


@pytest.fixture(autouse=True)
def no_progress_bars():
    logging.disable_progress_bar()


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    return foreign_models.write(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def folder(checkpoints, tmp_path):
    """A copy of BERT's, to be spoilt."""
    return shutil.copytree(checkpoints / "bert", tmp_path / "bert")


def original(folder, attention="eager"):
    return AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation=attention, dtype=torch.float32).eval()


def batch(side="right"):
    """Random ids and their mask, None where nothing is padded."""
    ids = torch.randint(7, 100, (B, T), generator=torch.Generator().manual_seed(1))
    if side == "none":
        return ids, None
    token_mask = torch.arange(T) < torch.tensor(LENGTHS)[:, None]
    token_mask = token_mask if side == "right" else token_mask.flip(1)
    return ids.masked_fill(~token_mask, PAD), token_mask.long()


def close(ours, theirs, atol=1e-5):
    torch.testing.assert_close(ours, theirs, atol=atol, rtol=0)


# Attention


@torch.no_grad()
@every_kind
@every_backend
@each_side
def test_logits_are_those_of_transformers_own_attention(checkpoints, kind, backend, side):
    known = original(checkpoints / kind)
    ids, token_mask = batch(side)
    ours = open_pretrained(checkpoints / kind).network(ids, token_mask, backend=backend).logits
    close(ours, known(ids, token_mask).logits)
    if side != "none":  # and would differ if padding were attended
        assert (ours - known(ids).logits).abs().max() > 1e-2


@torch.no_grad()
@every_kind
@every_backend
def test_a_padded_text_reads_as_it_does_alone(checkpoints, kind, backend):
    network = open_pretrained(checkpoints / kind).network
    ids, token_mask = batch("right")
    together = network(ids, token_mask, backend=backend).logits
    for row, length in enumerate(LENGTHS):
        close(network(ids[row : row + 1, :length], backend=backend).logits[0], together[row])


@torch.no_grad()
@every_backend
@every_kind
def test_places_that_are_given_are_the_places_read(checkpoints, kind, backend):
    ids, token_mask = batch("right")
    places = torch.arange(T).flip(0).expand(B, T) + 3
    network, known = open_pretrained(checkpoints / kind).network, original(checkpoints / kind)
    ours = network(ids, token_mask, position_ids=places, backend=backend).logits
    close(ours, known(ids, token_mask, position_ids=places).logits)
    assert (ours - network(ids, token_mask, backend=backend).logits).abs().max() > 1e-3


@torch.no_grad()
@every_backend
def test_the_second_text_of_a_pair_is_told_from_the_first(checkpoints, backend):
    ids, token_mask = batch("right")
    types = (torch.arange(T) > 4).long().expand(B, T)
    network, known = open_pretrained(checkpoints / "bert").network, original(checkpoints / "bert")
    ours = network(ids, token_mask, token_type_ids=types, backend=backend).logits
    close(ours, known(ids, token_mask, token_type_ids=types).logits)
    assert (ours - network(ids, token_mask, backend=backend).logits).abs().max() > 1e-3


@torch.no_grad()
@every_backend
@each_side
def test_a_local_layer_is_blind_to_what_is_far(checkpoints, tmp_path, backend, side):
    local = shutil.copytree(checkpoints / "modernbert", tmp_path / "local")
    rewrite(local, layer_types=["sliding_attention"] * L)
    network = open_pretrained(local).network.model
    ids, token_mask = batch(side)
    changed = ids.clone()
    changed[0, 6] = ids[0, 6] % 90 + 8  # the first text has no padding
    before, after = (network(given, token_mask, backend=backend).last_hidden_state[0] for given in (ids, changed))
    influence = (after - before).abs().amax(-1)
    reach = 2 * L  # local_attention 4 is 2 on each side, in each layer
    far = (torch.arange(T) - 6).abs() > reach
    assert influence[far].eq(0).all() and influence[~far].gt(1e-4).all()


@torch.no_grad()
@every_kind
@each_side
def test_maps_are_those_of_transformers(checkpoints, kind, side):
    ids, token_mask = batch(side)
    ours = open_pretrained(checkpoints / kind).network(ids, token_mask, output_attentions=True).attentions
    theirs = original(checkpoints / kind)(ids, token_mask, output_attentions=True).attentions
    assert [weights.shape for weights in ours] == [(B, H, T, T)] * L
    real = torch.ones(B, T, dtype=torch.bool) if token_mask is None else token_mask.bool()
    asks, hidden = real[:, None, :, None], ~real[:, None, None, :]  # what padding attends to is nobody's business
    for mine, known in zip(ours, theirs, strict=True):
        close(mine * asks, known * asks)
        close((mine * asks).sum(-1), asks[..., 0].float().expand(B, H, T))
        assert not (mine * asks * hidden).any()


@pytest.mark.parametrize("local_size, window", [(None, None), (T, None), (T - 1, None), (T - 2, T - 2)])
def test_a_mask_that_hides_nothing_is_none(local_size, window):
    given = dict(mask_function=bidirectional_mask_function, kv_length=T, local_size=local_size)
    found = pretrained.mask(**given, attention_mask=torch.ones(B, T, dtype=torch.bool))
    assert found.token_mask is None and found.among(T, T) == AttentionMask(window=window)


@every_kind
@pytest.mark.parametrize("backend", [name for name in RUN if name not in able(weights=True)])
def test_maps_of_a_backend_that_has_none_are_an_error_that_names_eager(checkpoints, kind, backend):
    network = open_pretrained(checkpoints / kind).network
    with pytest.raises(ValueError, match=rf"'{backend}'.*'eager'"):
        network(*batch(), output_attentions=True, backend=backend)


def test_an_unknown_backend_is_an_error_that_lists_them(checkpoints):
    with pytest.raises(ValueError, match="got 'flash', expected one of eager, sdpa"):
        open_pretrained(checkpoints / "bert").network(*batch(), backend="flash")


@torch.no_grad()
@every_kind
@every_backend
def test_the_backend_asked_for_is_the_one_that_runs(checkpoints, kind, backend, monkeypatch):
    ran = []
    attend = attention_function(backend, weights=False)
    monkeypatch.setattr(f"{attend.__module__}.{attend.__name__}", lambda *given: ran.append(backend) or attend(*given))
    open_pretrained(checkpoints / kind).network(*batch(), backend=backend)
    assert ran == [backend] * L


@every_backend
@every_kind
def test_gradients_are_those_of_transformers_own_attention(checkpoints, kind, backend):
    ids, token_mask = batch("right")
    gradients = []
    for network, asked in (
        (open_pretrained(checkpoints / kind).network, dict(backend=backend)),
        (original(checkpoints / kind), {}),
    ):
        network.requires_grad_(True)
        network(ids, token_mask, **asked).logits.pow(2).sum().backward()
        gradients.append({name: weights.grad for name, weights in network.named_parameters()})
    ours, theirs = gradients
    assert {name for name, gradient in theirs.items() if gradient is not None} > set()
    for name, gradient in theirs.items():
        if gradient is not None:
            torch.testing.assert_close(ours[name], gradient, atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize(
    "attention_mask", [torch.ones(B, 1, T, T), torch.ones(B, 1, T, T, dtype=torch.bool)], ids=["float", "bool"]
)
def test_a_mask_that_is_made_already_is_refused(checkpoints, attention_mask):
    with pytest.raises(ValueError, match=r"attention_mask: .* expected \(B, T\)"):
        open_pretrained(checkpoints / "bert").network(batch()[0], attention_mask)


def test_a_network_that_reads_from_left_to_right_is_refused():
    config = BertConfig(**SIZES, is_decoder=True)
    network = AutoModelForCausalLM.from_config(config, attn_implementation=NAME)
    assert isinstance(network, BertLMHeadModel)
    with pytest.raises(ValueError, match="from left to right"):
        network(batch()[0])


# Heads


@torch.no_grad()
@every_kind
@every_backend
def test_a_head_of_gain_0_adds_nothing_to_the_output_projection(checkpoints, kind, backend):
    network = open_pretrained(checkpoints / kind).network
    ids, token_mask = batch("right")
    gain = torch.ones(L, H)
    gain[1, 2], gain[0, 3], gain[0, 0] = 0.0, 0.0, 0.5
    for layer in range(L):  # by hand: the slices of the projection's input, (B, T, D)
        factors = gain[layer].repeat_interleave(D // H)
        handle = network.get_submodule(PROJECTIONS[kind].format(layer))
        handle.register_forward_pre_hook(lambda module, given, factors=factors: (given[0] * factors,))
    by_hand = network(ids, token_mask, backend=backend).logits
    fresh = open_pretrained(checkpoints / kind).network
    ours = fresh(ids, token_mask, backend=backend, head_gain=gain).logits
    close(ours, by_hand, atol=1e-6)
    assert (ours - fresh(ids, token_mask, backend=backend).logits).abs().max() > 1e-3


@torch.no_grad()
@every_kind
@every_backend
def test_a_head_switched_to_its_mean_says_the_same_for_every_token(checkpoints, kind, backend):
    network = open_pretrained(checkpoints / kind).network
    ids, token_mask = batch("right")
    head_mean = torch.zeros(L, H, dtype=torch.bool)
    head_mean[0, 1] = head_mean[1, 3] = True

    def averaged(layer):  # by hand: those slices of the projection's input, over the real tokens of each text
        def hook(module, given):
            means = (given[0] * token_mask[..., None]).sum(1, keepdim=True) / token_mask.sum(1)[:, None, None]
            return (torch.where(head_mean[layer].repeat_interleave(D // H), means, given[0]),)

        return hook

    handles = [
        network.get_submodule(PROJECTIONS[kind].format(layer)).register_forward_pre_hook(averaged(layer)) for layer in range(L)
    ]
    by_hand = network(ids, token_mask, backend=backend).logits
    for handle in handles:
        handle.remove()
    ours = network(ids, token_mask, backend=backend, head_mean=head_mean).logits
    close(ours, by_hand)
    assert (ours - network(ids, token_mask, backend=backend).logits).abs().max() > 1e-3


@torch.no_grad()
@every_kind
def test_every_head_has_its_own_gain(checkpoints, kind):
    network = open_pretrained(checkpoints / kind).network
    ids, token_mask = batch()
    plain = network(ids, token_mask).logits
    answers = [plain, network(ids, token_mask, head_gain=torch.ones(L, H)).logits]
    close(*answers, atol=0)
    for head in range(L * H):
        gain = torch.ones(L * H)
        gain[head] = 0
        answers.append(network(ids, token_mask, head_gain=gain.view(L, H)).logits)
    distances = torch.cdist(torch.stack(answers[1:]).flatten(1), torch.stack(answers[1:]).flatten(1))
    assert (distances + torch.eye(len(distances)) > 1e-4).all()


@every_kind
@pytest.mark.parametrize("shape", [(L, 1), (H, L), (L, H + 1), (L + 1, H)], ids=str)
def test_gains_of_another_shape_are_refused(checkpoints, kind, shape):
    with pytest.raises(ValueError, match=r"head_gain: got .* expected .* \(2, 4\)"):
        open_pretrained(checkpoints / kind).network(*batch(), head_gain=torch.ones(shape))
    with pytest.raises(ValueError, match=r"head_mean: got .* expected .* \(2, 4\)"):
        open_pretrained(checkpoints / kind).network(*batch(), head_mean=torch.ones(shape, dtype=torch.bool))


@every_kind
def test_the_mask_of_heads_that_transformers_passes_over_is_refused(checkpoints, kind):
    with pytest.raises(ValueError, match="head_mask: .* head_gain"):
        open_pretrained(checkpoints / kind).network(*batch(), head_mask=torch.ones(L, H))


@pytest.mark.parametrize("kind", ["distilbert", "modernbert"])
def test_threads_that_share_a_network_get_what_each_asked_for(checkpoints, kind):
    network = open_pretrained(checkpoints / kind).network
    ids, token_mask = batch("right")
    generator = torch.Generator().manual_seed(2)
    asked = [dict(backend=name, head_gain=torch.rand(L, H, generator=generator)) for name in RUN * 3]
    asked += [dict(output_attentions=True, head_gain=torch.rand(L, H, generator=generator)) for _ in range(3)]

    @torch.no_grad()
    def answer(index):
        return network(ids, token_mask, **asked[index])

    alone = [answer(index) for index in range(len(asked))]
    order = [*range(len(asked))] * 20
    with ThreadPoolExecutor(6) as pool:
        for index, found in zip(order, pool.map(answer, order), strict=True):
            close(found.logits, alone[index].logits, atol=1e-6)
            assert (found.attentions is None) == (alone[index].attentions is None)
    assert all((alone[i].logits - alone[0].logits).abs().max() > 1e-3 for i in range(1, len(alone)))


# Opening


@every_kind
def test_a_folder_opens_ready_to_read(checkpoints, kind):
    opened = open_pretrained(checkpoints / kind)
    assert (opened.name, opened.kind, opened.folder) == (kind, kind, checkpoints / kind)
    assert opened.label_names == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert opened.max_len == 20  # RoBERTa's 21 begin after the padding's
    assert not any(module.training for module in opened.network.modules())
    assert not any(weights.requires_grad for weights in opened.network.parameters())
    assert {weights.dtype for weights in opened.network.parameters()} == {torch.float32}


@torch.no_grad()
@every_kind
def test_the_longest_text_can_be_read_and_no_longer_one(checkpoints, kind):
    opened = open_pretrained(checkpoints / kind)
    opened.network(torch.full((1, opened.max_len), 7))
    if kind != "modernbert":  # whose rotary places go on
        with pytest.raises((RuntimeError, IndexError)):
            opened.network(torch.full((1, opened.max_len + 1), 7))


@every_kind
def test_half_precision_weights_are_opened_in_float32(checkpoints, tmp_path, kind):
    shutil.copytree(checkpoints / kind, tmp_path / kind)
    original(checkpoints / kind).to(torch.bfloat16).save_pretrained(tmp_path / kind)
    assert open_pretrained(tmp_path / kind).network.dtype == torch.float32


def test_weights_in_several_files_are_opened(checkpoints, folder):
    known = original(folder)
    (folder / "model.safetensors").unlink()
    known.save_pretrained(folder, max_shard_size="10KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    close(open_pretrained(folder).network(batch()[0]).logits, known(batch()[0]).logits)


def test_what_config_json_asks_for_is_asked_for_call_by_call(folder):
    rewrite(folder, output_attentions=True, return_dict=False)
    output = open_pretrained(folder).network(batch()[0])
    assert output.logits.shape == (B, 3) and output.attentions is None


def test_tokens_are_those_that_transformers_feeds_it(checkpoints):
    opened = open_pretrained(checkpoints / "bert")
    text = "A dull film, unmoving! [SEP] good"
    ids = opened.tokenizer.encode(text, add_special_tokens=False).ids
    tokenizer = AutoTokenizer.from_pretrained(checkpoints / "bert", split_special_tokens=True)
    assert [*opened.cut.prefix, *ids, *opened.cut.suffix] == tokenizer(text)["input_ids"]
    assert opened.cut.room == 18 and VOCABULARY.index("[SEP]") not in ids


def test_a_missing_folder_is_not_asked_of_a_hub(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *given: pytest.fail("asked the network"))
    monkeypatch.chdir(tmp_path)
    for name in ("nowhere", "bert-base-uncased"):
        with pytest.raises(ValueError, match="there is no such folder"):
            open_pretrained(tmp_path / name)


def test_a_file_that_is_no_folder_is_refused(folder):
    with pytest.raises(ValueError, match="there is no such folder"):
        open_pretrained(folder / "config.json")


def test_weights_that_can_run_code_are_refused(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"other weights: pytorch_model.bin.*expected safetensors"):
        open_pretrained(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize(
    "content", [None, b"", b"\xff\xfe", b"[]", b"{}"], ids=["missing", "empty", "binary", "list", "object"]
)
def test_a_missing_or_damaged_file_is_named(folder, name, content):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name.split('.')[-1]}|the model cannot be opened"):
        open_pretrained(folder)


@pytest.mark.parametrize("changes", [
    dict(model_type="gpt2"), dict(model_type="attention-lab-encoder"), dict(model_type=["bert"]), dict(architectures=None),
    dict(architectures=["BertForTokenClassification"]), dict(architectures=["RobertaForSequenceClassification"]),
    dict(model_type="other", auto_map={"AutoConfig": "evil.Config"}),
], ids=str)  # fmt: skip
def test_another_kind_is_refused_by_a_list_of_those_that_open(folder, changes):
    rewrite(folder, **changes)
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(ValueError, match=", ".join(ARCHITECTURES.values())):
        open_pretrained(folder)


def test_a_config_that_asks_for_code_beside_the_weights_is_refused_and_none_is_run(folder):
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    rewrite(folder, auto_map={"AutoConfig": "evil.Config", "AutoModelForSequenceClassification": "evil.Model"})
    with pytest.raises(ValueError, match="asks for code of its own"):
        open_pretrained(folder)


@pytest.mark.parametrize("changes", [
    dict(num_hidden_layers="two"), dict(num_attention_heads=5), dict(hidden_size=None), dict(hidden_act="nothing"),
    dict(vocab_size=101), dict(num_hidden_layers=3), dict(quantization_config={"quant_method": "fp8"}),
    dict(pad_token_id=1000), dict(max_position_embeddings=2),
    dict(id2label={"0": "a", "1": "a", "2": "b"}), dict(id2label={"0": "a", "1": "c", "3": "b"}), dict(is_decoder=True),
    dict(problem_type="multi_label_classification"), dict(problem_type="regression"), dict(id2label=["a", "b", "c"]),
    dict(id2label={"0": "a"}), dict(dtype="nothing"), dict(attn_implementation="owner/kernel"), dict(hidden_act=3),
    dict(hidden_dropout_prob="much"),
], ids=str)  # fmt: skip
def test_a_config_that_does_not_fit_is_a_sentence(folder, changes):
    rewrite(folder, **changes)
    try:
        opened = open_pretrained(folder)
    except ValueError as error:
        assert str(error).startswith(f"{folder}: ")
    else:
        assert changes.keys() <= {"dtype", "attn_implementation", "hidden_dropout_prob"}
        close(opened.network(batch()[0]).logits, original(folder.parent / "bert")(batch()[0]).logits)


@pytest.mark.parametrize("one", [dict(num_labels=1), dict(num_labels=1, problem_type="regression")], ids=str)
def test_a_network_of_one_output_is_no_classifier(tmp_path, one):
    sizes = {knob: value for knob, value in SIZES.items() if knob != "num_labels"}
    AutoModelForSequenceClassification.from_config(BertConfig(**sizes, **one)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="1 outputs for .*regression.*expected classes"):
        open_pretrained(tmp_path)


def test_a_folder_without_a_head_is_refused_before_it_gets_a_random_one(folder):
    BertForMaskedLM(BertConfig(**SIZES)).save_pretrained(folder)
    rewrite(folder, architectures=["BertForSequenceClassification"])
    with pytest.raises(ValueError, match="the weights lack .* which would be random"):
        open_pretrained(folder)


@every_kind
def test_a_layer_of_the_weights_that_config_json_leaves_out_is_not_passed_over(checkpoints, tmp_path, kind):
    shorter = shutil.copytree(checkpoints / kind, tmp_path / kind)
    rewrite(shorter, **{CONFIGS[kind].attribute_map.get("num_hidden_layers", "num_hidden_layers"): 1})
    if kind == "modernbert":
        rewrite(shorter, layer_types=["full_attention"])
    with pytest.raises(ValueError, match=r"the weights hold .*layers?\.1\..* and more, which the network .* would pass over"):
        open_pretrained(shorter)


def test_positions_that_transformers_no_longer_knows_are_not_passed_over(folder):
    """BERT's relative ones: version 5 reads the file as if they were absolute."""
    rewrite(folder, position_embedding_type="relative_key")
    weights = load_file(folder / "model.safetensors")
    weights["bert.encoder.layer.0.attention.self.distance_embedding.weight"] = torch.ones(39, 6)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="the weights hold bert.encoder.layer.0.attention.self.distance_embedding.weight,"):
        open_pretrained(folder)


@torch.no_grad()
def test_a_head_for_another_task_beside_the_right_one_is_passed_over(folder):
    known = original(folder)(batch()[0]).logits
    weights = load_file(folder / "model.safetensors")
    save_file(weights | {"cls.predictions.bias": torch.ones(100)}, folder / "model.safetensors", metadata={"format": "pt"})
    close(open_pretrained(folder).network(batch()[0]).logits, known)


def test_a_head_for_every_token_is_not_taken_for_one_for_the_text(checkpoints, tmp_path):
    """Its weights have the same names."""
    shutil.copytree(checkpoints / "modernbert", tmp_path / "tagger")
    config = AutoConfig.from_pretrained(tmp_path / "tagger")
    ModernBertForTokenClassification(config).save_pretrained(tmp_path / "tagger")
    with pytest.raises(ValueError, match="ModernBertForTokenClassification"):
        open_pretrained(tmp_path / "tagger")


def test_weights_that_are_no_numbers_are_refused(folder):
    network = original(folder)
    network.classifier.bias.data[1] = float("nan")
    network.save_pretrained(folder)
    with pytest.raises(ValueError, match="not all finite"):
        open_pretrained(folder)


def test_a_tokeniser_of_another_model_is_refused(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens([AddedToken(f"word{i}") for i in range(100)])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(ValueError, match="ids that the network's 100 lack"):
        open_pretrained(folder)


@pytest.mark.parametrize("vocabulary, reason", [({"a": 0}, "puts no token before a text"), ({}, "cannot read an 'a'")], ids=str)
def test_a_tokeniser_that_serves_no_text_is_refused(folder, vocabulary, reason):
    Tokenizer(WordLevel(vocabulary, unk_token="?")).save(str(folder / "tokenizer.json"))
    with pytest.raises(ValueError, match=reason):
        open_pretrained(folder)


def test_a_network_without_a_place_for_the_text_is_refused(folder):
    AutoModelForSequenceClassification.from_config(BertConfig(**SIZES, max_position_embeddings=2)).save_pretrained(folder)
    with pytest.raises(ValueError, match="no place for a token of the text"):
        open_pretrained(folder)


def test_a_name_is_text_whatever_it_is(folder):
    rewrite(folder, id2label={"0": "<b>bad</b>", "1": "$x$", "2": "../good"})
    assert open_pretrained(folder).label_names == ("<b>bad</b>", "$x$", "../good")


# Reading

TEXT = "A dull film, unmoving! [SEP] good"


@torch.no_grad()
@every_kind
def test_a_text_is_read_as_transformers_reads_it(checkpoints, kind):
    reading = read(open_pretrained(checkpoints / kind), TEXT)
    tokenizer = AutoTokenizer.from_pretrained(checkpoints / kind, split_special_tokens=True)
    known = original(checkpoints / kind)(tokenizer(TEXT, return_tensors="pt")["input_ids"], output_attentions=True)
    close(torch.tensor(reading.prediction.logits), known.logits[0])
    (found,) = reading.windows
    close(torch.from_numpy(found.weights), torch.cat(known.attentions))
    assert found.tokens == tuple(tokenizer.convert_ids_to_tokens(tokenizer(TEXT)["input_ids"]))
    assert found.largest_row_error < 1e-6 and not reading.training_mode


def test_each_token_has_its_place_in_the_text_and_an_added_one_has_none(checkpoints):
    (found,) = read(open_pretrained(checkpoints / "bert"), TEXT).windows
    typed = [TEXT[start:end] for start, end in found.spans]
    assert typed == ["", "A", "dull", "film", ",", "un", "moving", "!", "[", "SEP", "]", "good", ""]
    assert (found.tokens[0], found.tokens[-1]) == ("[CLS]", "[SEP]")


def test_a_long_text_is_cut_or_read_in_windows_that_are_closed_alike(checkpoints):
    opened = open_pretrained(checkpoints / "distilbert")
    text = "good " * 40
    cut, whole = read(opened, text), read(opened, text, windows=True)
    assert (cut.prediction.tokens_read, cut.prediction.tokens_left_out) == (18, 22)
    assert [len(window.tokens) for window in (*cut.windows, *whole.windows)] == [20, 16, 15, 15]
    assert all((window.tokens[0], window.tokens[-1]) == ("[CLS]", "[SEP]") for window in whole.windows)
    assert whole.prediction.tokens_left_out == 0


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory):
    return foreign_models.write_byte_level(tmp_path_factory.mktemp("byte_level"))


@pytest.mark.parametrize("probe", [name for name, text in PROBES.items() if text.strip()])
@pytest.mark.parametrize("kind", BYTE_LEVEL)
def test_every_token_of_bytes_has_its_place_in_the_text(byte_level, kind, probe):
    """A token's bytes are those of its place; of a character of several tokens each has the whole of it."""
    opened, text = open_pretrained(byte_level / kind), PROBES[probe]
    encoded = encode(opened.tokenizer, text)
    for token, (start, end) in zip(encoded.tokens, encoded.spans, strict=True):
        spelled = opened.tokenizer.decoder.decode([token])
        assert start < end and ("\ufffd" in spelled or spelled.strip() == text[start:end].strip())
    covered = {place for span in encoded.spans for place in range(*span)}
    assert all(place in covered or text[place].isspace() for place in range(len(text)))


@torch.no_grad()
@pytest.mark.parametrize("kind", BYTE_LEVEL)
def test_bytes_are_read_as_transformers_reads_them_between_tokens_that_nobody_typed(byte_level, kind):
    text = "A dull film 🤗 </s>[SEP]"
    reading = read(open_pretrained(byte_level / kind), text)
    tokenizer = AutoTokenizer.from_pretrained(byte_level / kind, split_special_tokens=True)
    ids = tokenizer(text, truncation=True, max_length=20)["input_ids"]
    close(torch.tensor(reading.prediction.logits), original(byte_level / kind)(torch.tensor([ids])).logits[0])
    (found,) = reading.windows
    assert found.spans[0] == found.spans[-1] == (0, 0) and all(start < end for start, end in found.spans[1:-1])
    assert (found.tokens[0], found.tokens[-1]) == tuple(foreign_models.SPECIAL[kind][f"{end}_token"] for end in ("cls", "sep"))


@every_kind
def test_classes_that_nobody_has_named_are_called_as_they_are(checkpoints, kind):
    assert open_pretrained(checkpoints / kind).label_names == ("LABEL_0", "LABEL_1", "LABEL_2")
