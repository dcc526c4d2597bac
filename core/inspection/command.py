"""The verb `explain` of the command line."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import tyro

from core.catalog import EVIDENCE
from core.flags import Json, ModelFolder, Text


def explain(
    model: ModelFolder,
    text: Text,
    report: Annotated[Path | None, tyro.conf.arg(help="Write figures and numbers as one HTML file, too.")] = None,
    remove: Annotated[bool, tyro.conf.arg(help="Cut words out to test evidence, in place of a mask.")] = False,
    as_json: Json = False,
) -> None:
    """Which words an answer rests on, by several methods, and whether each is better than chance."""
    _refuse_to_write(report)
    from core.artifact import open_reader
    from core.inspection import report as reports
    from core.inspection.evidence import evidence
    from core.inspection.faithfulness import faithfulness
    from core.inspection.reading import read
    from core.inspection.summary import agreement, rests_on

    opened = open_reader(model)
    found = evidence(opened, text)
    curves = faithfulness(opened, found, remove=remove)
    if report is not None:
        command = ["python", "-m", "core", "explain", "--model", str(model), f"--text={text}", *["--remove"] * remove]
        html = reports.as_html(opened, read(opened, text), found, curves, shlex.join(command))
        report.write_text(html, encoding="utf-8")
    if as_json:
        print(json.dumps(reports.as_values(found, curves), ensure_ascii=False, allow_nan=False))
        return
    print("\n".join(filter(None, [rests_on(found), agreement(found)])))
    for name, one in found.found.items():
        print(f"{EVIDENCE[name].title}: {reports.said(found, curves, name)}")
        for i in (-one.values).argsort(kind="stable")[:5]:
            print(f"{one.values[i]:+10.4f}  {text[slice(*found.words[i].span)]!r}")


def _refuse_to_write(report: Path | None) -> None:
    """Before anything is computed. ValueError for a file that is there, or whose folder is not."""
    if report is not None and report.exists():
        raise ValueError(f"{report}: there is a file already; name another with --report")
    if report is not None and not report.parent.is_dir():
        raise ValueError(f"{report}: there is no folder {report.parent}; make it first, or name another with --report")
