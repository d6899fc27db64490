"""Rows of use as CSV, for finance and for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import tzinfo

from allmende.metering.window import Row, gpu_hours, local
from allmende.model.units import show_gpus

HEADER = ("workload", "gpus", "start", "end", "gpu_hours")


def use_csv(rows: Iterable[Row], zone: tzinfo) -> str:
    """One line per row after a header; names as given, moments in `zone` with their offset; to be kept as UTF-8.

    GPU-hours are rounded to six digits; sums are to be made of rows, not of this text.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for row in rows:
        moments = (local(row.start, zone).isoformat(), local(row.end, zone).isoformat())
        writer.writerow((row.name, show_gpus(row.units), *moments, f"{float(gpu_hours(row.amount)):.6f}"))
    return out.getvalue()
