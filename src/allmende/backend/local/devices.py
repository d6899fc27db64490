"""GPUs that are declared instead of found: '8xH100', '4xA100-40GB+2xT4'."""

import re

from allmende.model.cluster import Device, Node
from allmende.model.mistake import Mistake, MistakeCode

MOST = 4096
"""GPUs that one declaration may name."""

MEMORY = {
    "A10": 23_028,
    "A10G": 23_028,
    "A30": 24_576,
    "A40": 46_068,
    "A100": 81_920,
    "B200": 183_359,
    "GB200": 189_471,
    "GH200": 97_871,
    "H100": 81_559,
    "H200": 143_771,
    "L4": 23_034,
    "L40": 46_068,
    "L40S": 46_068,
    "P100": 16_384,
    "RTX3090": 24_576,
    "RTX4090": 24_564,
    "T4": 15_360,
    "V100": 32_768,
}
"""MiB of memory by model, as nvidia-smi shows them (largest variant); '-40GB' behind a name states another."""

_DO = "write a number and a model, such as 8xH100, A100 with its memory as 4xA100-40GB, several as 4xA100+2xT4"
_PART = re.compile(r"\s*([0-9]{1,12})\s*[xX*]\s*([A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)*)\s*")
_SIZED = re.compile(r"-([0-9]{1,6})G(?:i?B)?", re.IGNORECASE)


def virtual_nodes(text: str, field: str = "--virtual-gpus") -> tuple[Node, ...]:
    """One node for each part of the declaration, its devices with the memory of a well-known model (0 where unknown).

    A single node is called 'local', several 'local-1', 'local-2', ... Raises Mistake: EMPTY, UNREADABLE, ZERO, ABSURD.
    """
    if not text.strip():
        raise Mistake(MistakeCode.EMPTY, text, field, _DO)
    declared = [_part(part, text, field) for part in text.split("+")]
    if sum(count for count, _ in declared) > MOST:
        raise Mistake(MistakeCode.ABSURD, text, field, f"declare at most {MOST} GPUs", f"is more than {MOST} GPUs")
    names = ["local"] if len(declared) == 1 else [f"local-{n}" for n in range(1, len(declared) + 1)]
    nodes, first = [], 0
    for name, (count, model) in zip(names, declared, strict=True):
        memory = _memory(model)
        devices = tuple(Device(index, memory, uuid=f"virtual-{first + index}") for index in range(count))
        nodes.append(Node(name, devices, model))
        first += count
    return tuple(nodes)


def _part(part: str, text: str, field: str) -> tuple[int, str]:
    found = _PART.fullmatch(part)
    if found is None:
        what = text if part == text else part.strip()
        raise Mistake(MistakeCode.UNREADABLE if what else MistakeCode.EMPTY, what, field, _DO)
    count = int(found[1])
    if count == 0:
        raise Mistake(MistakeCode.ZERO, part.strip(), field, _DO, "declares no GPU")
    return count, found[2]


def _memory(model: str) -> int:
    """MiB of a model's memory: what its name states, else what is known of it, else 0."""
    sized = _SIZED.search(model)
    return int(sized[1]) * 1024 if sized else MEMORY.get(model.upper(), 0)
