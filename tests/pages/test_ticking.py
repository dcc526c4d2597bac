"""A part of a page that is drawn again before the browser has seen it for the first time, as on a busy machine."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from filelock import FileLock
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_cache import create_reference_msg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from core.events import Started
from tests.pages.test_running import made
from tests.pages.test_train import STARTED, step


@pytest.fixture
def messages() -> Iterator[list[ForwardMsg]]:
    """What pages say to a browser."""
    heard: list[ForwardMsg] = []
    ForwardMsgQueue.on_before_enqueue_msg(heard.append)
    yield heard
    ForwardMsgQueue.on_before_enqueue_msg(None)


def left(messages: Sequence[ForwardMsg], part: str) -> list[ForwardMsg]:
    """What Streamlit still sends when `part` is drawn again and nothing was sent; what it may keep, the browser knows."""
    queue = ForwardMsgQueue()
    for message in messages:
        queue.enqueue(create_reference_msg(message) if message.metadata.cacheable else message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[part])
    return queue.flush()


def astray(messages: Sequence[ForwardMsg]) -> list[list[int]]:
    """Places that a browser cannot find, and gives up: the next one in a block that is there, or one that is there."""
    children = {(root,): 0 for root in range(4)}
    wrong = []
    for message in messages:
        if message.HasField("delta") or message.HasField("ref_hash"):
            path = tuple(message.metadata.delta_path)
            if path[-1] > children.get(path[:-1], -1):
                wrong.append(list(path))
                continue
            children[path[:-1]] = max(children[path[:-1]], path[-1] + 1)
            if message.delta.WhichOneof("type") == "add_block":
                children[path] = 0
    return wrong


@pytest.mark.parametrize("name", ["train", "compare", "inspect"])
def test_all_else_keeps_its_place(first_page, messages, tmp_path, monkeypatch, name):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    steps = [replace(step(n), loss=1 / n, gradient_norm=1 / n) for n in range(1, 600)]
    run = made(tmp_path / "runs", "1", Started(device="cpu"), STARTED, *steps)
    with FileLock(run / "lock"):
        page = first_page.run()
        page.query_params["train_run"] = "1"
        messages.clear()
        page.switch_page(f"../pages/{name}.py").run()
    said = tuple(messages)
    assert not page.exception and not astray(said)
    parts = {message.auto_rerun.fragment_id for message in said if message.HasField("auto_rerun")}
    assert len(parts) == (1 if name == "inspect" else 2)
    for part in parts:
        assert len(left(said, part)) < len(said)
        assert not astray(left(said, part))
