"""
The part of an application that belongs to steponce: a nested stack with all but the workflow and its work.

Its template is made of the sample's, so that there is one to maintain. It knows the application's state
machine by its name alone; the application reads the tables and functions from its Outputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from steponce.scaffold import sources, workflow

FOLDER = "steponce-installation"
MANIFEST = "manifest.json"

ON_A_LAPTOP = ("cli", "cost", "lint", "local", "scaffold", "testing", "wrap")
"""The parts of the package that no function needs; src/Makefile names them too."""

_OF_THE_SAMPLE = "charge_card"
_SECTION = "  # -- "
_WORK = f"{_SECTION}The workflow and its work"
_USES = re.compile(
    r"(?:!Ref|!GetAtt|!Condition|Condition:) (\w+)|!If \[(\w+)|\$\{(\w+)|^ +- (\w+)$", re.MULTILINE
)
_STATE_MACHINE = "RunOnceStateMachine"
_NAME = ("${AWS::StackName}-run-once", "${StateMachineName}")
_NAME_ALONE = ('!Sub "${StateMachineName}"', "!Ref StateMachineName")
_ARN = '!Sub "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:${StateMachineName}"'
_PARAMETER = """\
  StateMachineName:
    Type: String
    AllowedPattern: "[A-Za-z0-9_-]{1,80}"
    Description: Name of the state machine that runs the requests, which is not in this template.
"""
_OUTPUTS = """\
  # What the application's template reads beside these:
  LocksTableArn: { Value: !GetAtt LocksTable.Arn }
  LimitsTableArn: { Condition: HasLimits, Value: !GetAtt LimitsTable.Arn }
  PrepareRequestFunctionArn: { Value: !GetAtt Requests.Outputs.PrepareRequestFunctionArn }
  CheckOwnerFunctionArn: { Value: !GetAtt CheckOwnerFunction.Arn }
  RecordAwaitingStepFunctionArn: { Value: !GetAtt RecordAwaitingStepFunction.Arn }
  SteponceLayer: { Value: !Ref SteponceLayer }
  ServiceName: { Value: !Ref AWS::StackName }
"""


@dataclass(frozen=True)
class Manifest:
    """
    What was written as the installation.

    Args:
        version: Of the package.
        callback: Whether its workflow, which is there to compare with, has a confirmation.
        files: The SHA-256 of each file by its path.
    """

    version: str
    callback: bool
    files: dict[str, str]


def files(*, callback: bool) -> dict[str, bytes]:
    """
    The files of the installation, its manifest too.

    Args:
        callback: Whether the workflow as shipped, which is there to compare with, has a confirmation.

    Returns:
        The content of each file by its path in the folder.
    """
    root = sources.root()
    found = {
        "README.md": (root / "application" / "INSTALLATION.md").read_bytes(),
        "template.yaml": template((root / "template.yaml").read_text(encoding="utf-8")).encode(),
        "monitoring.yaml": (root / "monitoring.yaml").read_bytes(),
        "requests.yaml": (root / "requests.yaml").read_bytes(),
        workflow.FILE: workflow.definition(callback=callback).encode(),
        "src/Makefile": (root / "src" / "Makefile").read_bytes(),
        "src/requirements.txt": (root / "src" / "requirements.txt").read_bytes(),
    }
    for path in _sources(root / "functions"):
        if path.parts[0] != _OF_THE_SAMPLE:
            found[f"functions/{path.as_posix()}"] = (root / "functions" / path).read_bytes()
    for path in _sources(sources.PACKAGE):
        if path.parts[0] not in ON_A_LAPTOP:
            found[f"src/steponce/{path.as_posix()}"] = (sources.PACKAGE / path).read_bytes()
    digests = {path: _digest(content) for path, content in sorted(found.items())}
    manifest = asdict(Manifest(sources.version(), callback, digests))
    return {**found, MANIFEST: (json.dumps(manifest, indent=2) + "\n").encode()}


def write(folder: Path, contents: dict[str, bytes]) -> None:
    """Write files into a folder that does not exist yet."""
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def read_manifest(folder: Path) -> Manifest:
    """
    The manifest of an installation.

    Raises:
        ValueError: it is not one.
    """
    found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    try:
        manifest = Manifest(**found)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not isinstance(manifest.files, dict) or not isinstance(manifest.callback, bool):
        raise ValueError("files or callback is not what it must be")
    return manifest


def edited(folder: Path, manifest: Manifest) -> list[str]:
    """The paths that are not as the manifest says: changed, deleted or added ones."""
    present = {path.as_posix(): _digest((folder / path).read_bytes()) for path in _sources(folder)}
    del present[MANIFEST]
    paths = present.keys() | manifest.files.keys()
    return sorted(path for path in paths if present.get(path) != manifest.files.get(path))


def template(sample: str) -> str:
    """The installation's template, made of the text of the sample's."""
    entries = _entries(sample)
    begin = next((index for index, entry in enumerate(entries) if entry.text.startswith(_WORK)), None)
    if begin is None:
        raise sources.SampleChanged("template.yaml", "its section of the workflow and its work")
    end = next(i for i, entry in enumerate(entries) if i > begin and entry.text.startswith(_SECTION))
    gone = {entry.name for entry in entries[begin:end]} - {_STATE_MACHINE}
    kept = [entry for entry in [*entries[:begin], *entries[end:]] if gone.isdisjoint(_used_in(entry.text))]
    text = "".join(entry.text for entry in _without_unused(kept))
    text = text.replace(f"!Ref {_STATE_MACHINE}", _ARN).replace(*_NAME).replace(*_NAME_ALONE)
    return text.replace("\nParameters:\n", f"\nParameters:\n{_PARAMETER}", 1) + _OUTPUTS


class _Entry(NamedTuple):
    """Some lines of a template: an entry of a section, with the empty lines after it; or another line."""

    section: str
    name: str
    text: str


def _entries(text: str) -> list[_Entry]:
    found: list[_Entry] = []
    section = ""
    for line in text.splitlines(keepends=True):
        name = line.strip().partition(":")[0]
        if not line.startswith((" ", "\n")):
            section = name
            found.append(_Entry(section, "", line))
        elif line.startswith("  ") and not line.startswith("   "):
            found.append(_Entry(section, name, line))
        else:
            found[-1] = found[-1]._replace(text=found[-1].text + line)
    return found


def _without_unused(entries: list[_Entry]) -> list[_Entry]:
    """Leave out the parameters and conditions of the workflow alone; a linter would complain."""
    used = {name for entry in entries for name in _used_in(entry.text)}
    kept = [
        one for one in entries if one.section not in ("Parameters", "Conditions") or one.name in used | {""}
    ]
    return kept if len(kept) == len(entries) else _without_unused(kept)


def _used_in(text: str) -> set[str]:
    """The parameters, conditions and resources that a text reads."""
    return {name for names in _USES.findall(text) for name in names if name}


def _sources(folder: Path) -> Iterator[Path]:
    """The files below a folder, without what Python has compiled."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder)


def with_unix_lines(content: bytes) -> bytes:
    """The content of a file as it was written, if version control has changed the ends of its lines."""
    return content.replace(b"\r\n", b"\n")


def _digest(content: bytes) -> str:
    return sha256(with_unix_lines(content)).hexdigest()
