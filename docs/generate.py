"""Writes the generated files: `docs/openapi.json` and the JSON Schemas in `configs/schema/`.

With `--check` nothing is written; the exit status says whether they are up to date.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from guardrail_service.inference.pack import Manifest
from guardrail_service.policy.file import GuardrailFile
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


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether they are current")
    check = parser.parse_args().check
    stale = []
    for name, content in generated().items():
        path = ROOT / name
        if path.exists() and path.read_text("utf-8") == text_of(content):
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text_of(content), "utf-8")
    for name in stale:
        sys.stdout.write(f"{'stale' if check else 'wrote'} {name}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
