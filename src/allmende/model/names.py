"""Names: what a given name may be, the label-safe internal name derived from it, and how a long one is shortened."""

import hashlib
import re
import unicodedata
from base64 import b32encode

from allmende.model.mistake import Mistake, MistakeCode

LONGEST = 253
"""Characters a given name may have: as many as a Kubernetes object's name."""
LABEL = 63
"""Characters an internal name may have: as many as a Kubernetes label's value."""

_SAFE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_HASHED = re.compile(r".*-[a-z2-7]{16}", re.DOTALL)  # ends like a name we made: kept for those alone
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # would reorder the rest of a line


def internal(name: str) -> str:
    """The label-safe name kept inside for a given name: itself if it can be, else cleaned, cut, hashed (case 137).

    At most 63 characters of [A-Za-z0-9._-]; two given names never share one (80 bits of BLAKE2 tell them apart).
    """
    if len(name) <= LABEL and _SAFE.fullmatch(name) and not _HASHED.fullmatch(name):
        return name
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=10).digest()
    mark = b32encode(digest).decode("ascii").lower()  # 16 characters
    plain = unicodedata.normalize("NFKD", name[:LONGEST]).encode("ascii", "ignore").decode("ascii")
    clean = re.sub(r"[^A-Za-z0-9._]+", "-", plain).lstrip("._-")[: LABEL - 1 - len(mark)].rstrip("._-")
    return f"{clean or 'n'}-{mark}"


def check(name: str, field: str) -> str:
    """The given name, unchanged, if it may be one: 1 to 253 characters of any script, none of them a control character.

    Raises Mistake: WRONG_KIND, EMPTY, TOO_LONG, CONTROL (also line separators, lone surrogates and reordering marks).
    """
    if not isinstance(name, str):
        do = "write the name as text, in quotes if it looks like a number"
        raise Mistake(MistakeCode.WRONG_KIND, name, field, do, "is no text")
    if not name.strip():
        raise Mistake(MistakeCode.EMPTY, name, field, "give a name")
    if len(name) > LONGEST:
        wrong = f"has {len(name)} characters"
        raise Mistake(MistakeCode.TOO_LONG, name, field, f"use at most {LONGEST} characters", wrong)
    if any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} or c in _BIDI for c in name):
        raise Mistake(MistakeCode.CONTROL, name, field, "leave out tabs, line ends and other invisible marks")
    return name


def shorten(name: str, width: int) -> str:
    """The name in at most width characters, cut in the middle with '…', as names of one series differ at their ends."""
    if len(name) <= width:
        return name
    tail = max(width - 1, 0) // 2
    head = max(width - 1 - tail, 0)
    return f"{name[:head]}…{name[len(name) - tail :]}" if width > 0 else ""
