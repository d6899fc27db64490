"""The Korean catalogue. After a name of unknown ending stand only particles that never change (의, 에서, 에, 까지)."""

import re

from allmende.model.decision import Cause
from allmende.model.reason import Code, Param, Waiting
from allmende.model.remedy import Change
from allmende.model.span import DAY, HOUR, MINUTE, SECOND
from allmende.model.units import show_gpus
from allmende.words.catalogue import Catalogue
from allmende.words.figure import clock, cpus, gpu_hours, memory, span
from allmende.words.params import Kind

_WORDS = {
    Kind.WHEN: {"after": "어떻게든", "afterok": "정상으로", "afternotok": "실패로"},
    Kind.STATE: {"not_ready": "준비되지 않음", "cordoned": "새 배치 중단됨", "its node is drained": "노드를 비웁니다"},
}
_TIME = {DAY: "일", HOUR: "시간", MINUTE: "분", SECOND: "초"}
_LOST = re.compile(r"(.*GPU [0-9, ]+) lost")  # as the engine names lost GPUs
_NOUN = {
    Kind.PODS: "파드",
    Kind.NODES: "노드",
    Kind.SLOTS: "공유 슬롯",
    Kind.POD_SLOTS: "파드 슬롯",
    Kind.GPUS: "GPU",
}


def figure(kind: Kind, value: Param) -> str:
    """A param as Korean writes it; a counted thing ends in '개', so that its particle is known."""
    if kind in _NOUN:
        return f"{_NOUN[kind]} {value}개"
    if isinstance(value, str):
        lost = _LOST.fullmatch(value) if kind is Kind.STATE else None
        if lost is not None:
            return f"{lost[1]} 고장"
        return _WORDS.get(kind, {}).get(value, value)
    match kind:
        case Kind.UNITS:
            return f"GPU {show_gpus(value)}개"
        case Kind.GPU_HOURS:
            return f"{gpu_hours(value)} GPU시간"
        case Kind.MIB:
            return f"{value} MiB"
        case Kind.CPUS:
            return f"CPU {cpus(value)}개"
        case Kind.BYTES:
            return memory(value)
        case Kind.SPAN:
            return f"{value // SECOND}초({span(value, _TIME)})"
        case Kind.CLOCK:
            return clock(value)
        case _:
            return str(value)


_REASONS = {
    Code.NOT_CONSIDERED: "마지막 스케줄링 이후에 제출되어 아직 검토되지 않았습니다.",
    Code.DEPENDENCY: "먼저 실행되어야 하는 작업({workload})의 종료를 기다립니다. 조건: {when} 끝날 것.",
    Code.DEPENDENCY_NEVER: "먼저 실행되어야 하는 작업({workload})의 종료 상태가 조건과 다릅니다. 조건: {when} 끝날 것.",
    Code.ARRAY_THROTTLE: "배열 {array}에서 동시에 실행할 수 있는 최대 개수인 {throttle}개가 이미 실행 중입니다.",
    Code.PROJECT_ON_HOLD: "프로젝트 {project}에서는 새 작업의 시작이 보류되어 있습니다.",
    Code.USER_RUNNING: (
        "프로젝트 {project}에서 사용자 {user}의 작업 {running}개가 실행 중이며, 사용자별 한도는 {limit}개입니다."
    ),
    Code.USER_UNITS: (
        "{asked}를 요청했으나, 프로젝트 {project}에서 사용자 {user}의 사용량은 {used}이고"
        " 사용자별 한도는 {limit}입니다."
    ),
    Code.CAP: (
        "{asked}를 함께 요청했으나, 프로젝트 {project}에서는 한도 {cap} 중 {used}를 사용하고 있어"
        " 남은 것은 {left}입니다."
    ),
    Code.CAP_NEVER: "{asked}를 함께 요청했으나, 프로젝트 {project}의 한도는 {cap}입니다.",
    Code.MEMORY_CAP: (
        "GPU 메모리 요청량은 {asked}이며, 프로젝트 {project}에서는 한도 {cap} 중 이미 {used}만큼 사용하고 있습니다."
    ),
    Code.MEMORY_CAP_NEVER: "GPU 메모리 요청량은 {asked}인데, 프로젝트 {project}의 한도는 {cap}입니다.",
    Code.DAILY_LIMIT: (
        "프로젝트 {project}에서는 하루 한도 {limit} 중 {spent}만큼 사용했습니다. 새로운 하루는 {until}에 시작됩니다."
    ),
    Code.NO_BORROWING: (
        "{asked}를 빌리지 않는 조건으로 요청했으나, 프로젝트 {project}에서는 보장량 {guarantee} 중"
        " {used}를 사용하고 있습니다."
    ),
    Code.MAINTENANCE: "노드 {node}의 점검이 {start}부터 {end}까지 이어지며, 그동안에는 아무것도 실행할 수 없습니다.",
    Code.TAINT: "사용할 수 있는 노드에 이 작업이 허용하지 않는 테인트 {taint} 표시가 있습니다(예: {node}).",
    Code.MODEL: "{model} 모델의 GPU를 가진 노드가 없습니다.",
    Code.LABELS: "요청한 레이블({labels})을 모두 가진 노드가 없습니다.",
    Code.NODES_CLOSED: "이 작업을 받을 수 있는 노드가 없습니다.",
    Code.GPU_NEVER: "파드 하나가 한 노드에서 {asked}를 요청했으나, 가장 큰 노드에 있는 것은 {most}입니다.",
    Code.TOTAL_NEVER: (
        "{asked}를 함께 요청했으나({pods}), 사용할 수 있는 노드 전체에 있는 것은 {total}이고"
        " 그런 파드를 {places}개까지만 배치할 수 있습니다."
    ),
    Code.GPU_MEMORY_NEVER: "파드 하나의 GPU 메모리 요청량은 {asked}인데, 가장 큰 GPU의 메모리는 {largest}입니다.",
    Code.GPU_MEMORY_UNKNOWN: (
        "노드 {node}의 GPU 메모리 크기가 보고되지 않아 알 수 없으므로, 메모리로 요청한 작업을 배치할 수 없습니다."
    ),
    Code.CPU_NEVER: "파드 하나가 한 노드에서 {asked}를 요청했으나, 가장 큰 노드에 있는 것은 {most}입니다.",
    Code.RAM_NEVER: "파드 하나의 메모리 요청량은 {asked}인데, 가장 큰 노드의 메모리는 {most}입니다.",
    Code.ONE_NODE: (
        "파드 하나가 한 노드에서 {asked}를 요청했으나, 한 노드에 남은 것은 최대 {most}이고"
        " 전체에 남은 것은 {free}입니다."
    ),
    Code.GPUS: "파드 하나가 {asked}를 요청했으나, 그 파드에 남은 것은 {free}입니다.",
    Code.SHARE: "파드 하나가 {asked}를 요청했으나, GPU 하나에 남은 것은 최대 {most}입니다.",
    Code.GPU_MEMORY: "파드 하나의 GPU 메모리 요청량은 {asked}인데, GPU 하나에 남은 메모리는 최대 {most}입니다.",
    Code.SLOTS: "파드 하나가 {asked}를 요청했으나, 얻을 수 있는 것은 {free}입니다.",
    Code.DISTINCT: "파드 하나가 서로 다른 {asked}의 슬롯을 요청했으나, 빈 슬롯이 있는 것은 {have}입니다.",
    Code.CPU: "파드 하나가 {asked}를 요청했으나, 필요한 GPU 옆에 남은 것은 최대 {most}입니다(노드 {node}).",
    Code.RAM: "파드 하나의 메모리 요청량은 {asked}인데, 한 노드에 남은 메모리는 최대 {most}입니다(노드 {node}).",
    Code.POD_SLOTS: "파드 하나에 {asked}가 필요하지만, 사용할 수 있는 노드에 남은 것은 {free}입니다.",
    Code.EXCLUSIVE: "노드 {node}의 단독 사용 때문에 배치할 수 없습니다.",
    Code.GANG: "{needed}를 모두 함께 배치해야 하지만, 지금 배치할 수 있는 것은 {placeable}입니다.",
    Code.DOMAIN: (
        "{needed}를 {level} 하나에 함께 배치해야 하지만, 자리가 가장 많은 {domain}에 들어갈 수 있는 것은"
        " {placeable}입니다."
    ),
    Code.SPREAD: "파드마다 서로 다른 {level}에 있어야 합니다. 필요한 수는 {needed}, 자리가 있는 수는 {have}입니다.",
    Code.EVICTING: "이 작업의 자리에서 퇴거 중인 파드가 떠나기를 기다립니다({pods}, 노드: {nodes}).",
    Code.LEAVING: "이 작업의 지난 시도에 속한 파드가 아직 종료되는 중입니다({pods}).",
    Code.AHEAD: "엄격한 순서의 대기열에서 같은 노드를 기다리는 작업이 앞에 있습니다: {workload}.",
    Code.RESERVED: "사용할 수 있는 자리가 먼저 온 작업에 예약되어 있습니다: {workload}.",
    Code.EVICTIONS_OFF: (
        "퇴거 기능이 꺼져 있어 다른 작업에서 자리를 되찾지 않습니다. 이 작업의 요청량은 {asked}이고,"
        " 프로젝트 {project}에서는 보장량 {guarantee} 중 {used}를 사용하고 있습니다."
    ),
    Code.BORROWING: (
        "프로젝트 {project}에서는 {used}를 사용하고 있어 이 작업까지 더하면 보장량 {guarantee}를 넘으므로,"
        " 실행 중인 작업을 퇴거시키지 않습니다."
    ),
    Code.NOTHING_TO_RECLAIM: (
        "프로젝트 {project}에서는 보장량 {guarantee} 중 {used}를 사용하고 있지만, 다른 프로젝트의 초과분을"
        " 모두 되찾아도 이 작업의 자리가 나지 않습니다."
    ),
    Code.GROWTH_CAP: (
        "실행 중이며 {missing}를 더 원하지만, 프로젝트 {project}에서는 한도 {cap} 중 {used}를 사용하고 있습니다."
    ),
    Code.GROWTH_ROOM: "실행 중이며 {missing}를 더 원하지만, 아직 자리가 없습니다.",
    Code.ALL_MODELS: "사용할 수 있는 GPU 모델 가운데 지금 이 작업을 받을 수 있는 것이 없습니다.",
}

_GIVEN = {
    (Code.CAP, ("model",)): (
        "{model} 모델의 {asked}를 함께 요청했으나, 프로젝트 {project}에서는 이 모델의 한도 {cap} 중"
        " {used}를 사용하고 있어 남은 것은 {left}입니다."
    ),
    (Code.CAP_NEVER, ("model",)): (
        "{model} 모델의 {asked}를 함께 요청했으나, 프로젝트 {project}에서 이 모델의 한도는 {cap}입니다."
    ),
    (Code.MAINTENANCE, ("limit", "limit_needed")): (
        "시간 제한이 {limit}인 작업인데, 노드 {node}의 점검이 그 전인 {start}에 시작됩니다."
        " 시간 제한을 {limit_needed} 이하로 정하면 지금 시작할 수 있습니다."
    ),
    (Code.MAINTENANCE, ("limit_needed",)): (
        "시간 제한이 없는 작업인데, 노드 {node}의 점검이 {start}에 시작됩니다."
        " 시간 제한을 {limit_needed} 이하로 정하면 지금 시작할 수 있습니다."
    ),
    (Code.NODES_CLOSED, ("node", "why")): (
        "사용할 수 있는 노드가 새 작업을 받지 않습니다({nodes}, 예: {node} - {why})."
    ),
    (Code.NODES_CLOSED, ("node",)): "사용할 수 있는 노드가 새 작업을 받지 않습니다({nodes}, 예: {node}).",
    (Code.EXCLUSIVE, ("by",)): "노드 {node}의 단독 사용 때문에 배치할 수 없습니다. 그 노드에서 실행 중인 작업: {by}.",
    (Code.POD_SLOTS, ("node",)): (
        "파드 하나에 {asked}가 필요하지만, 사용할 수 있는 노드에 남은 것은 {free}입니다(예: {node})."
    ),
}

_WAITING = {
    Waiting.HELPS: "기다리면 저절로 시작됩니다.",
    Waiting.NEEDS_CHANGE: "누군가 이 설정이나 요청을 바꿀 때까지 기다립니다.",
    Waiting.NEVER: "기다려도 소용이 없습니다. 이 요청 그대로는 결코 시작할 수 없습니다.",
}

_REMEDIES = {
    Change.FEWER_PODS: "파드 {asked}개 대신 {pods}만 요청하면 지금 시작할 수 있습니다.",
    Change.FEWER_GPUS: "파드마다 GPU {asked}개 대신 {gpus}만 요청하면 지금 시작할 수 있습니다.",
    Change.FEWER_CPUS: "파드마다 {asked} 대신 {cpus}만 요청하면 지금 시작할 수 있습니다.",
    Change.OTHER_MODEL: "GPU 모델로 {asked} 대신 {model} 모델을 요청하면 지금 시작할 수 있습니다.",
    Change.WIDER_LEVEL: "{asked} 하나에 모으지 않고 어디에나 나누어 배치해도 되면 지금 시작할 수 있습니다.",
    Change.SHORTER_LIMIT: "시간 제한을 {limit} 이하로 정하면 지금 시작할 수 있습니다.",
    Change.PREEMPTIBLE: (
        "프로젝트 {project}의 보장량 {guarantee}를 넘는, 선점될 수 있는 작업으로 요청하면 지금 시작할 수 있습니다."
    ),
}

_REMEDIES_GIVEN: dict[tuple[Change, tuple[str, ...]], str] = {
    (Change.WIDER_LEVEL, ("level",)): (
        "{asked} 하나에 모으지 않고 {level} 하나 안에 나누어 배치해도 되면 지금 시작할 수 있습니다."
    ),
    (Change.SHORTER_LIMIT, ("asked",)): "시간 제한을 {asked} 대신 {limit} 이하로 정하면 지금 시작할 수 있습니다.",
}

_CAUSES = {
    Cause.RECLAIM: "다른 프로젝트에서 보장량을 되찾습니다",
    Cause.PRIORITY: "같은 프로젝트의 우선순위가 더 높은 작업에 자리가 필요합니다",
    Cause.FAIR_SHARE: "공정한 몫보다 적게 쓰는 프로젝트에 자리가 필요합니다",
    Cause.NODE_LOST: "노드를 잃었습니다",
    Cause.GPU_LOST: "GPU를 잃었습니다",
    Cause.GANG_BROKEN: "남은 파드가 너무 적어 함께 일할 수 없습니다",
    Cause.UNBOUND: "파드가 끝내 실행되지 않았습니다",
    Cause.TIME_LIMIT: "시간 제한에 이르렀습니다",
    Cause.SHRINK: "원하는 것보다 많은 파드가 실행 중입니다",
}

_DECISIONS = {
    "start": "{workload}: {places}에서 시작합니다",
    "grow": "{workload}: {places}에서 {pods}를 더합니다",
    "evict": "{workload}: {pods}를 내보냅니다 - {cause}",
    "hold": "{workload}: {places}에 자리를 남겨 둡니다",
    "release": "{workload}: 남겨 둔 자리를 내놓습니다",
    "stop": "{workload}: 중지합니다 - {cause}",
    "close": "노드 {node}: 새 작업을 받지 않습니다 - {why}",
    "place": "{node}(GPU {gpus})",
}

_EVENTS = {
    "submitted": "{workload}: 제출되었습니다({pods}, 모두 {gpus})",
    "up": "{workload}: 실행 중입니다",
    "cancelled": "{workload}: 소유자가 취소했습니다",
    "resized": "{workload}: 크기가 바뀌었습니다({pods})",
    "pod_ok": "{pod}: 정상으로 끝났습니다",
    "pod_failed": "{pod}: 실패했습니다",
    "pod_gone": "{pod}: 떠났습니다",
    "pod_lost": "{pod}: 잃었습니다 - {why}",
    "ended_ok": "{workload}: 정상으로 끝났습니다",
    "ended_failed": "{workload}: 실패했습니다",
    "checkpointed": "{workload}: {made} 시점의 완전한 체크포인트가 있습니다",
    "node": "노드 {node}: {model} 모델의 {gpus}가 있습니다",
    "node_plain": "노드 {node}: {gpus}가 있습니다",
    "node_state": "노드 {node}: 상태가 바뀌었습니다({state})",
    "node_gone": "노드 {node}: 없어졌습니다",
    "project": "프로젝트 {project}: 보장량은 {guarantee}입니다",
}

_SCREEN = {
    "job": "작업",
    "project": "프로젝트",
    "gpus": "GPU",
    "state": "상태",
    "since": "경과",
    "told": "설명",
    "waited": "대기",
    "ran": "실행",
    "evicted": "퇴거",
    "end": "결과",
    "later": "제출 예정",
    "queued": "대기 {position}번째",
    "running": "실행 중",
    "ending": "종료 중",
    "ended_ok": "정상 종료",
    "ended_failed": "실패",
    "never": "시작 불가",
    "waits": "계속 대기",
    "waiting": "{workload}: 기다립니다. {reason}",
    "growing": "{workload}: 더 커질 수 있습니다. {reason}",
    "nodes": "가상 GPU: {nodes}",
    "summary": "작업 결과",
    "logs": "작업 출력: {folder}",
    "log": "이벤트 로그: {file}",
    "stuck": "실행 중인 작업이 없고 더 달라질 것도 없어, 대기 중인 작업을 남기고 마칩니다",
    "interrupted": "중단됨: 모든 프로세스를 종료했습니다",
    "simulated": "모의 실행",
    "real_jobs": "실제 작업 열두 개, 가상 GPU {gpus}: {file}",
    "exit_code": "파드 {pod}(시도 {attempt})의 종료 코드는 {code}입니다. 출력: {log}",
    "exit_forbidden": "파드 {pod}(시도 {attempt})의 종료 코드는 {code}입니다(실행할 수 없는 명령). 출력: {log}",
    "exit_not_found": "파드 {pod}(시도 {attempt})의 종료 코드는 {code}입니다(찾을 수 없는 명령). 출력: {log}",
    "exit_signal": "파드 {pod}(시도 {attempt}): 신호 {code}에 의해 종료되었습니다. 출력: {log}",
    "unstartable": "파드 {pod}(시도 {attempt}): 명령({program})을 시작할 수 없습니다 - {why}",
    "forced": "파드 {pod}(시도 {attempt}): 유예 시간이 지나 강제로 종료되었습니다",
}

CATALOGUE = Catalogue(
    reasons=_REASONS,
    given=_GIVEN,
    waiting=_WAITING,
    growing="기다리면 나머지는 저절로 시작됩니다.",
    on_model="{model}: {sentence}",
    remedies=_REMEDIES,
    remedies_given=_REMEDIES_GIVEN,
    causes=_CAUSES,
    claimed="{text} (요청한 작업: {claimant})",
    decisions=_DECISIONS,
    events=_EVENTS,
    screen=_SCREEN,
    figure=figure,
)
