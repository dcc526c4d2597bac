"""Why a file cannot be written: what the system says, whoever passes it on, and the way out that fits it."""

import errno
import subprocess
import sys

import pytest

from core import disk
from tests.processes import ROOT

LIMITED = """
import resource, numpy
from safetensors import SafetensorError
from safetensors.numpy import save_file
from core import disk

resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
for write in (lambda: open("a", "wb", 0).write(bytes(2**20)) and open("a", "ab", 0).write(b"x"),
              lambda: save_file({"a": numpy.zeros(2**18)}, "b")):
    try:
        write()
    except (OSError, SafetensorError) as error:
        print(disk.reason(error), disk.way_out(error), sep="; ")
"""


def test_a_limit_on_the_size_of_files_is_not_taken_for_a_full_disk(tmp_path):
    done = subprocess.run([sys.executable, "-c", LIMITED], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True)
    said = done.stdout.decode().splitlines()
    assert said == ["File too large; let files grow larger: `ulimit -f` allows 1.0 MiB"] * 2, done.stderr.decode()


@pytest.mark.parametrize(("error", "number", "way_out"), [
    (OSError(errno.ENOSPC, "No space left on device"), errno.ENOSPC, "make room there"),
    (OSError("IOError: [Errno 28] Error writing bytes to file"), errno.ENOSPC, "make room there"),
    (ValueError("I/O error: Disk quota exceeded (os error 122)"), errno.EDQUOT, "make room there"),
    (PermissionError(errno.EACCES, "Permission denied"), errno.EACCES, "give the right to write there"),
    (OSError(errno.EIO, "Input/output error"), errno.EIO, "mend that first"),
    (ValueError("erroneous error 28"), None, "mend that first"),
])  # fmt: skip
def test_the_way_out_is_that_of_the_system_s_own_number(error, number, way_out):
    assert disk.number(error) == number and disk.way_out(error) == way_out


def test_what_cannot_be_written_is_a_sentence():
    with pytest.raises(ValueError, match=r"a cannot be kept \(Read-only file system\); give the right to write there"):
        with disk.writing("a cannot be kept"):
            raise OSError(errno.EROFS, "Read-only file system")
