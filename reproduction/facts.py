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
PACKAGES = ("tensorflow", "keras", "numpy")
SECONDS = 10  # that git may take


def facts() -> dict[str, str]:
    """Machine, versions, git commit and date.

    It asks neither TensorFlow nor a device, so that a parent may call it whose children
    train. The commit is "unknown" outside of a checkout.
    """
    now = datetime.now(UTC)
    return {
        "machine": machine(),
        "versions": versions(),
        "commit": commit(),
        "date": f"{now:%Y-%m-%d %H:%M} UTC",
    }


def machine() -> str:
    """Processor, cores that this process may use, memory, and GPUs if there are."""
    parts = [f"{_processor()}, {num_usable()} cores"]
    if memory := _field(MEMORY, "MemTotal"):
        parts.append(f"{int(memory.split()[0]) / 2**20:.0f} GiB of memory")
    if gpus := _gpus():
        parts.append("GPU " + ", ".join(gpus))
    return ", ".join(parts)


def versions() -> str:
    """Of Python and of what computes."""
    found = [f"python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            found.append(f"{package} missing")
    return ", ".join(found)


def commit(root: Path = ROOT) -> str:
    """The commit of the checkout, and whether its files were changed since."""
    # The code may lie, untracked, in a folder of another repository.
    if _git(root, "ls-files", "--error-unmatch", "reproduction/__init__.py") is None:
        return "unknown"
    head = _git(root, "rev-parse", "HEAD")
    if not head:
        return "unknown"
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head} with changes" if changed else head


def _git(root, *arguments):
    """What git prints; None if it fails or is missing."""
    try:
        called = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return called.stdout.strip()


def _processor():
    name = _field(CPUS, "model name") or platform.processor() or platform.machine()
    return " ".join(name.split())


def _gpus():
    try:
        found = [_field(path, "Model") for path in GPUS.glob("*/information")]
    except OSError:
        return []
    return sorted(filter(None, found))


def _field(path, name):
    """What the first line "name: ..." of a file says; None if there is none."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == name and value.strip():
            return value.strip()
    return None
