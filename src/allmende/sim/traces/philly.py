"""The Philly trace (Microsoft, 2017) as a list of 82,247 jobs: submit, run time, GPUs and virtual cluster.

It has no owners, no placement, no states and no queueing delays; a virtual cluster is a project here.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache

from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.request import Ask
from allmende.model.units import SECOND
from allmende.model.workload import Role
from allmende.sim.traces.table import Job, Tally, find, read_rows, span, whole

UPSTREAM = "the repository petuum/adaptdl, branch osdi21-artifact, file simulator/traces/philly.csv"

_STEMS = ("philly_jobs_82k", "philly")
_ROWS = 82_247
_NEEDED = ("timestamp", "duration", "num_gpus", "cluster")
_MAYBE = ("gpu_time",)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
_START = datetime(1970, 1, 1)
_MOST_GPUS = 100_000  # of one job; a larger figure is a slip


def read_jobs(folder: str, per_node: int = 8) -> tuple[list[Job], Tally]:
    """The jobs in the order of their submits (then of the file), the first at 0. A job's id has its line in the file.

    A job of more GPUs than a node has (`per_node`) is pods of whole nodes, and one pod for the rest.
    Raises Mistake (see `table`).
    """
    path = find(folder, _STEMS, UPSTREAM)
    tally = Tally(str(path), _ROWS)
    jobs: list[Job] = []
    for where, (timestamp, duration, gpus, cluster, _) in read_rows(path, _NEEDED, tally, _MAYBE):
        try:
            job = Job(
                id=f"job-{where.rpartition(':')[2]:0>6}",
                project=cluster,
                user="",
                submit=_moment(timestamp),
                duration=span(duration, "duration"),
                roles=roles(whole(gpus, "num_gpus", _MOST_GPUS), per_node),
            )
        except Mistake as mistake:
            tally.refuse(mistake.at(where))
        else:
            jobs.append(job)
    tally.kept = len(jobs)
    tally.remarks.append("times have no zone: read as one clock without changes of summer time")
    tally.close()
    first = min(job.submit for job in jobs)
    jobs = [Job(j.id, j.project, j.user, j.submit - first, j.duration, j.roles) for j in jobs]
    return sorted(jobs, key=lambda job: job.submit), tally


def _moment(text: str) -> int:
    """Microseconds since 1970 of '2017-10-09 07:01:55', on the trace's own clock."""
    do = "write it like 2017-10-09 07:01:55"
    if not _TIME.fullmatch(text):
        raise Mistake(MistakeCode.UNREADABLE, text, "timestamp", do, "in timestamp is no moment")
    try:
        since = datetime.fromisoformat(text) - _START
    except ValueError as error:
        raise Mistake(MistakeCode.UNREADABLE, text, "timestamp", do, "in timestamp is no moment") from error
    return (since.days * 86_400 + since.seconds) * SECOND


@cache  # equal requests are one object: the trace has ten sizes
def roles(gpus: int, per_node: int) -> tuple[Role, ...]:
    """The pods of a job of so many GPUs: whole nodes, and one pod for the rest. Raises Mistake ZERO."""
    if gpus == 0:
        raise Mistake(MistakeCode.ZERO, "0", "num_gpus", "leave rows without GPUs out", "in num_gpus is zero")
    full, rest = divmod(gpus, per_node)
    if not full:
        return (Role("pod", 1, Ask(whole=rest)),)
    pods = (Role("pod", full, Ask(whole=per_node)),)
    return (*pods, Role("rest", 1, Ask(whole=rest))) if rest else pods
