"""What a machine needs for each vendor's device: where things lie, how they say their version, what collectives need."""

from __future__ import annotations

from typing import NamedTuple

from vendor_data.toml import Value

Section = dict[str, Value]


class MachineFacts(NamedTuple):
    """The tables of machine.toml."""

    head: Section
    plugin: Section
    toolkit: Section
    driver: Section
    devices: Section
    smi: Section
    network: Section
    sources: tuple[dict[str, str], ...]


def _source(name: str, version: str, path: str) -> dict[str, str]:
    return {"name": name, "version": version, "path": path}


_ASCEND = MachineFacts(
    head={
        "get": "https://www.hiascend.com/cann : driver and firmware first, then CANN's toolkit and its operator package",
        "get_zh": "https://www.hiascend.com/cann ：先装驱动与固件，再装 CANN toolkit 及算子包",
        "gcc": "13.3",
        "libraries": [
            "libhccl.so",
            "libascendcl.so",
            "libacl_op_compiler.so",
            "libge_runner.so",
            "libgraph.so",
        ],
    },
    plugin={
        "package": "torch-npu",
        "get": "pip install torch=={torch} torch-npu=={plugin} "
        "--extra-index-url https://download.pytorch.org/whl/cpu",
        "torch": r"^(\d+\.\d+)",
        "libraries": ["_C*.so", "lib/libtorch_npu.so", "lib/libtensorpipe.so"],
    },
    toolkit={
        "name": "CANN",
        "variables": ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"],
        "folders": [
            "/usr/local/Ascend/cann",
            "/usr/local/Ascend/ascend-toolkit/latest",
            "/usr/local/Ascend/nnae/latest",
            "/usr/local/Ascend/cann-[0-9]*",
            "~/Ascend/cann",
            "~/Ascend/ascend-toolkit/latest",
        ],
        "version_files": [
            "{arch}-linux/ascend_toolkit_install.info",
            "ascend_toolkit_install.info",
            "{arch}-linux/ascend_nnae_install.info",
        ],
        "operators": [
            "{arch}-linux/ascend_ops_install.info",
            "opp_kernel/version.info",
            "opp/built-in/op_impl/ai_core/tbe/kernel",
        ],
        "packages": ["attrs", "numpy", "decorator", "sympy", "cffi", "pyyaml", "psutil", "protobuf", "scipy"],
        "version": r"(?m)^version=(\S+)",
        "scripts": ["set_env.sh", "../set_env.sh"],
        "sets": ["ASCEND_HOME_PATH", "ASCEND_OPP_PATH"],
        "libraries": ["lib64"],
    },
    driver={
        "name": "Ascend HDK driver",
        "version_files": ["/usr/local/Ascend/driver/version.info"],
        "version": r"(?m)^Version=(\S+)",
        "firmware_files": ["/usr/local/Ascend/firmware/version.info"],
        "firmware": r"(?m)^Version=(\S+)",
        "firmware_spans": r"(?m)^compatible_version_fw=(\S+)",
        "libraries": ["/usr/local/Ascend/driver/lib64/driver", "/usr/local/Ascend/driver/lib64/common"],
    },
    devices={
        "nodes": ["/dev/davinci[0-9]*"],
        "control": ["/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"],
        "group": "HwHiAiUser",
    },
    smi={
        "driver": r"npu-smi\s+(\S+)",
        "device": r"(?m)^\|\s*(?P<index>\d+)\s+(?P<name>[A-Za-z]*\d\w*)\s*\|\s*(?P<health>[A-Za-z]+)\s*\|",
        "healthy": ["OK"],
        "process": r"(?m)^\|\s*\d+\s+\d+\s*\|\s*(?P<pid>\d+)\s*\|",
    },
    network={
        "files": ["/etc/hccn.conf"],
        "card_addresses": r"(?m)^address_(\d+)=\S+",
        "interface_variables": ["HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"],
        "address_variables": ["HCCL_IF_IP"],
        "json_variables": ["RANK_TABLE_FILE", "HCCL_WHITELIST_FILE"],
        "port_variable": "HCCL_IF_BASE_PORT",
        "port": 60000,
        "port_count": 16,
    },
    sources=(
        _source(
            "Ascend/pytorch", "2026", "README.md, COMPATIBILITY.md: versions that match; gcc for building"
        ),
        _source("TorchNPU release notes", "7.2.0, 26.1.1, 26.2.0", "packages, CANN and which are compatible"),
        _source(
            "CANN release notes",
            "8.5.0, 9.0.1, 9.1.0",
            "CANN and Ascend HDK; each row of drivers names its own",
        ),
        _source("torch-npu", "2.13.0", "wheel: METADATA; DT_NEEDED of lib/libtorch_npu.so and _C"),
        _source("CANN documentation", "8.5, 9.0", "install guides: version files, set_env.sh, device nodes"),
        _source("Ascend PyTorch guide", "", "FAQ: environment variables, libhccl.so, hccn.conf"),
    ),
)

_CAMBRICON = MachineFacts(
    head={
        "get": "https://sdk.cambricon.com : driver, CNToolkit, CNNL, CNCL; or Cambricon's PyTorch container",
        "get_zh": "https://sdk.cambricon.com ：驱动、CNToolkit、CNNL、CNCL；或使用寒武纪 PyTorch 容器",
        "libraries": ["libcnrt.so", "libcndev.so", "libcnnl.so", "libcncl.so"],
    },
    plugin={
        "package": "torch_mlu",
        "torch": r"[+-]torch(\d+\.\d+)",
        "libraries": ["_MLUC*.so", "csrc/lib/*.so"],
    },
    toolkit={
        "name": "Neuware (CNToolkit)",
        "variables": ["NEUWARE_HOME"],
        "folders": ["/usr/local/neuware"],
        "version_files": ["version.txt"],
        "version": r"(\d+\.\d+\.\d+)",
        "sets": ["NEUWARE_HOME"],
        "libraries": ["lib64"],
    },
    driver={"name": "Cambricon MLU driver"},
    devices={"nodes": ["/dev/cambricon_dev[0-9]*"], "control": ["/dev/cambricon_ctl"]},
    smi={
        "driver": r"(?:Driver\s+v|\|\s*On\s+v)(\S+)",
        "device": r"(?m)^\|\s*(?P<index>\d+)\s+\S+\s+(?P<name>MLU\S*)\s",
    },
    network={"interface_variables": ["GLOO_SOCKET_IFNAME"]},
    sources=(
        _source(
            "Cambricon/torch_mlu", "r2.4_develop", "README.md: variables, libraries, versions that match"
        ),
        _source("gpustack/runtime", "2026", "gpustack_runtime/detector/cambricon.py: version.txt of Neuware"),
        _source("PaddlePaddle/PaddleCustomDevice", "2024", "backends/mlu: output of cnmon, device nodes"),
    ),
)

_TECORIGIN = MachineFacts(
    head={
        "get": "http://docs.tecorigin.com/release/software_installation : TecoDriver, then TecoToolKit; or the "
        "vendor's container",
        "get_zh": "http://docs.tecorigin.com/release/software_installation ：TecoDriver，然后 TecoToolKit；或使用官方容器",
        "libraries": ["libsdaart.so", "libtccl.so", "libtecodnn.so", "libtecoblas.so"],
    },
    plugin={"package": "torch_sdaa", "libraries": ["_C*.so", "lib/*.so"]},
    toolkit={
        "name": "TecoToolKit",
        "variables": ["SDAA_HOME"],
        "folders": ["/opt/tecoai"],
        "scripts": ["setvars.sh"],
        "libraries": ["lib64", "lib"],
    },
    driver={"name": "SDAADriver (TecoDriver)"},
    devices={"nodes": ["/dev/tcaicard[0-9]*"], "each": 4},
    smi={
        "driver": r"SDAADriver:\s*(\S+)",
        "toolkit": r"SDAARuntime:\s*(\S+)",
        "device": r"(?m)^\|\s*(?P<index>\d+)\s+(?P<name>TECO\w+)\s*\|[^|]*\|\s*(?P<health>\w+)",
        "healthy": ["OK"],
        "process": r"(?m)^\|\s*\d+\s+(?P<pid>\d+)\s+\S.*MB\s*\|",
    },
    network={"interface_variables": ["GLOO_SOCKET_IFNAME"]},
    sources=(
        _source(
            "Tecorigin/modelzoo", "2025-05-13", "PyTorch/doc: output of teco-smi, device nodes, containers"
        ),
        _source("TecoPyTorch documentation", "1.6 to 3.3", "versions of torch_sdaa and torch"),
        _source("Tecorigin installation manual", "3.2.0", "packages, libraries, /dev/tcaicardN, setvars.sh"),
    ),
)

_MOORETHREADS = MachineFacts(
    head={
        "get": "https://developer.mthreads.com/sdk/download/musa : the MUSA SDK with driver, toolkit, muDNN and MCCL",
        "get_zh": "https://developer.mthreads.com/sdk/download/musa ：MUSA SDK，含驱动、toolkit、muDNN 与 MCCL",
        "libraries": ["libmusart.so", "libmudnn.so", "libmccl.so"],
    },
    plugin={"package": "torch_musa", "libraries": ["_MUSAC*.so", "lib/*.so"]},
    toolkit={
        "name": "MUSA SDK",
        "variables": ["MUSA_HOME"],
        "folders": ["/usr/local/musa"],
        "version_files": ["version.json"],
        "version": r'(?s)"musa_toolkits":\s*\{[^}]*?"version":\s*"([^"]+)"',
        "libraries": ["lib"],
    },
    driver={"name": "MUSA driver"},
    devices={"nodes": ["/dev/mtgpu.[0-9]*", "/dev/mtgpu[0-9]*"], "group": "render"},
    smi={
        "driver": r"Driver Version:\s*(\S+)",
        "device": r"(?m)^\s*(?P<index>\d+)\s+(?P<name>MTT \S+)\s*\|",
        "process": r"(?m)^\s*\d+\s+(?P<pid>\d+)\s+\S.*\d\s*MiB\s*$",
    },
    network={"interface_variables": ["MCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"]},
    sources=(
        _source("MooreThreads/torch_musa", "1.0.0 to 2.11.0.post1", "README.md, release notes"),
        _source("MUSA documentation", "5.1", "version.json, mthreads-gmi"),
        _source("FlagOS runtime images", "2026", "/dev/mtgpu.N, versions of torch and torch_musa"),
    ),
)

_INTEL = MachineFacts(
    head={
        "get": "https://dgpu-docs.intel.com : the driver with Level Zero; PyTorch's wheels bring the rest",
        "get_zh": "https://dgpu-docs.intel.com ：含 Level Zero 的驱动；其余由 PyTorch 的 wheel 提供",
        "libraries": ["libze_loader.so.1", "libze_intel_gpu.so.1"],
    },
    plugin={
        "package": "torch",
        "get": "pip install torch --index-url https://download.pytorch.org/whl/xpu",
        "torch_build": "xpu",
    },
    toolkit={},
    driver={
        "name": "Intel GPU driver",
        "version_files": ["/sys/module/i915/version", "/sys/module/xe/version"],
    },
    devices={"nodes": ["/dev/dri/renderD[0-9]*"], "group": "render"},
    smi={"command": "xpu-smi discovery", "device": r"Device Name:\s*(?P<name>.+?)\s*\|"},
    network={"interface_variables": ["GLOO_SOCKET_IFNAME"]},
    sources=(
        _source("PyTorch documentation", "2.12", "notes/get_start_xpu: driver, wheels, from 2.5 on"),
        _source("PyTorch prerequisites for Intel GPUs", "2.5 to 2.11", "driver packages"),
    ),
)

MACHINES = {
    "ascend": _ASCEND,
    "cambricon": _CAMBRICON,
    "tecorigin": _TECORIGIN,
    "moorethreads": _MOORETHREADS,
    "intel": _INTEL,
}
