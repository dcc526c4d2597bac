import json
from datetime import UTC, datetime

import pytest

from core import runs
from core.data import table, uploads
from core.data.uploads import all_uploads, find, keep

CSV = b"text,label\ngood,1\nbad,0\n"


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs" / ".uploads"


def files(root) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_what_is_kept_is_found_again_byte_for_byte(root):
    before = datetime.now(UTC)
    upload = keep("My reviews.CSV", CSV)
    assert find(upload.id) == upload and all_uploads() == [upload]
    assert (upload.name, upload.path.read_bytes()) == ("My reviews.CSV", CSV)
    assert before <= upload.created <= datetime.now(UTC)
    assert files(root) == [f"{upload.id}/My-reviews.csv", f"{upload.id}/upload.json"]


def test_the_id_is_of_format_and_content():
    """By hand: printf '.csvtext,label\\ngood,1\\nbad,0\\n' | sha256sum."""
    assert keep("a.csv", CSV).id == "69acbc0ed5d21a34"
    ids = {keep(name, content).id for name, content in [("b.csv", CSV), ("a.tsv", CSV), ("a.csv", CSV + b"fine,1\n")]}
    assert "69acbc0ed5d21a34" in ids and len(ids) == 3


def test_the_same_content_is_kept_once_under_its_first_name(root):
    first = keep("first.csv", CSV)
    assert keep("second.CSV", CSV) == first
    assert len(files(root)) == 2


def test_the_newest_comes_first(monkeypatch):
    names = ["b.csv", "c.csv", "a.csv"]
    for i, name in enumerate(names):
        keep(name, CSV + f"fine {i},1\n".encode())
    assert [upload.name for upload in all_uploads()] == names[::-1]


@pytest.mark.parametrize(
    "name",
    [
        "../../../escaped.csv",
        "/etc/passwd.csv",
        "..\\..\\windows.csv",
        "-rf.csv",
        "$(touch x).csv",
        "a\0b\nc.csv",
        "<b>x</b> *y* $z$.csv",
        "\ud800half.csv",
        "电影评论" * 40 + ".csv",
        "….csv",
    ],
)
def test_a_name_is_data_and_never_a_path(root, name):
    upload = keep(name, CSV)
    assert find(upload.id).name == name.replace("\ud800", "?")  # half a character cannot be shown
    assert upload.path.parent == root / upload.id
    slug = upload.path.stem
    assert len(slug) <= uploads.SLUG_LENGTH and slug.replace("-", "x").replace("_", "x").isalnum()
    assert files(root.parent.parent) == sorted(
        f"runs/.uploads/{upload.id}/{file}" for file in (upload.path.name, "upload.json")
    )


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("reviews.xlsx", b"PK\x03\x04", "ends in '.xlsx', expected .csv, .tsv"),
        ("reviews.csv", b"PK\x03\x04rest", "an Excel workbook"),
        ("reviews.csv", b"text,label\n", "a table without rows"),
        ("reviews.csv", b"", "the file is empty"),
        ("big.csv", b"x" * (table.MAX_UPLOAD_BYTES + 1), "got 20.0 MB by upload, expected at most 20 MB"),
    ],
)
def test_what_is_no_table_is_refused_and_not_kept(root, name, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        keep(name, content)
    assert all_uploads() == [] and not root.exists()


@pytest.mark.parametrize("id", ["", ".", "..", "../x", "0" * 16, "69acbc0ed5d21a3", "/", "\0"])
def test_an_id_that_nobody_gave_is_refused(id):
    keep("a.csv", CSV)
    with pytest.raises(ValueError, match="there is no upload"):
        find(id)


@pytest.mark.parametrize("spoilt", ["record", "table", "both"])
def test_a_damaged_upload_is_left_out_and_mended_by_another(root, spoilt):
    upload = keep("a.csv", CSV)
    if spoilt in ("record", "both"):
        (root / upload.id / "upload.json").write_text("{")
    if spoilt in ("table", "both"):
        upload.path.unlink()
    assert all_uploads() == []
    assert keep("a.csv", CSV).path.read_bytes() == CSV
    assert len(files(root)) == 2


@pytest.mark.parametrize(
    "record",
    [
        "[" * 100_000,
        "[]",
        '{"name": "a.csv"}',
        '{"name": "a.csv", "created": 5}',
        '{"name": "a.csv", "created": "0001-01-01T00:00:00+23:59"}',
        "\ud800",
    ],
    ids=["deep", "list", "no time", "a number for a time", "no such time", "no text"],
)
def test_a_record_of_another_form_is_left_out(root, record):
    upload = keep("a.csv", CSV)
    (root / upload.id / "upload.json").write_bytes(record.encode("utf-8", "surrogatepass"))
    assert all_uploads() == []


def test_a_record_without_a_time_zone_is_ordered_among_others(root):
    local, other = keep("a.csv", CSV), keep("b.csv", CSV + b"fine,1\n")
    (root / local.id / "upload.json").write_text('{"name": "a.csv", "created": "2026-01-02T03:04:05"}')
    assert [upload.name for upload in all_uploads()] == ["b.csv", "a.csv"]
    assert find(other.id) == other


def test_half_an_upload_is_nowhere(root, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(uploads.Path, "write_text", full)
    with pytest.raises(ValueError, match="a.csv: the file cannot be kept in .*: No space left on device"):
        keep("a.csv", CSV)
    assert list(root.iterdir()) == []


def test_two_tabs_may_keep_the_same_at_once(root, monkeypatch):
    written = uploads._write

    def twice(*what):
        written(*what)
        written(*what)  # both had found nothing there

    monkeypatch.setattr(uploads, "_write", twice)
    upload = keep("a.csv", CSV)
    assert all_uploads() == [upload]
    assert len(files(root)) == 2 and len(list(root.iterdir())) == 1


def test_an_upload_is_no_run(root):
    keep("a.csv", CSV)
    assert runs.all_runs() == []
    assert json.loads((root / all_uploads()[0].id / "upload.json").read_text())["name"] == "a.csv"
