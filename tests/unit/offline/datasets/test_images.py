"""Images are checked before they are sent: type, size and place; nothing is fetched."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from guardrail_offline.datasets.images import (
    MOST_BYTES,
    has_images,
    image_part,
    load_image,
    read_image,
    split_content,
)
from guardrail_offline.datasets.labs import beside, open_lab
from guardrail_service.errors import ConfigurationError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
JPEG = b"\xff\xd8\xff\xe0" + bytes(8)
WEBP = b"RIFF\x00\x00\x00\x00WEBP"


def uri(data: bytes, type_: str = "image/png") -> str:
    """Return bytes as a data URI."""
    return f"data:{type_};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize(
    ("name", "data", "type_"),
    [("a.png", PNG, "image/png"), ("b.txt", JPEG, "image/jpeg"), ("c/d.webp", WEBP, "image/webp")],
)
def test_a_file_becomes_a_data_uri_of_the_type_it_has(
    name: str, data: bytes, type_: str, tmp_path: Path
) -> None:
    """Whatever its ending says."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    found = read_image(name, tmp_path, "images")
    assert found == (type_, data, uri(data, type_))
    content = [{"type": "text", "text": "See?"}, image_part(found)]
    assert split_content(content) == ("See?", [found])
    assert has_images([{"role": "user", "content": content}])


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("../secret.png", "a file elsewhere"),
        ("/etc/hostname", "a file elsewhere"),
        ("link.png", "a file elsewhere"),
        ("none.png", "FileNotFoundError"),
        ("a\0b", "ValueError"),
        ("text.png", "bytes that are no image"),
        ("riff.webp", "bytes that are no image"),
        ("large.png", "at most"),
        ("pictures", "bytes that are no image"),
        ("data:image/png,abc", "another data URI"),
        ("data:image/svg+xml;base64,PHN2Zz4=", "another data URI"),
        ("data:image/png;base64,@@@@", "no base64"),
        (uri(JPEG), "bytes of another type"),
        ("data:image/png;base64," + "A" * (MOST_BYTES * 4 // 3 + 8), "a longer image"),
        ("file:///etc/passwd", "another address"),
        ("ftp://example.com/a.png", "another address"),
        ("https://me:pw@example.com/a.png", "another address"),
        ("http://127.0.0.1/a.png", "private network"),
        ("http://10.0.0.8/a.png", "private network"),
        ("http://169.254.169.254/latest/meta-data", "private network"),
        ("http://[::1]/a.png", "private network"),
        ("http://[fd00::1]/a.png", "private network"),
        ("http://[::ffff:10.0.0.1]/a.png", "private network"),
        ("http://2130706433/a.png", "private network"),
        ("http://0x7f.1/a.png", "private network"),
        ("http://127.1/a.png", "private network"),
        ("http://localhost/a.png", "private network"),
        ("http://wiki.internal./a.png", "private network"),
        ("http://printer/a.png", "private network"),
    ],
    ids=lambda value: value[:40].replace("\0", "NUL"),
)
def test_anything_else_is_refused(reference: str, message: str, tmp_path: Path) -> None:
    """Naming the case, and never the reference."""
    outside = tmp_path / "secret.png"
    outside.write_bytes(PNG)
    folder = tmp_path / "lab"
    (folder / "pictures").mkdir(parents=True)
    (folder / "link.png").symlink_to(outside)
    (folder / "text.png").write_text("no image")
    (folder / "riff.webp").write_bytes(b"RIFF\x00\x00\x00\x00WAVE")
    (folder / "large.png").write_bytes(PNG + bytes(MOST_BYTES))
    with pytest.raises(ConfigurationError, match=message) as found:
        read_image(reference, folder, "case 'k'")
    assert str(found.value).startswith("case 'k': ")
    assert reference not in str(found.value)


def test_a_public_address_is_passed_on() -> None:
    """Nobody asks there."""
    url = "https://images.example.com/a.png?size=2"
    found = read_image(url, None, "images")
    assert found.is_remote
    assert split_content([image_part(found)]) == ("", [found])


def test_a_lab_has_images_of_its_own_folder(tmp_path: Path) -> None:
    """Made absolute when it is read, and relative when it is written; JSON, lines or a table."""
    (tmp_path / "a.png").write_bytes(PNG)
    records = [{"input": "q", "actual_output": "a", "images": ["a.png", uri(PNG)]}]
    lines, tables = tmp_path / "lab.jsonl", tmp_path / "lab.csv"
    lines.write_text(json.dumps(records[0]))
    tables.write_text("input,images\nq,a.png\n")
    whole = tmp_path / "lab.json"
    whole.write_text(json.dumps(records))
    for path in (lines, tables, whole):
        (case,) = open_lab(path).cases()
        assert case.images[0] == str(tmp_path / "a.png")
        assert load_image(case.images[0], "images").data == PNG
        assert beside(case, path).images[0] == "a.png"
    lines.write_text(json.dumps({"input": "q", "images": ["../a.png"]}))
    with pytest.raises(ConfigurationError, match=r"lab\.jsonl: row 1: images: found a file els"):
        list(open_lab(lines).cases())
    with pytest.raises(ConfigurationError, match="relative path"):
        load_image("a.png", "images")


def test_pictures_in_messages_belong_to_their_question(tmp_path: Path) -> None:
    """As OpenAI's parts; a later turn still has them, and they are checked like any other."""
    url = "https://example.com/a.png"
    picture = {"type": "image_url", "image_url": {"url": url}}
    asked = [{"type": "text", "text": "What is it?"}, picture]
    said = [("user", asked), ("assistant", "A boat."), ("user", "Red?"), ("assistant", "Yes.")]
    messages = [{"role": role, "content": content} for role, content in said]
    path = tmp_path / "lab.jsonl"
    path.write_text(json.dumps({"messages": messages}))
    cases = list(open_lab(path).cases())
    assert [(case.question, case.images) for case in cases] == [
        ("What is it?", (url,)),
        ("Red?", (url,)),
    ]
    path.write_text(json.dumps({"messages": messages}).replace(url, "http://10.0.0.1/a.png"))
    with pytest.raises(ConfigurationError, match="private network"):
        list(open_lab(path).cases())
