"""Logs as real programs and tools have written them: the wording is theirs, names and paths are shortened."""

from __future__ import annotations

import pytest

from tests.explanation.explaining import cause, explained

LOGS = {
    "guide memcopy": (
        "ascend.aicpu-timeout",
        """\
    RuntimeError: Run:/usr1/workspace/PyTorch_Apex_Daily_c20tr5/CODE/aten/src/ATen/native/npu/utils/OpParamMaker.h:280 NPU error,NPU error code is:500002
    [ERROR] RUNTIME(160809)kernel task happen error, retCode=0x28, [aicpu timeout].
    [ERROR] RUNTIME(160809)aicpu kernel execute failed, device_id=0, stream_id=512, task_id=24, fault so_name=, fault kernel_name=, extend_info=.
    Error in atexit._run_exitfuncs:
    Traceback (most recent call last):
    File "/usr/local/python3.7.5/lib/python3.7/site-packages/torch/__init__.py", line 429, in _npu_shutdown
        torch._C._npu_shutdown()
    RuntimeError: npuSynchronizeDevice:/usr1/workspace/PyTorch_Apex_Daily_c20tr5/CODE/c10/npu/NPUStream.cpp:806 NPU error, error code is 0
    [ERROR] RUNTIME(12731,python3.7):2021-02-02-22:23:56.475.679 [../../../../../../runtime/feature/src/npu_driver.cc:1408]12828 MemCopySync:drvMemcpy failed: dst=0x108040288000, destMax=1240, src=0x7fe7649556d0, size=1240, kind=1, drvRetCode=17!
    [ERROR] RUNTIME(12731,python3.7):2021-02-02-22:23:56.475.717 [../../../../../../runtime/feature/src/api_c.cc:224]12828 rtKernelLaunch:ErrCode=207001, desc=[module new memory error], InnerCode=0x70a0002
""",
    ),
    "guide sigmoid": (
        "ascend.op-type-unsupported",
        """\
[ERROR] GE(24836,python3.7):2021-01-27-18:27:51.562.111 [../../../../../../graphengine/ge/engine_manager/dnnengine_manager.cc:266]25155 GetDNNEngineName: ErrorNo: 1343242282(assign engine failed) GetDNNEngineName:Op type SigmoidCrossEntropyWithLogitsV2 of ops kernel AIcoreEngine is unsupported, reason:Op SigmoidCrossEntropyWithLogitsV2 not supported reason: The type of this op is not found in op store, check whether the op store has this type of op. Op store name is tbe-custom.
The dtype, format or shape of input in op desc is not supported in op store, check the dtype, format or shape of input between the op store and the graph. Op store name is tbe-builtin.
""",
    ),
    "vector core": (
        "ascend.aicore-exception",
        """\
Traceback (most recent call last):
  File "answer.py", line 12, in <module>
    tokens = model.generate(question)
  File "/x/site-packages/transformers/generation/utils.py", line 7, in generate
    done = finished.item()
RuntimeError: operator():build/CMakeFiles/torch_npu.dir/compiler_depend.ts:25 NPU function error: c10_npu::acl::AclrtSynchronizeStreamWithTimeout(copy_stream), error code is 507035
[ERROR] 2026-01-02-03:04:05 (PID:4711, Device:1, RankID:-1) ERR00100 PTA call acl api failed
[Error]: The vector core execution is abnormal.
        Rectify the fault based on the error information in the ascend log.
EZ9999: Inner Error!
EZ9999[PID: 4711] 2026-01-02-03:04:05.577.656 (EZ9999):  The error from device(chipId:4, dieId:0), serial number is 4, there is an exception of fftsplus aivector error, core id is 15
        TraceBack (most recent call last):
""",
    ),
    "vllm 507011": (
        "ascend.graph-capture",
        """\
(Worker pid=16884) (Worker_DP0_TP1_EP1 pid=16884) ERROR 03-25 06:14:02 [multiproc_executor.py:880] Traceback (most recent call last):
(Worker pid=16884) (Worker_DP0_TP1_EP1 pid=16884) ERROR 03-25 06:14:02 [multiproc_executor.py:880]   File "/vllm/worker.py", line 3, in f
(Worker pid=16884) (Worker_DP0_TP1_EP1 pid=16884) ERROR 03-25 06:14:02 [multiproc_executor.py:880]     x()
(Worker pid=16884) (Worker_DP0_TP1_EP1 pid=16884) ERROR 03-25 06:14:02 [multiproc_executor.py:880] RuntimeError: synchronize:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:361 NPU function error: c10_npu::acl::AclrtSynchronizeStreamWithTimeout(stream()), error code is 507011
(Worker pid=16884) (Worker_DP0_TP1_EP1 pid=16884) ERROR 03-25 06:14:02 [multiproc_executor.py:880] [ERROR] 2026-03-25-06:14:02 (PID:16884, Device:1, RankID:-1) ERR00100 PTA call acl api failed
(Worker pid=16884) (Worker_DP0_TP1_EP1 pid=16884) ERROR 03-25 06:14:02 [multiproc_executor.py:880] EE9999: Inner Error!
(Worker pid=16884) (Worker_DP0_TP1_EP1 pid=16884) ERROR 03-25 06:14:02 [multiproc_executor.py:880] EE9999[PID: 16884] 2026-03-24-09:58:00.084.676 (EE9999):  rtMemcpy execution failed, reason=the current capture mode does not support this operation[FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:61]
""",
    ),
    "aclnn 8 dims": (
        "ascend.aclnn-parameter",
        """\
AssertionError: {"object":"error","message":"Internal server error: copy_d2d_baseformat_opapi:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:88 NPU function error: call aclnnInplaceCopy failed, error code is 161002\\n[ERROR] 2025-11-30-05:12:25 (PID:4346, Device:0, RankID:-1) ERR00100 PTA call acl api failed.\n[PID: 4346] 2025-11-30-05:12:25.730.116 AclNN_Parameter_Error(EZ1001): The self tensor cannot be larger than 8 dimensions.\n","type":"InternalServerError","param":null,"code":500}
Killed
""",
    ),
    "arange": (
        "ascend.kernel-package",
        """\
RuntimeError: arange_out_op_api:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:36 NPU function error: call aclnnArange failed, error code is 561103
[ERROR] 2025-09-19-14:34:08 (PID:5625, Device:0, RankID:-1) ERR00100 PTA call acl api failed.
EZ9999: Inner Error!
EZ9999: [PID: 5625] 2025-09-19-14:34:08.166.059 Parse dynamic kernel config fail.
        TraceBack (most recent call last):
       AclOpKernelInit failed opType
       ArangeAiCore ADD_TO_LAUNCHER_LIST_AICORE failed.
""",
    ),
    "500001": (
        "ascend.cann-initialisation",
        """\
RuntimeError: SetPrecisionMode:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:155 NPU function error: at_npu::native::AclSetCompileopt(aclCompileOpt::ACL_PRECISION_MODE, precision_mode), error code is 500001
[ERROR] 2025-04-28-02:50:24 (PID:1439, Device:0, RankID:-1) ERR00100 PTA call acl api failed
[Error]: The internal ACL of the system is incorrect.
EH9999: Inner Error!
EH9999: [PID: 1439] 2025-04-28-02:50:24.965.356 [Init][PlatformInfo]init runtime platform info failed, SocVersion = Ascend910B2[FUNC:ReportInnerError]
""",
    ),
    "ej0001": (
        "ascend.hccp-leftover",
        """\
RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64
[ERROR] 2024-05-21-11:57:54 (PID:927000, Device:3, RankID:3) ERR02200 DIST call hccl api failed.
EJ0001: 2024-05-21-11:57:54.167.645 Failed to initialize the HCCP process. Reason: Maybe the last training process is running.
        Solution: Wait for 10s after killing the last training process and try again.
""",
    ),
    "ei0006": (
        "ascend.hccl-connect",
        """\
[rank1]: RuntimeError: InnerRunOpApi:torch_npu/csrc/framework/OpParamMaker.cpp:281 OPS function error: HcclAllreduce, error code is 6
[rank1]: [ERROR] 2025-04-08-18:07:20 (PID:1292363, Device:1, RankID:1) ERR01100 OPS call acl api failed.
[rank1]: EI0006: [PID: 1292363] 2025-04-08-18:07:20.444.436 Getting socket times out. Reason: Remote Rank did not send the data in time. Please check the reason for the rank being stuck
[rank1]:         Solution: 1. Check the rank service processes with other errors or no errors in the cluster.
""",
    ),
    "ei0006b": (
        "ascend.hccl-connect",
        """\
[PID: 749] 2025-12-29-03:16:15.787.356 Get_Socket_Timeout(EI0006): Getting socket times out. Reason: 1. The remote does not initiate a connect request.
""",
    ),
    "fftsplus": (
        "ascend.hccl-timeout",
        """\
RuntimeError: ACL stream synchronize failed.
EI9999: Inner Error!
EI9999: 2024-10-21-10:42:00.358.410  The error from device(chipId:3, dieId:0), serial number is 9, hccl fftsplus task timeout occurred during task execution, stream_id:5
""",
    ),
    "notify, remote rank": (
        "ascend.hccl-notify",
        """\
RuntimeError: synchronize:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:486 NPU function error: c10_npu::acl::AclrtSynchronizeDeviceWithTimeout, error code is 507048
[ERROR] 2025-08-01-10:11:12 (PID:4711, Device:0, RankID:0) ERR00100 PTA call acl api failed
[Error]: The notify wait task times out.
        Rectify the fault based on the error information in the ascend log.
EI0002: [PID: 4711] 2025-08-01-10:11:12.123.456 The wait execution of the Notify register times out. Reason: The Notify register has not received the Notify record from remote rank [1].base information: [streamID:[7], taskID[12]
        Solution: 1. If this error is reported on part of these ranks, check other ranks to see whether other errors have been reported earlier.
""",
    ),
    "loss scale 0": (
        "any.loss-scale-division",
        """\
Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 1.1754943508222875e-38
Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0.0
loss nan
Traceback (most recent call last):
  File "train.py", line 88, in <module>
    with amp.scale_loss(loss, optimizer) as scaled_loss:
  File "/x/site-packages/apex/amp/handle.py", line 120, in scale_loss
    optimizer._post_amp_backward(loss_scaler)
  File "/x/site-packages/apex/amp/scaler.py", line 212, in update_scale
    grads_have_scale / out_scale
ZeroDivisionError: float division by zero
""",
    ),
    "watchdog": (
        "any.nccl-timeout",
        """\
[rank0]:[E1103 10:11:12.123 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.
[rank0]:[E1103 10:11:12.124 ProcessGroupNCCL.cpp:1785] [PG ID 0 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 7, last enqueued NCCL work: 9
[rank0]:[E1103 10:11:12.125 ProcessGroupNCCL.cpp:630] [Rank 0] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.
[rank0]:[E1103 10:11:12.126 ProcessGroupNCCL.cpp:636] [Rank 0] To avoid data inconsistency, we are taking the entire process down.
""",
    ),
    "exchange, lower case": (
        "ascend.exchange-device",
        "RuntimeError: exchangeDevice:torch_npu/csrc/core/npu/NPUFunctions.h:41 NPU error, error code is 107002\n",
    ),
    "suspect": (
        "ascend.suspect-remote",
        """\
(EngineCore_DP1 pid=504896) RuntimeError: Worker failed with error 'SUSPECT REMOTE ERROR,
(EngineCore_DP1 pid=504896) [ERROR] 2026-06-22-20:22:45 (PID:504915, Device:0, RankID:-1) ERR00100 PTA call acl api failed', plea
""",
    ),
    "docker 507033": (
        "ascend.device-link",
        """\
mineru-npu-model-server-1   | 2025-11-19 11:14:59.028 | ERROR    | __main__:doc_parse:95 | Dispatch error to http://127.0.0.1:8100/infer: 500: {"detail":"Initialize:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:152 NPU function error: c10_npu::SetDevice(device_id_), error code is 507033\\n[ERROR] 2025-11-19-11:14:58 (PID:356, Device:0, RankID:-1) ERR00100 PTA call acl api failed\n[Error]: Failed to start the device. \n E30006: 2025-11-19-11:14:58.516.606 Failed to verify the OPP
""",
    ),
    "cambricon oom": (
        "cambricon.oom",
        """\
2023-07-21 15:14:04.069147: [cnrtError] [50200] [Card: 0] Error occurred during calling 'cnMalloc' in CNDrv interface.
2023-07-21 15:14:04.069180: [cnrtError] [50200] [Card: 0] Return value is 100100, CN_MEMORY_ERROR_OUT_OF_MEMORY.
2023-07-21 15:14:04.069188: [cnrtError] [50200] [Card: 0] cnrtMalloc: Malloc MLU device memory failed.
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
RuntimeError: out of memory
""",
    ),
    "musa illegal": (
        "moorethreads.runtime",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
RuntimeError: MUSA error: an illegal memory access was encountered
""",
    ),
    "xpu ur": (
        "intel.sycl",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
RuntimeError: UR error
""",
    ),
    "xpu loader": (
        "intel.loader",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
ImportError: /opt/intel/oneapi/compiler/2025.1/lib/libur_loader.so.0: version `LIBUR_LOADER_0.10' not found (required by /x/libsycl.so.8)
""",
    ),
    "ccl": (
        "intel.ccl",
        """\
2023:11:28-16:35:45:(35980) |CCL_WARN| did not find MPI-launcher specific variables, switch to ATL/OFI
2023:11:28-16:35:45:(35980) |CCL_ERROR| base_thread.cpp:36 start: error while creating worker thread #0 pthread_create returns 22
RuntimeError: oneCCL: exec.cpp:134 start_workers: EXCEPTION: failed to start worker # 0
""",
    ),
    "sigkill torchrun": (
        "any.exitcode-killed",
        """\
step 1
W0801 13:23:17.366000 32974 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 33051 closing signal SIGTERM
E0325 20:57:27.620000 2606 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 5 (pid: 2630) of binary: /root/miniconda3/bin/python
Traceback (most recent call last):
  File "/x/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
=====================================================
test.py FAILED
-----------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
-----------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2025-05-21_15:43:03
  host      : worker
  rank      : 5 (local_rank: 5)
  exitcode  : -9 (pid: 14750)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 14750
""",
    ),
    "torchrun exit 1": (
        "?",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
ValueError: mine
E0325 20:57:27.620000 2606 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 5 (pid: 2630) of binary: python
Traceback (most recent call last):
  File "/x/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
""",
    ),
    "dataloader": (
        "?",
        """\
Traceback (most recent call last):
  File "train.py", line 10, in <module>
    for x in loader:
  File "/x/site-packages/torch/utils/data/dataloader.py", line 733, in __next__
    data = self._next_data()
  File "/x/site-packages/torch/_utils.py", line 722, in reraise
    raise exception
KeyError: Caught KeyError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/x/site-packages/torch/utils/data/_utils/worker.py", line 309, in _worker_loop
    data = fetcher.fetch(index)
  File "data.py", line 5, in __getitem__
    return self.d[i]
KeyError: 'x'

""",
    ),
    "group": (
        "?",
        """\
  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 3, in <module>
  |     raise ExceptionGroup("many", [ValueError("bad")])
  | ExceptionGroup: many (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "b.py", line 9, in work
    |     x()
    | ValueError: bad
    +------------------------------------
""",
    ),
    "compile": (
        "any.triton-missing",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
ImportError: cannot import name 'triton_key' from 'triton.compiler.compiler' (/opt/x.py)

Set TORCH_LOGS="+dynamo" and TORCHDYNAMO_VERBOSE=1 for more information
""",
    ),
    "inductor cpp": (
        "any.compiler-missing",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
torch._inductor.exc.InductorError: InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')
""",
    ),
    "safetensors": (
        "any.weights-header",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge
""",
    ),
    "rich": (
        "any.weights-header",
        """\
2023-07-12 02:50:34 | ERROR | stderr | ╭─────────── Traceback (most recent call last) ───────────╮
2023-07-12 02:50:34 | ERROR | stderr | │ /home/me/run.py:48 in main                       │
2023-07-12 02:50:34 | ERROR | stderr | │   45 │   x = 1                                    │
2023-07-12 02:50:34 | ERROR | stderr | ╰─────────────────────────────────────────────────╯
2023-07-12 02:50:34 | ERROR | stderr | SafetensorError: Error while deserializing header: HeaderTooLarge
""",
    ),
    "numpy": (
        "any.numpy-abi",
        """\

A module that was compiled using NumPy 1.x cannot be run in
NumPy 2.0.0 as it may crash. To support both 1.x and 2.x
Traceback (most recent call last):  File "a.py", line 1, in <module>
    import torch
AttributeError: _ARRAY_API not found
step 1
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
RuntimeError: Could not infer dtype of numpy.float32
""",
    ),
    "pickle": (
        "any.weights-only",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options
""",
    ),
    "undefined": (
        "any.undefined-symbol",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
ImportError: /x/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
""",
    ),
    "npu missing": (
        "any.plugin-missing",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
ModuleNotFoundError: No module named 'torch_npu'
""",
    ),
    "autoload": (
        "ascend.libhccl",
        """\
Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
ImportError: libhccl.so: cannot open shared object file: No such file or directory

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "train.py", line 7, in main
    work()
RuntimeError: Failed to load the backend extension: torch_npu. You can disable extension auto-loading with TORCH_DEVICE_BACKEND_AUTOLOAD=0.
""",
    ),
    "srun": (
        "?",
        """\
3: Traceback (most recent call last):
3:   File "train.py", line 7, in main
3:     work()
3: ValueError: bad label
0: step 1
1: step 1
""",
    ),
    "mpi": (
        "?",
        """\
[1,3]<stderr>:Traceback (most recent call last):
[1,3]<stderr>:  File "train.py", line 7, in main
[1,3]<stderr>:    work()
[1,3]<stderr>:ValueError: bad label
[1,0]<stdout>:step 1
""",
    ),
    "compose": (
        "?",
        """\
worker-1  | Traceback (most recent call last):
worker-1  |   File "train.py", line 7, in main
worker-1  |     work()
worker-1  | ValueError: bad label
""",
    ),
    "k8s": (
        "?",
        """\
2024-05-06T10:11:12.123456789Z stderr F Traceback (most recent call last):
2024-05-06T10:11:12.123456789Z stderr F   File "train.py", line 7, in main
2024-05-06T10:11:12.123456789Z stderr F     work()
2024-05-06T10:11:12.123456789Z stderr F ValueError: bad label
""",
    ),
    "seg mid": (
        "any.segfault",
        """\
step 1
Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "a.py", line 3 in f
./run.sh: line 3: 4711 Segmentation fault      (core dumped) python train.py
""",
    ),
    "zsh": (
        "any.killed",
        """\
step
[1]    2986243 killed     python train.py
""",
    ),
    "slurm oom": (
        "any.killed",
        """\
step
slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have been OOM Killed.
""",
    ),
    "slurm time": (
        "any.interrupted",
        """\
step
slurmstepd: error: *** STEP 123.0 ON node1 CANCELLED AT 2024-05-06T10:11:12 DUE TO TIME LIMIT ***
""",
    ),
    "Terminated": (
        "any.interrupted",
        """\
step
Terminated
""",
    ),
    "illegal": (
        "?",
        """\
step
Illegal instruction (core dumped)
""",
    ),
    "torn tb": (
        "?",
        """\
step
Traceback (most recent call last):
  File "a.py", line 3, in f
    x()
""",
    ),
    "ray": (
        "?",
        """\
(RayTrainWorker pid=123, ip=10.0.0.1) Traceback (most recent call last):
(RayTrainWorker pid=124, ip=10.0.0.1) Traceback (most recent call last):
(RayTrainWorker pid=123, ip=10.0.0.1)   File "a.py", line 3, in f
(RayTrainWorker pid=124, ip=10.0.0.1)   File "b.py", line 4, in g
(RayTrainWorker pid=123, ip=10.0.0.1) ValueError: bad
(RayTrainWorker pid=124, ip=10.0.0.1) RuntimeError: Socket Timeout
ray.exceptions.RayTaskError(ValueError): ray::f() (pid=123, ip=10.0.0.1)
  File "a.py", line 3, in f
ValueError: bad
""",
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_cause(name: str) -> None:
    rule, text = LOGS[name]
    assert cause(text) == rule


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("dataloader", "KeyError: 'x'", ("data.py", 5)),
        ("group", "ValueError: bad", ("b.py", 9)),
        ("ray", "ValueError: bad", ("a.py", 3)),
        ("torchrun exit 1", "ValueError: mine", ("train.py", 7)),
        ("torn tb", "Traceback (most recent call last)", ("a.py", 3)),
    ],
)
def test_the_root_and_its_place(name: str, text: str, place: tuple[str, int]) -> None:
    found = explained(LOGS[name][1]).cause
    assert found is not None and found.frame is not None
    assert (found.text.lstrip(" |"), (found.frame.file, found.frame.line)) == (text, place)


@pytest.mark.parametrize(
    ("name", "rank", "writer"),
    [
        ("srun", 3, ""),
        ("mpi", 3, ""),
        ("compose", None, "worker-1"),
        ("ray", None, "RayTrainWorker pid=123, ip=10.0.0.1"),
    ],
)
def test_the_process(name: str, rank: int | None, writer: str) -> None:
    found = explained(LOGS[name][1]).cause
    assert found is not None and (found.rank, found.writer) == (rank, writer)


def test_a_watchdog_s_lines_are_one_finding() -> None:
    assert [(each.id, each.count) for each in explained(LOGS["watchdog"][1]).ordered] == [
        ("any.nccl-timeout", 4)
    ]


def test_the_rank_that_was_waited_for_is_named() -> None:
    found = explained(LOGS["notify, remote rank"][1]).cause
    assert found is not None and found.groups["remote"] == "1"
