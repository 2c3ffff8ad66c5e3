"""Writes the generated files: OpenAPI, the JSON Schemas in `configs/schema/`, parts of three pages.

The summaries at the top of `docs/quality.md` and `docs/performance.md` repeat, for readers in a
hurry, what is recorded in `configs/defaults/thresholds.json` and measured further down the page;
`docs/configuration.md` has the presets and their cost from the same file.
With `--check` nothing is written; the exit status says whether they are up to date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from guardrail_bench.output import markdown_table
from guardrail_service.inference.pack import Manifest
from guardrail_service.policy.file_schema import GuardrailFile
from guardrail_service.server.app import create_app
from guardrail_service.server.schemas import CheckReply, CheckRequest

ROOT = Path(__file__).resolve().parent.parent


def generated() -> dict[str, dict[str, Any]]:
    """Return every generated file by its path in the repository."""
    return {
        "docs/openapi.json": create_app().openapi(),
        "configs/schema/guardrail.schema.json": GuardrailFile.model_json_schema(),
        "configs/schema/check-request.schema.json": CheckRequest.model_json_schema(),
        "configs/schema/check-reply.schema.json": CheckReply.model_json_schema(
            mode="serialization"
        ),
        "configs/schema/pack-manifest.schema.json": Manifest.model_json_schema(),
    }


def text_of(content: dict[str, Any]) -> str:
    """Return a generated file as it is written."""
    return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


Share = dict[str, Any]
"""How many of how many were flagged, with a 95 % Wilson interval, as thresholds.json has it."""


def share_of(share: Share) -> str:
    """Return a share in words: counts, per cent, interval."""
    low, high = (f"{100 * end:.1f}" for end in share["interval95"])
    percent = f"{100 * share['share']:.1f}"
    return f"{share['flagged']} of {share['n']} ({percent} %, {low} to {high})"


def quality_in_short() -> str:
    """Return the tables of what the shipped thresholds catch and falsely flag."""
    shipped = json.loads((ROOT / "configs/defaults/thresholds.json").read_text("utf-8"))
    used = json.loads((ROOT / "configs/default.json").read_text("utf-8"))["policy"]["preset"]
    by_preset = [
        [
            f"`{name}`" + (", the default" if name == used else ""),
            *(share_of(preset["false_flag_by_set"][data]) for data in ("answers", "written")),
            *(share_of(preset["recall_by_set"][data]) for data in ("answers", "written")),
        ]
        for name, preset in shipped["presets"].items()
        if isinstance(preset, dict)
    ]
    by_metric = [
        [
            f"`{detector}`" + (f", `{metric}`" if len(metrics) > 1 else ""),
            f"{found['threshold']:g}",
            share_of(found["false_flag_held_out"]),
            "; ".join(
                f"{kind.replace('_', ' ')} {caught['flagged']} of {caught['n']}"
                for kind, caught in found["recall_held_out"].items()
            ),
        ]
        for detector, metrics in shipped["thresholds"].items()
        for metric, found in metrics.items()
    ]
    return "\n\n".join(
        [
            "The detectors with thresholds together stop these shares of answers (95 % intervals). "
            "*Labelled* "
            "answers were written and labelled for this project, *written* ones come from public "
            "sources: models or people wrote them against real documents "
            "([how this was measured](configuration.md#presets)).",
            markdown_table(
                [
                    "preset of the policy",
                    "good, labelled: stopped",
                    "good, written: stopped",
                    "bad, labelled: stopped",
                    "bad, written: stopped",
                ],
                by_preset,
            ),
            "Each detector alone, at the threshold that a policy without a preset takes, on the "
            "half of the labelled answers that did not choose it:",
            markdown_table(["detector", "threshold", "good: flagged", "bad: caught"], by_metric),
        ]
    )


SETS = {"answers": "labelled", "written": "written", "ordinary": "ordinary"}
"""The sets whose answers count alike, as thresholds.json and as the pages name them."""


def presets() -> str:
    """Return the tables of the presets: what they stop, and their thresholds."""
    shipped = json.loads((ROOT / "configs/defaults/thresholds.json").read_text("utf-8"))
    fitted = {name: found for name, found in shipped["presets"].items() if isinstance(found, dict)}
    of_good = [of for of in SETS if of in fitted["balanced"]["false_flag_by_set"]]
    of_bad = [of for of in SETS if of in fitted["balanced"]["recall_by_set"]]
    costs = [
        [
            f"`{name}`",
            f"{100 * found['false_flag']:.1f} %",
            *(share_of(found["false_flag_by_set"][of]) for of in of_good),
            *(share_of(found["recall_by_set"][of]) for of in of_bad),
        ]
        for name, found in fitted.items()
    ]
    cuts = [
        [f"`{detector}`", f"`{metric}`", *(f"{found['presets'][name]:g}" for name in fitted)]
        for detector, metrics in shipped["thresholds"].items()
        for metric, found in metrics.items()
        if "presets" in found
    ]
    joint = f"{100 * fitted['balanced']['false_flag']:.1f} %"
    shares = ", ".join(
        f"{metric.partition('.')[2]} {100 * share:.1f} %"
        for metric, share in fitted["balanced"]["false_flag_by_metric_fit"].items()
        if share >= 0.0005
    )
    safety = share_of(fitted["balanced"]["false_flag_by_set"]["safety"])
    return "\n\n".join(
        [
            markdown_table(
                [
                    "preset",
                    "good answers stopped, all sets equal",
                    *(f"good, {SETS[of]}: stopped" for of in of_good),
                    *(f"bad, {SETS[of]}: stopped" for of in of_bad),
                ],
                costs,
            ),
            f"Of the {joint} under `balanced`, by metric: {shares} (shares of good answers, on the "
            f"data that chose). Good safety answers, many of them polite answers on sensitive "
            f"topics, are flagged more often: {safety} under `balanced`.",
            markdown_table(["detector", "metric", *(f"`{name}`" for name in fitted)], cuts),
        ]
    )


def cells(line: str) -> list[str]:
    """Return the cells of a row of a Markdown table."""
    return [cell.strip() for cell in line.strip("|").split("|")]


LOAD = (
    r"^### ([^\n]+), (cold|warm) passages\n\nCapacity ([\d.]+) "
    r".*?^(\| load [^\n]*)\n.*?^(\| 1 caller [^\n]*)$"
)


def performance_in_short(page: str) -> str:
    """Return what a check costs, from the tables of the page itself."""
    found: dict[str, dict[str, list[str]]] = {}
    for answer, kind, capacity, heading, row in re.findall(LOAD, page, re.MULTILINE | re.DOTALL):
        named = dict(zip(cells(heading), cells(row), strict=True))
        p50, p95, _ = named["total ms"].split(" / ")
        found.setdefault(answer, {})[kind] = [f"{p50} / {p95}", capacity]
    lengths = dict(re.findall(r"^\| `\w+`, (.+?) \| (.+? \| .+?) \|$", page, re.MULTILINE))
    rows = [
        [answer, *lengths[answer[0].lower() + answer[1:]].split(" | "), *of["cold"], *of["warm"]]
        for answer, of in sorted(found.items(), key=lambda one: -float(one[1]["cold"][1]))
    ]
    peers = re.findall(r"^\| (cold|warm) \| (.+?) \| (\d+) \| \d+ \| \d+ \|", page, re.MULTILINE)
    pipelines = list(dict.fromkeys(name for _, name, _ in peers))
    took = {(kind, name): p50 for kind, name, p50 in peers}
    targets = re.findall(r"^\| (.+?) \|.*\| (met|\*\*missed\*\*) \|", page, re.MULTILINE)
    missed = sorted({name for name, verdict in targets if verdict != "met"})
    count = sum(verdict != "met" for _, verdict in targets)
    return "\n\n".join(
        [
            "Milliseconds of one check with every detector of the default policy, p50 / p95 by "
            "the service's clock with a single caller, and verdicts a second at capacity: one "
            "worker on one core, no GPU. Passages are *new* to the service, or *known* from "
            "earlier checks.",
            markdown_table(
                ["", "answer", "passages", "new: ms", "new: per s", "known: ms", "known: per s"],
                rows,
            ),
            "The same checks on two cores, beside the pipeline one would otherwise write "
            "(milliseconds, p50):",
            markdown_table(
                ["", "new", "known"],
                [[name, took["cold", name], took["warm", name]] for name in pipelines],
            ),
            f"{count} of {len(targets)} targets below are missed: {'; '.join(missed)}."
            if missed
            else f"All {len(targets)} targets below are met.",
        ]
    )


def with_part(page: str, name: str, text: str) -> str:
    """Return a page with another text between the marks of a part."""
    before, _, rest = page.partition(f"<!-- {name} -->\n")
    _, _, after = rest.partition(f"<!-- /{name} -->")
    return f"{before}<!-- {name} -->\n{text}\n<!-- /{name} -->{after}"


def texts() -> dict[str, str]:
    """Return the text of every file that is generated, whole or in part, by its path."""
    quality, performance, configuration = (
        (ROOT / "docs" / name).read_text("utf-8")
        for name in ("quality.md", "performance.md", "configuration.md")
    )
    return {
        **{name: text_of(content) for name, content in generated().items()},
        "docs/quality.md": with_part(quality, "in short", quality_in_short()),
        "docs/performance.md": with_part(
            performance, "in short", performance_in_short(performance)
        ),
        "docs/configuration.md": with_part(configuration, "presets", presets()),
    }


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether they are current")
    check = parser.parse_args().check
    stale = []
    for name, text in texts().items():
        path = ROOT / name
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    for name in stale:
        sys.stdout.write(f"{'stale' if check else 'wrote'} {name}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
