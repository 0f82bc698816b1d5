"""Where and with what something was run."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from common.processes import num_usable

ROOT = Path(__file__).resolve().parents[1]
CPUS, MEMORY = Path("/proc/cpuinfo"), Path("/proc/meminfo")
GPUS = Path("/proc/driver/nvidia/gpus")
PACKAGES = ("tensorflow", "jax", "keras", "numpy")
SECONDS = 10  # that git may take


def facts() -> dict[str, str]:
    """Machine, versions of what is installed, git commit and date.

    It asks neither TensorFlow nor a device, so that a parent may call it whose children
    train.
    """
    versions = [f"python {platform.python_version()}", *map(_version, PACKAGES)]
    return {
        "machine": machine(),
        "versions": ", ".join(filter(None, versions)),
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }


def machine() -> str:
    """Processor, cores that this process may use, memory, and GPUs if there are."""
    processor = _field(CPUS, "model name") or platform.processor() or platform.machine()
    parts = [f"{' '.join(processor.split())}, {num_usable()} cores"]
    if memory := _field(MEMORY, "MemTotal"):
        parts.append(f"{int(memory.split()[0]) / 2**20:.0f} GiB of memory")
    gpus = [_field(path, "Model") for path in GPUS.glob("*/information")]
    if gpus := sorted(filter(None, gpus)):
        parts.append("GPU " + ", ".join(gpus))
    return ", ".join(parts)


def _version(package):
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:  # as of tensorflow-cpu, or of no JAX
        return None


def commit(root: Path = ROOT) -> str:
    """The commit of the checkout, and whether its files were changed since.

    It is "unknown" outside of a checkout.
    """
    # The code may lie, untracked, in a folder of another repository.
    if _git(root, "ls-files", "--error-unmatch", "reproduction/__init__.py") is None:
        return "unknown"
    head = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head or 'unknown'}{' with changes' if head and changed else ''}"


def _git(root, *arguments):
    """What git prints; None if it fails or is missing."""
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    pipes = {"capture_output": True, "text": True, "errors": "replace"}
    try:
        called = subprocess.run(command, timeout=SECONDS, check=True, **pipes)
    except (OSError, subprocess.SubprocessError):
        return None
    return called.stdout.strip()


def _field(path, name):
    """What the first line "name: ..." of a file says; None if there is none."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    fields = (line.partition(":") for line in lines)
    values = (value.strip() for key, _, value in fields if key.strip() == name)
    return next(filter(None, values), None)
