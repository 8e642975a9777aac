"""Every entry of the FAQ of the Ascend guide, each with a log as a training might have written it."""

from __future__ import annotations

import pytest

from tests.explanation.explaining import cause, explained, ids
from torchferry.vendors.error_patterns import Effect

_START = "=> creating model 'resnet50'\nEpoch: [0][  0/1251]  Time 41.2  Loss 7.08\n"


def traceback(exception: str, statement: str = "output = model(images)") -> str:
    return (
        f'{_START}Traceback (most recent call last):\n  File "/home/ma/train.py", line 118, in <module>\n    main()\n'
        f'  File "/home/ma/train.py", line 97, in main\n    {statement}\n{exception}\n'
    )


FAQ = {
    "pillow-build": (
        "any.pillow-build",
        "Collecting Pillow==5.3.0\n  running build_ext\n  The headers or library files could not be found for jpeg,\n"
        "  a required dependency when compiling Pillow from source.\n  error: command 'gcc' failed with exit status 1\n",
    ),
    "ExchangeDevice": (
        "ascend.exchange-device",
        traceback(
            "RuntimeError: ExchangeDevice:torch_npu/csrc/core/npu/NPUFunctions.h:41 NPU error, exchange device is not allowed"
        ),
    ),
    "atexit": (
        "ascend.atexit",
        f"{_START}Error in atexit._run_exitfuncs:\nTraceback (most recent call last):\n"
        '  File "/usr/lib/python3/site-packages/torch/__init__.py", line 429, in _npu_shutdown\n    torch._C._npu_shutdown()\n'
        "RuntimeError: npuSynchronizeDevice:NPUStream.cpp:806 NPU error, error code is 0\n",
    ),
    "HelpACLExecute": (
        "ascend.help-acl-execute",
        f"{_START}terminate called after throwing an instance of 'c10::Error'\n"
        "  what():  HelpACLExecute:OpParamMaker.cpp:115 NPU error, failed\nAborted (core dumped)\n",
    ),
    "HelpACLExecute, queue off": (
        "ascend.help-acl-execute",
        traceback(
            "RuntimeError: HelpACLExecute.OpParamMaker.cpp:203 NPU error",
            "values, indices = torch.topk(scores, 100)",
        ),
    ),
    "INTERNAL ASSERT": (
        "ascend.internal-assert-device",
        "terminate called after throwing an instance of 'c10::Error'\n"
        '  what():  0 INTERNAL ASSERT FAILED at "/build/c10/npu/NPUStream.cpp":146, please report a bug to PyTorch.\n',
    ),
    "libhccl": (
        "ascend.libhccl",
        traceback(
            "ImportError: libhccl.so: cannot open shared object file: No such file or directory",
            "import torch",
        ),
    ),
    "Initialize": (
        "ascend.initialize",
        traceback(
            "RuntimeError: Initialize:/build/c10/npu/sys_ctrl/npu_sys_ctrl.cpp:79 NPU error, initialising failed",
            "model.npu()",
        ),
    ),
    "TVM/te/cce": (
        "ascend.tvm-te-cce",
        "[ERROR] TEFUSION(88,python3):2024-05-06-10:11:12.345.678 [compile.cc:91]88 Failed to import te.platform\n"
        'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
        "ModuleNotFoundError: No module named 'te.platform.fusion_manager'\n",
    ),
    "topKD": (
        "ascend.op-attrs",
        "[ERROR] GE(77,python3):2024-05-06-10:11:12.000.001 [op_compiler.cc:55]77 CheckAttr: op topKD: The number of attrs in "
        "op desc and op store does not match.\n"
        + traceback("RuntimeError: HelpACLExecute.", "scores.topk(5)"),
    ),
    "malloc 500000": (
        "ascend.caching-allocator",
        traceback(
            "RuntimeError: malloc:/build/pytorch/c10/npu/NPUCachingAllocator.cpp:293 NPU error, error code is 500000."
        ),
    ),
    "Could not run": (
        "any.could-not-run",
        traceback(
            "RuntimeError: Could not run 'aten::trunc.out' with arguments from the 'NPUTensorId' backend."
        ),
    ),
    "MaxPoolGradWithArgmaxV1": (
        "ascend.max-pool-grad",
        "[ERROR] TBE(9,python3):2024-05-06-10:11:12.000.001 [te_compile.py:40]9 compile MaxPoolGradWithArgmaxV1 failed, "
        "kernel size not supported\n",
    ),
    "torch._C": (
        "any.torch-c-missing",
        traceback("ModuleNotFoundError: No module named 'torch._C'", "from torch._C import *"),
    ),
    "stream synchronisation": (
        "any.cuda-stream-sync",
        traceback(
            "AttributeError: 'NoneType' object has no attribute 'synchronize'",
            "torch.cuda.current_stream().synchronize()",
        ),
    ),
    "libpt_kernels": (
        "ascend.libpt-kernels",
        "[ERROR] AICPU(5,python3):2024-05-06-10:11:12.000.001 open aicpu_kernels/libpt_kernels.so failed: no such file\n",
    ),
    "match op inputs failed": (
        "ascend.dynamic-shape",
        "[ERROR] ASCENDCL(5,python3):2024-05-06-10:11:12.000.001 [op_model_manager.cpp:60]5 MatchOpModel: match op inputs failed, "
        "opType = PTIndexPut\n" + traceback("RuntimeError: HelpACLExecute.", "boxes[mask] = 0"),
    ),
    "SigmoidCrossEntropyWithLogitsV2": (
        "ascend.op-type-unsupported",
        "[ERROR] GE(2,python3):2024-05-06-10:11:12.000.001 [dnnengine_manager.cc:266]2 GetDNNEngineName: Op type "
        "SigmoidCrossEntropyWithLogitsV2 of ops kernel AIcoreEngine is unsupported, reason: dtype of input\n",
    ),
    "hook": (
        "any.hook-stop-iteration",
        traceback("StopIteration", "var = next((v for v in var.values() if isinstance(v, torch.Tensor)))"),
    ),
    "load state_dict": (
        "any.state-dict-prefix",
        traceback(
            'RuntimeError: Error(s) in loading state_dict for ResNet:\n\tMissing key(s) in state_dict: "conv1.weight". \n'
            '\tUnexpected key(s) in state_dict: "module.conv1.weight", "module.fc.bias". ',
            "model.load_state_dict(checkpoint)",
        ),
    ),
    "host not found": (
        "any.host-not-found",
        traceback(
            "RuntimeError: [enforce fail at TCPStore] host not found: Name or service not known",
            "dist.init_process_group('hccl')",
        ),
    ),
    "connect() timed out": (
        "any.connect-timed-out",
        traceback("RuntimeError: connect() timed out.", "dist.init_process_group('hccl')"),
    ),
}


@pytest.mark.parametrize("entry", FAQ)
def test_entry(entry: str) -> None:
    rule, text = FAQ[entry]
    assert cause(text) == rule
    found = explained(text).cause
    assert found is not None and found.pattern is not None
    assert "FAQ" in found.pattern.source or found.pattern.source in ("torch dispatcher", "pytorch")
    assert found.pattern.cause.zh and found.pattern.remedy.zh


def test_an_early_error_of_the_program_is_not_hidden_by_the_late_log() -> None:
    """MemCopySync names an operator that is not the cause: it is logged after the real error."""
    shell = (
        "[ERROR] RUNTIME(160)kernel task happen error, retCode=0x28, [aicpu timeout].\n"
        "[ERROR] RUNTIME(160)aicpu kernel execute failed, device_id=0, stream_id=512, task_id=24.\n"
    )
    late = (
        "[ERROR] RUNTIME(12,python3):2024-02-02-22:23:56.475.679 [npu_driver.cc:1408]12 MemCopySync:drvMemcpy failed: dst=0x1\n"
        "[ERROR] RUNTIME(12,python3):2024-02-02-22:23:56.475.698 [logger.cc:113]12 KernelLaunch:launch kernel failed, "
        "kernel=ArgMinWithValue_tvmbin\n"
    )
    for text in (shell + late, late + shell):
        found = ids(text)
        assert found[0] == "ascend.aicpu-timeout"
        assert set(found[1:]) == {"ascend.memcopysync", "ascend.kernel-launch"}
    alone = explained(late).cause
    assert alone is not None and alone.effect is Effect.CONSEQUENCE


def test_a_harmless_message_is_no_error() -> None:
    text = "[ERROR] GE(7,python3):2024-05-06-10:11:12.000.001 [api.cc:5]7 55056 GetInputConstDataOut: ErrorNo: -1(failed)\n"
    assert cause(text) == ""
    assert [finding.effect for finding in explained(text).ordered] == [Effect.HARMLESS]


def test_a_process_that_is_left_over() -> None:
    text = (
        "| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |\n"
        "| 0       0                 | 182911        | python3.7                | 9837                    |\n"
    )
    assert cause(text) == ""
    assert ids(text) == ["ascend.leftover-process"]
