"""Rules for the source tree; each is about one module, given as its path and text."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from steponce import environment
from steponce.cli.commands import steponce

from .documents import ROOT

PACKAGE = ROOT / "src" / "steponce"
COMMANDS = sorted(steponce.commands)

LAYERS = [
    {"next_step", "when_wanted"},
    {"errors"},
    {"workflow"},
    {"aws", "camelcase", "environment", "program"},
    {"failure"},
    {"locks"},
    {"executions", "fence", "limits", "results", "updates"},
    {"request"},
    {"recovery", "callbacks"},
    {"client", "operator"},
    {"guards", "limiter"},
    {"triggers", "http_api", "powertools"},
    {"monitoring", "report"},
    {"steponce"},  # the package's own __init__
    {"lint", "scaffold"},
    {"cost"},
    {"wrap"},
    {"local"},
    {"cli"},
    {"testing"},
]
"""Imports point from a later line to an earlier one, never the other way nor along it."""

LAYERS_OF_LOCAL = [
    {"errors", "session", "stack_time", "activity"},
    {"template", "http", "facts", "controls"},
    {"runtime", "servers", "deploy"},
    {"moto_patches"},
    {"delivery"},
    {"engine"},
    {"stack"},
    {"cleaning"},
    {"local"},  # its own __init__
]
"""The same for the packages inside of `local`."""

_COMMAND = re.compile(rf"\b(?:steponce (?:{'|'.join(COMMANDS)})|aws [a-z][a-z0-9-]* [a-z-]+)\b")

DO_NOTHING_NAMES = {"utils", "util", "helpers", "common", "misc"}


def rule_modules_have_subjects(path: Path, _text: str) -> list[str]:
    """A module named utils has none."""
    return [f"{path.stem} is no subject"] if path.stem in DO_NOTHING_NAMES else []


def rule_imports_point_down(path: Path, text: str) -> list[str]:
    """next_step <- errors <- workflow <- aws <- locks <- request <- recovery <- client <- local <- cli."""
    mine = part_of(path)
    if mine is None:
        return []
    if _level(mine) is None:
        return [f"{mine} has no place among the layers"]
    return _upward(mine, map(_steponce_part, imports(text)), LAYERS)


def rule_imports_point_down_within_local(path: Path, text: str) -> list[str]:
    """errors <- template <- runtime <- moto_patches <- delivery <- engine <- stack."""
    if part_of(path) != "local":
        return []
    mine = path.relative_to(PACKAGE / "local").with_suffix("").parts[0].replace("__init__", "local")
    if _level(mine, LAYERS_OF_LOCAL) is None:
        return [f"{mine} has no place among the layers of local"]
    return _upward(mine, map(_local_part, imports(text)), LAYERS_OF_LOCAL)


def rule_no_import_leads_back(path: Path, text: str) -> list[str]:
    """A layer may be a package, whose modules import one another; they too have an order."""
    if part_of(path) is None:
        return []
    seen: set[Path] = set()
    waiting = list(imported_files(text))
    while waiting:
        file = waiting.pop()
        if file == path:
            return [f"what {path.relative_to(PACKAGE)} imports leads back to it"]
        if file not in seen:
            seen.add(file)
            waiting += imported_by(file)
    return []


def rule_local_is_for_cli_only(path: Path, text: str) -> list[str]:
    """What serves a laptop never gets into a Lambda function by way of the package."""
    if part_of(path) in (None, "local", "cli", "testing"):
        return []
    return [f"{path.stem} imports {name}" for name in imports(text) if _steponce_part(name) == "local"]


def rule_errors_need_nothing(path: Path, text: str) -> list[str]:
    """The error tree is importable everywhere: the standard library, and the steps that errors carry."""
    if part_of(path) not in ("errors", "next_step"):
        return []
    names = {name for name in imports(text) if _steponce_part(name) != "next_step"}
    foreign = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    return [f"errors imports {name}" for name in foreign]


def rule_only_the_cli_writes_commands(path: Path, text: str) -> list[str]:
    """Everything else says what to do next as data (`NextStep`). Docstrings may name a command."""
    if part_of(path) == "cli":
        return []
    explained = {id(node.value) for node in nodes(text) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in nodes(text)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explained
    ]
    return [f"{path.name} writes {command!r}" for one in texts for command in _COMMAND.findall(one)]


def rule_texts_of_others_are_no_markup(path: Path, text: str) -> list[str]:
    """The commands print on a Screen, which reads no string as rich's markup."""
    if part_of(path) != "cli" or path.name == "output.py":
        return []
    consoles = {"rich.console.Console", "rich.get_console", "rich.print"} & set(imports(text))
    markup = {"Text.from_markup"} if "from_markup(" in text else set()
    return [f"{path.name} uses {name}" for name in sorted(consoles | markup)]


def rule_type_checkers_know_every_name(path: Path, text: str) -> list[str]:
    """A module's `__getattr__` that a type checker sees makes it take a misspelt import for a name."""
    names = {node.name for node in parsed(text).body if isinstance(node, ast.FunctionDef)}
    return [f"{path.name} answers for any name"] if "__getattr__" in names else []


def rule_functions_stand_alone(path: Path, text: str) -> list[str]:
    """A function imports steponce, but never its cli, local or scaffold, nor another function."""
    if path.parent.parent.name != "functions":
        return []
    neighbours = {"app", "functions", *(other.stem for other in path.parent.parent.iterdir())}
    complaints = []
    for name in imports(text):
        is_for_a_laptop = _steponce_part(name) in (
            "cli",
            "cost",
            "lint",
            "local",
            "scaffold",
            "testing",
            "wrap",
        )
        if is_for_a_laptop or name.partition(".")[0] in neighbours:
            complaints.append(f"{path.parent.name} imports {name}")
    return complaints


def rule_functions_are_thin(path: Path, _text: str) -> list[str]:
    """A function's folder holds its handler; everything else is in the package, where it has a place."""
    if path.parent.parent.name != "functions" or path.name == "app.py":
        return []
    return [f"{path.parent.name} has a module {path.name}"]


def rule_functions_read_their_settings_once(path: Path, text: str) -> list[str]:
    """While they are loaded, into one typed object: what is wrong there is said before anything is done."""
    if path.parent.parent.name != "functions" or path.name != "app.py":
        return []
    complaints = [f"{path.parent.name} reads {name} by itself" for name in _subscripts(text, "environ")]
    if "settings = environment.read(Settings, os.environ)" not in text:
        complaints.append(f"{path.parent.name} does not read its Settings")
    return complaints


def rule_functions_have_a_handler(path: Path, text: str) -> list[str]:
    """Its docstring says what the function is for, in the folder's only public handler."""
    if path.parent.parent.name != "functions" or path.name != "app.py":
        return []
    names = [node.name for node in parsed(text).body if isinstance(node, ast.FunctionDef)]
    return [] if "handler" in names else [f"{path.parent.name} has no handler"]


def rule_public_names_are_explained(path: Path, text: str) -> list[str]:
    """Every module, public class and public function has a docstring."""
    tree = parsed(text)
    public = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
    ]
    missing = [node.name for node in public if ast.get_docstring(node) is None]
    missing += ["the module"] * (ast.get_docstring(tree) is None and bool(tree.body))
    return [f"{path.name}: {name} has no docstring" for name in missing]


@cache
def parsed(text: str) -> ast.Module:
    """A module's tree, which every rule looks at."""
    return ast.parse(text)


@cache
def nodes(text: str) -> tuple[ast.AST, ...]:
    """All nodes of a module's tree."""
    return tuple(ast.walk(parsed(text)))


@cache
def imports(text: str) -> tuple[str, ...]:
    """The full name of everything that a module imports, wherever in it."""
    return tuple(_imports(nodes(text)))


@cache
def imported_files(text: str) -> frozenset[Path]:
    """The modules of the package whose names a module imports; of a package, its __init__."""
    return frozenset(file for module in imports_at_load(text) if (file := file_of(module)) is not None)


@cache
def imported_by(file: Path) -> frozenset[Path]:
    """The modules whose names a module of the package imports, as it is on the disk."""
    return imported_files(file.read_text())


@cache
def imports_at_load(text: str) -> tuple[str, ...]:
    """The full name of what a module imports while it is loaded: not what is for a type checker alone."""
    only_for_types = {
        id(inner)
        for node in nodes(text)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    return tuple(_imports(node for node in nodes(text) if id(node) not in only_for_types))


def _imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


@cache
def file_of(module: str) -> Path | None:
    """`steponce.local.stack.X` -> local/stack.py; None for what is not in the package."""
    first, *rest = module.split(".")
    if first != "steponce":
        return None
    for length in range(len(rest), 0, -1):
        path = PACKAGE.joinpath(*rest[:length])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.exists():
                return file
    return PACKAGE / "__init__.py"


def part_of(path: Path) -> str | None:
    """Which part of the package a file belongs to; None for a file outside of it."""
    if not path.is_relative_to(PACKAGE):
        return None
    first = path.relative_to(PACKAGE).with_suffix("").parts[0]
    return "steponce" if first == "__init__" else _family(first)


def environment_read_by(path: Path) -> set[str]:
    """The environment variables that a function reads, by its settings or through what it imports."""
    text = path.read_text()
    found = {name for name, _ in settings_of(text, "Settings")}
    for module in imports(text):
        file = file_of(module)
        if file is not None:
            found |= set(_subscripts(file.read_text(), "environ"))
    return found


def whole_numbers_read_by(path: Path) -> set[str]:
    """The variables that a function's settings take for whole numbers."""
    return {name for name, hint in settings_of(path.read_text(), "Settings") if hint == "int"}


def settings_of(text: str, kind: str) -> Iterator[tuple[str, str]]:
    """The variables of a settings class, with their types: one for each field, also in nested classes."""
    imported = {module.rpartition(".")[2]: file_of(module) for module in imports(text)}
    for node in _class_of(text, kind):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            nested = ast.unparse(node.annotation)
            file = imported.get(nested)
            if file is not None and _class_of(file.read_text(), nested):
                yield from settings_of(file.read_text(), nested)
            else:
                yield environment.name_of(node.target.id), nested


def _class_of(text: str, name: str) -> list[ast.stmt]:
    """The body of a module's class; empty if there is none of this name."""
    bodies = [
        node.body for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == name
    ]
    return bodies[0] if bodies else []


@cache
def _subscripts(text: str, mapping: str) -> tuple[str, ...]:
    """The constant keys that are read from a mapping of this name: `os.environ["X"]`, `settings.get("X")`."""
    return tuple(_keys_read(ast.parse(text), mapping))


def _keys_read(tree: ast.AST, mapping: str) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(
                value=ast.Name(id=name) | ast.Attribute(attr=name), slice=ast.Constant(value=str(key))
            ) if name == mapping:
                yield key
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr="get"),
                args=[ast.Constant(value=str(key)), *_],
            ) if name == mapping:
                yield key


def _steponce_part(module: str) -> str | None:
    """`steponce.local.stack.X` -> `local`; `steponce.Client` -> `steponce`; None for anything else."""
    first, _, rest = module.partition(".")
    if module.startswith("."):
        return "a module by a relative name"
    if first != "steponce":
        return None
    part = rest.partition(".")[0]
    is_module = (PACKAGE / f"{part}.py").exists() or (PACKAGE / part / "__init__.py").exists()
    return _family(part) if part and (is_module or _level(_family(part)) is not None) else "steponce"


def _family(name: str) -> str:
    return "cli" if name == "cli" or name.startswith("cli_") else name


def _local_part(module: str) -> str | None:
    """`steponce.local.engine.process.X` -> `engine`; `steponce.local.LocalStack` -> `local`."""
    if not f"{module}.".startswith("steponce.local."):
        return None
    part = module.removeprefix("steponce.local").removeprefix(".").partition(".")[0]
    return part if _level(part, LAYERS_OF_LOCAL) is not None else "local"


def _upward(mine: str, imported: Iterable[str | None], layers: list[set[str]]) -> list[str]:
    """What a part imports from its own layer or from above."""
    complaints = []
    for other in imported:
        if other is None or other == mine:
            continue
        level = _level(other, layers)
        if level is None or level >= _level(mine, layers):
            complaints.append(f"{mine} imports {other}")
    return complaints


def _level(part: str, layers: list[set[str]] = LAYERS) -> int | None:
    return next((level for level, parts in enumerate(layers) if part in parts), None)
