"""Which rule for Ascend's errors is held against the vendor's plugin where, and why the others can't be."""

from __future__ import annotations

# Rules whose words come with another one's, by what raises them; the other says what happened.
BESIDE = {
    "device": {"ascend.call-failed", "ascend.code-meaning", "ascend.inner-error"},
    "collectives": {"ascend.working-operator", "ascend.asynchronous", "ascend.call-failed"},
    "codes": set[str](),
}
BESIDE_BETWEEN_RANKS = {"ascend.event-timeout", "ascend.call-failed"}

# Rules whose words are there, in a line that a better rule explains: its own line would add nothing.
OUTDONE = {
    "device": {
        "ascend.aclnn-arguments",
        "ascend.aclnn",
        "ascend.stream-sync",
        "ascend.exchange-device",
    },
}
OUTDONE_BETWEEN_RANKS = {"absent": {"ascend.hccl-call"}, "late": {"ascend.hccl-timeout"}}

# Rules that a test of their own provokes.
ELSEWHERE = {
    "ascend.libhccl": "in a process without the toolkit",
    "ascend.code": "with all codes of the plugin",
    "ascend.application": "with an exception of the program",
}

NOT_PROVOKED = {
    "the plugin has these words no more: they are of releases for PyTorch 1.5 to 2.1": {
        "ascend.internal-assert-device",
        "ascend.initialize",
        "ascend.copy-and-resize",
        "ascend.help-acl-execute",
        "ascend.shutdown",
        "ascend.atexit",
        "ascend.caching-allocator",
        "ascend.libpt-kernels",
    },
    "the graph engine, which no operator of this plugin goes through, writes it": {
        "ascend.op-attrs",
        "ascend.get-input-const-data",
        "ascend.max-pool-grad",
        "ascend.dynamic-shape",
        "ascend.op-type-unsupported",
        "ascend.op-store",
        "ascend.graph-engine",
    },
    "the driver, or a kernel that CANN brings, writes it; the emulated CANN has neither": {
        "ascend.memcopysync",
        "ascend.kernel-launch",
        "ascend.aicpu-timeout",
        "ascend.aicpu-exception",
        "ascend.kernel-bounds",
        "ascend.overflow",
        "ascend.task-timeout",
        "ascend.aclnn-tiling",
        "ascend.aclnn-inner",
    },
    "it is a fault of a card or of a link": {
        "ascend.device-link",
        "ascend.memory-hardware",
        "ascend.hccl-link",
        "ascend.suspect-remote",
    },
    "it is of an installation of CANN that is broken, or not the plugin's": {
        "ascend.cann-environment",
        "ascend.cann-initialisation",
        "ascend.cann-versions",
        "ascend.kernel-package",
        "ascend.op-binary",
        "ascend.opp-verify",
    },
    "it needs a plugin for another PyTorch": {"ascend.plugin-version"},
    "it is of other processes on the same card, which the emulated devices do not share": {
        "ascend.hccp-leftover",
        "ascend.leftover-process",
    },
    "the plugin sets the device on each thread before it calls CANN": {"ascend.no-context"},
    "the emulated devices have no limit of streams and events": {"ascend.resources"},
    "the plugin makes tensors of base formats while its internal formats are off": {"ascend.private-format"},
    "the plugin takes the way without a rank table where that can't be read": {"ascend.rank-table"},
    "memory that processes share would have to be full on the machine": {"ascend.hccl-memory"},
}
