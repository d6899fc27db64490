"""What a pod's annotations ask of a GPU: 'gpu-memory' and 'gpu-fraction', and names that only look like them."""

import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from allmende.model.mistake import Mistake, MistakeCode, quoted
from allmende.model.quantity import mib
from allmende.model.units import GPU, GpuCount, share

MEMORY = "gpu-memory"
FRACTION = "gpu-fraction"

_LIKE = {
    MEMORY: re.compile(r"gpu.*mem|vram"),
    FRACTION: re.compile(r"gpu.*(frac|share|percent|core)"),
    "limit nvidia.com/gpu of the container": re.compile(r"^gpus?(count|number|requests?|limits?)?$"),
}


class NoticeCode(StrEnum):
    """What an accepted request is warned about."""

    NOT_A_REQUEST = "not_a_request"


class Notice(msgspec.Struct, frozen=True):
    """One warning of an accepted input, as code and params; catalogues hold its text, str() is a plain English line."""

    code: NoticeCode
    params: dict[str, str]

    def __str__(self) -> str:
        name, instead = quoted(self.params["name"]), self.params["instead"]
        return f"{name} is not a request and reads as 0 GPUs; to ask for a GPU or a part of one use {instead}"


class GpuWish(msgspec.Struct, frozen=True):
    """What annotations ask for: a share of one GPU in units, or MiB of one GPU's memory; all 0 is nothing."""

    gpus: GpuCount = GpuCount(0, 0)
    mib: int = 0
    warnings: tuple[Notice, ...] = ()


def gpu_request(annotations: Mapping[str, str], largest_mib: int | None = None, field: str = "annotations") -> GpuWish:
    """The GPU that annotations ask for, with a warning for each name that looks like a request and is none (case 133).

    Raises Mistake: CONTRADICTION where both are given, and those of mib() (largest_mib is its bound) and share().
    """
    warnings = tuple(_notice(name) for name in sorted(annotations) if _like(name))
    memory, fraction = annotations.get(MEMORY), annotations.get(FRACTION)
    if memory is not None and fraction is not None:
        what = f"{MEMORY}: {memory}, {FRACTION}: {fraction}"
        raise Mistake(MistakeCode.CONTRADICTION, what, field, "keep one of the two", "asks for one GPU twice")
    if memory is not None:
        return GpuWish(mib=mib(memory, f"{field}.{MEMORY}", largest_mib), warnings=warnings)
    if fraction is not None:
        units = share(fraction, f"{field}.{FRACTION}")
        return GpuWish(gpus=GpuCount(*divmod(units, GPU)), warnings=warnings)
    return GpuWish(warnings=warnings)


def _like(name: str) -> str:
    """What a look-alike was probably meant to be, or ''."""
    if name in (MEMORY, FRACTION):
        return ""
    plain = re.sub(r"[^a-z]", "", name.rpartition("/")[2].casefold())
    return next((meant for meant, pattern in _LIKE.items() if pattern.search(plain)), "")


def _notice(name: str) -> Notice:
    return Notice(NoticeCode.NOT_A_REQUEST, {"name": name, "instead": _like(name)})
