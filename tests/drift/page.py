"""The page about new releases: one document, without scripts and references. Pure.

Nothing of it is trusted: text is escaped, and pictures are images of SVG, in which nothing runs.
"""

import base64
from collections.abc import Iterable, Sequence
from html import escape

from tests.drift.compare import AtMark, Release, Reported, could_not, differs

__all__ = ["page"]

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """\
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:110rem;padding:0 1rem;color:#1b1b1f;background:#fff}
table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2rem .6rem;text-align:left}
code,pre{font-family:ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
.pair{display:flex;gap:1rem;flex-wrap:wrap}figure{margin:.5rem 0;flex:1 1 40rem;min-width:0}img{max-width:100%}
.NO,.differs{color:#b00020;font-weight:bold}"""
SHOWN_MAX = 20
"""Most marks of one program that are shown with pictures."""


def page(
    releases: Sequence[Release], reports: Sequence[Reported], not_tried: Sequence[tuple[str, str]], line: str
) -> str:
    """Returns the document. `not_tried`: programs, and files of reports, each with the reason; `line`: the verdict."""
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Drift</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><style>{_STYLE}</style></head><body>',
        f"<h1>Drift</h1><p>{escape(line)}</p>",
        *_table(releases),
        *(part for one in releases for part in _release(one)),
        *(part for one in reports for part in _report(one)),
    ]
    if not_tried:
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(why)}</td></tr>" for name, why in not_tried)
        parts.append(f"<h2>Not tried</h2><table>{rows}</table>")
    return "\n".join([*parts, "</body></html>", ""])


def _table(releases: Sequence[Release]) -> Iterable[str]:
    columns = list(dict.fromkeys(what for one in releases for what in one.cells))
    head = "".join(f"<th>{escape(each)}</th>" for each in ("program", "verified", "newest", *columns, "recordings", ""))
    yield f"<table><tr>{head}</tr>"
    for one in releases:
        cells = "".join(_cell(one.cells.get(what, "")) for what in columns)
        changed = sum(bool(mark.differences) for mark in one.marks)
        marks = f"{changed} of {len(one.marks)} marks differ" if one.marks else "none"
        end = "differs" if differs(one) else "could not be tried" if could_not(one) else "as verified"
        yield (
            f"<tr><td>{escape(one.name)}</td><td>{escape(one.verified)}</td><td>{escape(one.version or '?')}</td>"
            f'{cells}<td>{marks}</td><td class="{end.partition(" ")[0]}">{end}</td></tr>'
        )
    yield "</table>"


def _cell(cell: str) -> str:
    return f'<td class="{escape(cell)}">{escape(cell)}</td>'


def _release(one: Release) -> Iterable[str]:
    yield f"<h2>{escape(f'{one.name} {one.version or one.verified}')}</h2>"
    if one.reason is not None:
        yield f"<p>It could not be tried: <code>{escape(one.reason)}</code></p>"
    if one.told:
        yield f"<p><code>start</code> says: {escape(one.told)}</p>"
    for fault in one.faults:
        yield f"<pre>{escape(fault)}</pre>"
    if one.before:
        cells = ", ".join(f"{what} {cell}" for what, cell in one.before.items())
        yield f"<p>The same row on the verified {escape(one.verified)}: {escape(cells)}</p>"
    if one.failed_at is not None:
        yield from _pair(one.failed_at, one.verified, one.version)
    if one.version is not None and not one.marks:
        yield "<p>It has no recordings: the row alone was tried.</p>"
    changed = [mark for mark in one.marks if mark.differences]
    for mark in changed[:SHOWN_MAX]:
        yield from _pair(mark, one.verified, one.version)
    if len(changed) > SHOWN_MAX:
        yield f"<p>{len(changed) - SHOWN_MAX} more marks differ: see the JSON document.</p>"
    if one.unmatched:
        rows = "".join(f"<li><code>{escape(each)}</code></li>" for each in one.unmatched)
        yield f"<p>Patterns of the profile that a recorded screen shows, and no new one:</p><ul>{rows}</ul>"
    if one.proposal is not None:
        yield f"<p>A profile written from its first screen:</p><pre>{escape(one.proposal)}</pre>"


def _pair(mark: AtMark, verified: str, version: str | None) -> Iterable[str]:
    yield f"<h3>{escape(mark.scenario)}, {escape(mark.mark)}</h3>"
    yield "".join(f"<p><code>{escape(each)}</code></p>" for each in mark.differences)
    shown = [_figure(f"recorded: {verified}", mark.recorded.svg)] if mark.recorded is not None else []
    shown += [_figure(f"now: {version}", mark.new.svg)] if mark.new is not None else []
    yield f'<div class="pair">{"".join(shown)}</div>'


def _report(one: Reported) -> Iterable[str]:
    yield f"<h2>Report {escape(one.file)}: {escape(one.profile)} {escape(one.version)}</h2>"
    wanted = one.should_be or "the report does not say which state would be right"
    rows = [("the person says", one.says), ("the daemon said", one.told), ("right is", wanted), ("reads", one.reads)]
    cells = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in rows if text)
    yield f"<table>{cells}</table>"
    yield "".join(f"<p class=differs><code>{escape(each)}</code></p>" for each in one.differences)
    shown = [_figure(f"recorded: {one.recorded[0]}", one.recorded[1].svg)] if one.recorded is not None else []
    shown += [_figure("reported", one.shown.svg)] if one.shown is not None else []
    yield f'<div class="pair">{"".join(shown)}</div>'
    yield f"<p>A test of it: <code>python -m tests.recordings.from_report {escape(one.file)}</code></p>"


def _figure(caption: str, svg: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return (
        f'<figure><figcaption>{escape(caption)}</figcaption><img alt="{escape(caption)}" '
        f'src="data:image/svg+xml;base64,{data}"></figure>'
    )
