"""
A container engine, and the image that functions run in.

An engine that runs already is used. Otherwise `dockerd` is started with folders and a socket of its own and
without touching the firewall, and ended after the tests. AWS's image is used where it is present or can be
pulled; where it cannot, an image is built from this machine's Python and says so in its name.
"""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import socket
import struct
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real.programs import MACHINE, Python, stop

SIOCGIFADDR = 0x8915
RUNTIME_LOCK = Path(__file__).with_name("runtime.lock")
_PLATFORM = {"x86_64": "linux/amd64", "arm64": "linux/arm64"}[MACHINE]
_SHELL = ("sh", "mv", "cp", "chmod", "rm")  # what sam's own Dockerfile runs
_LEFT_OUT = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "site-packages", "__pycache__")
_BOOTSTRAP = """#!/bin/sh
export PYTHONPATH=/opt/python:/var/runtime
export AWS_EXECUTION_ENV=AWS_Lambda_{runtime}
cd /var/task
exec {python} -m awslambdaric "$_HANDLER"
"""


@dataclass(frozen=True)
class Engine:
    """A container engine: what its clients need in their environment, and where containers find the host."""

    environment: dict[str, str]

    def docker(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run the docker program to its end, however it ends."""
        return subprocess.run(
            ["docker", *arguments],
            env={**os.environ, **self.environment},
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def host_address(self) -> str:
        """
        The bridge's address on this machine, which the interface knows.

        An engine that has just made its bridge does not tell it as the network's gateway before a restart.
        """
        form = '{{index .Options "com.docker.network.bridge.name"}}'
        answer = self.docker("network", "inspect", "bridge", "--format", form)
        assert answer.stdout.strip(), answer.stderr
        return address_of(answer.stdout.strip())


def address_of(interface: str) -> str:
    """The IPv4 address of a network interface of this machine (Linux)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        request = struct.pack("256s", interface.encode()[:15])
        return socket.inet_ntoa(fcntl.ioctl(asking, SIOCGIFADDR, request)[20:24])


@dataclass(frozen=True)
class Image:
    """The image that functions run in. A stand-in has a name of its own; AWS's is found by sam itself."""

    stand_in: str | None

    @property
    def options(self) -> list[str]:
        """What `sam local` needs to be told."""
        return ["--skip-pull-image", *(["--invoke-image", self.stand_in] if self.stand_in else [])]

    @property
    def words(self) -> str:
        """For the summary."""
        return "a STAND-IN image of this machine's Python, not AWS's" if self.stand_in else "AWS's image"


@contextmanager
def running_engine() -> Iterator[Engine]:
    """The engine that runs on this machine, or one of our own for as long as the block lasts."""
    if not shutil.which("docker"):
        pytest.fail("There is no docker program. Install docker.io.", pytrace=False)
    present = Engine({})
    if present.docker("version").returncode == 0:
        yield present
        return
    if not shutil.which("dockerd") or os.geteuid() != 0:
        pytest.fail("No container engine runs, and only root can start dockerd (docker.io).", pytrace=False)
    with tempfile.TemporaryDirectory(prefix="steponce-docker-") as folder, _daemon(Path(folder)) as engine:
        yield engine


@contextmanager
def _daemon(folder: Path) -> Iterator[Engine]:
    socket = f"unix://{folder}/docker.sock"
    command = ["dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"]
    command += ["--host", socket, "--pidfile", f"{folder}/pid"]
    command += ["--iptables=false", "--ip6tables=false", "--ip-masq=false"]
    engine = Engine({"DOCKER_HOST": socket})
    log = folder / "log"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        end = time.monotonic() + 60
        while engine.docker("version").returncode:
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"dockerd does not start:\n{log.read_text()[-3000:]}", pytrace=False)
            time.sleep(0.2)
        yield engine
    finally:
        stop(process)


def image_for(engine: Engine, python: Python) -> Image:
    """AWS's image of this runtime if it can be had, else one made here."""
    real = f"public.ecr.aws/lambda/python:{python.version}-{MACHINE}"
    if engine.docker("image", "inspect", real).returncode == 0:
        return Image(None)
    try:
        if engine.docker("pull", "--quiet", "--platform", _PLATFORM, real, timeout=180).returncode == 0:
            return Image(None)
    except subprocess.TimeoutExpired:
        pass
    return Image(_build_stand_in(engine, python))


def _build_stand_in(engine: Engine, python: Python) -> str:
    name = f"steponce/stand-in-for-lambda-python:{python.version}"
    with tempfile.TemporaryDirectory(prefix="steponce-image-") as folder:
        archive = Path(folder) / "image.tar"
        with tarfile.open(archive, "w") as tar:
            executable = _add_python(tar, python)
            _add_runtime(tar, python, Path(folder) / "runtime")
            text = _BOOTSTRAP.format(python=executable, runtime=python.runtime)
            for path in ("/var/runtime/bootstrap", "/lambda-entrypoint.sh"):
                _add_script(tar, path, text)
            for program in _SHELL:
                _add_program(tar, f"/bin/{program}", Path(shutil.which(program) or program))
        changes = ["WORKDIR /var/task", 'ENTRYPOINT ["/lambda-entrypoint.sh"]', "ENV PATH=/bin LANG=C.UTF-8"]
        options = [word for change in changes for word in ("--change", change)]
        made = engine.docker("import", "--platform", _PLATFORM, *options, str(archive), name)
    if made.returncode:
        pytest.fail(f"The stand-in image cannot be made:\n{made.stderr}", pytrace=False)
    return name


def _add_python(tar: tarfile.TarFile, python: Python) -> str:
    """The interpreter, its library, and the shared libraries that both need."""
    code = "import sys, sysconfig; print(sys._base_executable); print(sysconfig.get_path('stdlib'))"
    lines = subprocess.check_output([python.path, "-c", code], text=True).splitlines()
    executable, library = Path(lines[0]), Path(lines[1])
    _add_program(tar, str(executable), executable)
    tar.add(library, filter=_kept)
    for extension in (library / "lib-dynload").glob("*.so"):
        _add_libraries(tar, extension)
    return str(executable)


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if Path(member.name).name in _LEFT_OUT else member


def _add_runtime(tar: tarfile.TarFile, python: Python, folder: Path) -> None:
    """AWS's runtime interface client, from its lock file."""
    command = [python.path, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", "-r", RUNTIME_LOCK, "--target", folder]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.fail(f"The runtime interface client cannot be installed:\n{ran.stderr}", pytrace=False)
    tar.add(folder, "/var/runtime")
    for extension in folder.rglob("*.so"):
        _add_libraries(tar, extension)


def _add_program(tar: tarfile.TarFile, name: str, program: Path) -> None:
    tar.add(program.resolve(), name)
    _add_libraries(tar, program)


def _add_libraries(tar: tarfile.TarFile, program: Path) -> None:
    """The loader and the libraries, under the very names by which they are looked for."""
    present = set(tar.getnames())
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for word in listed.split():
        if word.startswith("/") and word.lstrip("/") not in present:
            present.add(word.lstrip("/"))
            tar.add(Path(word).resolve(), word)


def _add_script(tar: tarfile.TarFile, path: str, text: str) -> None:
    member = tarfile.TarInfo(path.lstrip("/"))
    member.size, member.mode = len(text.encode()), 0o755
    tar.addfile(member, io.BytesIO(text.encode()))
