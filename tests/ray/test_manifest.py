"""The manifest of the page about scaling is one that KubeRay reads, in the tried versions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from guardrail_service.commands.main import app

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def manifest() -> Any:
    """Return the page's RayJob."""
    page = (ROOT / "docs/scaling.md").read_text("utf-8")
    return yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])


def test_it_is_a_ray_job_of_the_version_that_is_tried(manifest: Any) -> None:
    """With what the CRD of KubeRay 1 requires: a head, named groups, templates with containers."""
    assert (manifest["apiVersion"], manifest["kind"]) == ("ray.io/v1", "RayJob")
    cluster = manifest["spec"]["rayClusterSpec"]
    assert f"ray=={cluster['rayVersion']}" in (ROOT / "requirements/ray.txt").read_text("utf-8")
    groups = cluster["workerGroupSpecs"]
    assert all(one["groupName"] and one["minReplicas"] <= one["maxReplicas"] for one in groups)
    for one in (cluster["headGroupSpec"], *groups):
        assert all(type(value) is str for value in one["rayStartParams"].values())
        (container,) = one["template"]["spec"]["containers"]
        assert container["name"]
        assert container["image"]


def test_its_command_has_options_that_exist(manifest: Any) -> None:
    """And is the one of the package."""
    words = shlex.split(manifest["spec"]["entrypoint"])
    assert words[:2] == ["guardrail", "evaluate"]
    text = CliRunner().invoke(app, ["evaluate", "--help"], env={"COLUMNS": "300"}).output
    assert all(word in text for word in words if word.startswith("-"))
