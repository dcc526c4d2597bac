"""Tables that people upload, kept beside the runs, so that they outlive the page, the tab and the server."""

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath

from core.data import table
from core.runs import runs_root

SLUG_LENGTH = 60
_RECORD = "upload.json"


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A table that was uploaded."""

    id: str
    """The beginning of the SHA-256 of its format and content, in 16 hexadecimal digits."""
    name: str
    """As the person's file was called. Data: never a path, never markup."""
    path: Path
    created: datetime
    """When it came first, in UTC."""


def keep(name: str, content: bytes) -> Upload:
    """Stores a table once, whatever it is called when it comes again.

    What `table.read_upload` refuses, and a folder that cannot be written, is a ValueError.
    """
    table.read_upload(name, content)
    suffix = PurePath(name).suffix.lower()
    id = hashlib.sha256(suffix.encode() + content).hexdigest()[:16]
    try:
        if _read(_root() / id) is None:
            _write(_root() / id, name, suffix, content)
    except OSError as error:
        raise ValueError(f"{name}: the file cannot be kept in {_root()}: {error.strerror}") from error
    return find(id)


def all_uploads() -> list[Upload]:
    """Every upload, the newest first."""
    return sorted(_uploads(), key=lambda upload: (upload.created, upload.id), reverse=True)


def find(id: str) -> Upload:
    """One upload. ValueError if there is none of that id, whatever the id is made of."""
    for upload in _uploads():
        if upload.id == id:
            return upload
    raise ValueError(f"there is no upload {id!r} here; choose another table, or upload it again")


def _root() -> Path:
    return runs_root() / ".uploads"


def _uploads() -> Iterator[Upload]:
    return (upload for folder in _root().glob("[0-9a-f]*") if (upload := _read(folder)) is not None)


def _read(folder: Path) -> Upload | None:
    """None for a folder that does not hold a table and its record."""
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        name = str(record["name"]).encode("utf-8", "replace").decode()  # JSON can hold half a character, which no page can show
        created = datetime.fromisoformat(record["created"]).astimezone(UTC)
        (path,) = (file for file in folder.iterdir() if file.suffix in table.READERS)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return Upload(id=folder.name, name=name, path=path, created=created)


def _write(folder: Path, name: str, suffix: str, content: bytes) -> None:
    """Written beside and renamed, so that nobody ever meets half an upload."""
    _root().mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=".", dir=_root()))
    try:
        (beside / (_slug(PurePath(name).stem) + suffix)).write_bytes(content)
        record = {"name": name, "created": datetime.now(UTC).isoformat()}
        (beside / _RECORD).write_text(json.dumps(record), encoding="utf-8")
        if folder.exists() and _read(folder) is None:
            shutil.rmtree(folder)
        beside.rename(folder)
    except OSError:
        shutil.rmtree(beside)
        if _read(folder) is None:  # else another tab has just stored the same
            raise


def _slug(stem: str) -> str:
    return re.sub(r"\W+", "-", stem)[:SLUG_LENGTH].strip("-") or "table"
