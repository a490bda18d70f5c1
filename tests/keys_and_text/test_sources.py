"""What the sources must not do: unsafe YAML, pickles, shells, evaluated text."""

from __future__ import annotations

import ast
from pathlib import Path

import voicebench

ROOT = Path(voicebench.__file__).parent
FORBIDDEN = {"yaml.load", "yaml.unsafe_load", "yaml.full_load", "os.system", "os.popen", "eval", "exec"}
MODULES = {"pickle", "marshal", "shelve", "dill"}


def _calls(tree: ast.AST) -> list[tuple[str, ast.Call]]:
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_nothing_is_unpickled_evaluated_or_given_to_a_shell() -> None:
    """No source file loads YAML with tags, a pickle or code, and none starts a shell."""
    found, files = [], sorted(ROOT.rglob("*.py"))
    assert len(files) > 150
    for path in files:
        tree = ast.parse(path.read_text("utf-8"))
        for name, call in _calls(tree):
            shell = [
                word for word in call.keywords if word.arg == "shell" and ast.unparse(word.value) != "False"
            ]
            if name in FORBIDDEN or shell:
                found.append(f"{path.name}:{call.lineno} {name}")
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            found += [f"{path.name}: {name}" for name in names if name.split(".")[0] in MODULES]
    assert found == []
