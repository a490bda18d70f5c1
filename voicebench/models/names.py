"""Names that people and files give: when one is a plain name, when it means a path, how it is shown."""

from __future__ import annotations

import re

# Word characters of any script (Piper has voices such as pt_PT-tugão-medium), dots, plus signs and hyphens.
_PLAIN = re.compile(r"\w[\w.+-]*")
_HUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*")
_MODEL_FILE_ENDINGS = (".onnx", ".gguf")


def is_plain_name(name: str) -> bool:
    """True where `name` can only be one component of a path: no separator, no `..`, no control character."""
    return bool(_PLAIN.fullmatch(name)) and ".." not in name and not name.endswith(".") and len(name) <= 200


def is_hub_name(name: str) -> bool:
    """True for `owner/name`, as models are called on a hub: two plain parts, neither of them a path's."""
    owner, _, model = name.partition("/")
    parts = is_plain_name(owner) and is_plain_name(model)
    return bool(_HUB.fullmatch(name)) and parts and not model.lower().endswith((*_MODEL_FILE_ENDINGS, ".bin"))


def looks_like_path(name: str) -> bool:
    """True where a person plainly means a path: a separator, a home or dot folder, or such an ending."""
    return (
        "/" in name
        or "\\" in name
        or name in (".", "..")
        or name.startswith("~")
        or name.lower().endswith(_MODEL_FILE_ENDINGS)
    )


def printable(text: str) -> str:
    """`text` with every control, escape or unpaired surrogate character shown as its code."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
