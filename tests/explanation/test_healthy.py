"""Logs of runs that were fine: nothing in them may be claimed to be why a run failed."""

from __future__ import annotations

import pytest

from tests.explanation.explaining import cause

HEALTHY = {
    "sk": "epoch 1 train_error: 0.123 val_error: 0.2\nTop-1 error: 23.85\nTest error: 1.2%\n",
    "mse": "Mean Squared Error: 0.0123\nMean Absolute Error: 0.2\nRMSE error: 0.2\n",
    "zero": "Finished: 0 errors, 0 warnings\n0 failed, 12 passed\nno error found\n",
    "pytest": "tests/test_a.py::test_error_handling PASSED\ntests/test_b.py::test_raises_ValueError PASSED\n== 12 passed, 1 warning in 0.12s ==\n",
    "dep": '/usr/lib/python3/site-packages/torch/nn/functional.py:780: UserWarning: Note that order of the arguments: ceil_mode and return_indices will change to match the args list in nn.MaxPool2d in a future release.\n  warnings.warn("Note")\n',
    "future": "a.py:3: FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cuda', args...)` instead.\n  scaler = torch.cuda.amp.GradScaler()\n",
    "config": "{'lr': 0.1, 'on_error': 'raise', 'error_policy': 'ignore', 'fail_fast': False}\nNamespace(error_bound=0.1, ignore_errors=True)\n",
    "yaml": "on_error: continue\nlog_level: ERROR\nerrors: ignore\nfail_on_error: false\n",
    "yaml2": "logging:\n  level: ERROR\n  error: true\nhandlers:\n - error: null\n",
    "retry": "urllib3.connectionpool WARNING Retrying (Retry(total=4, connect=None)) after connection broken by 'NewConnectionError': /simple/\nDownloading model... done\n",
    "retry2": "ConnectionError: attempt 1 failed, retrying in 5s\nattempt 2 ok\nDownloaded 100%\nepoch 1 loss 0.3\nepoch 2 loss 0.2\n",
    "hf": "Some weights of BertForSequenceClassification were not initialized from the model checkpoint at bert-base-uncased and are newly initialized: ['classifier.bias', 'classifier.weight']\nYou should probably TRAIN this model on a down-stream task to be able to use it for predictions and inference.\n",
    "omp": "WARNING:torch.distributed.run:\n*****************************************\nSetting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded, please further tune the variable for optimal performance in your application as needed. \n*****************************************\n",
    "scaler": "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\nepoch 1\n",
    "nan": "iter 10 loss: nan skipped batches: 0\n",
    "nccl-info": "node1:100:100 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\nnode1:100:100 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation\nnode1:1:1 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22\n",
    "nccl-plugin": "node1:100:100 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so\nnode1:100:100 [0] NCCL INFO NET/IB : No device found.\nnode1:1:1 [0] NCCL INFO NCCL_IGNORE_CPU_AFFINITY set by environment to 1.\ndlerror=libnccl-net.so: cannot open shared object file: No such file or directory No plugin found (libnccl-net.so), using internal implementation\n",
    "c10dwarn": "[W socket.cpp:663] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - Cannot assign requested address).\nepoch 1 loss 0.2\n",
    "c10dwarn2": "[W1116 10:11:12.123 socket.cpp:752] [c10d] The client socket has failed to connect to [node1]:29500 (errno: 110 - Connection timed out).\nepoch 1 loss 0.2\nepoch 2\n",
    "tf": "2024-05-06 10:11:12.123456: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\n2024-05-06 10:11:12.123456: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT\nepoch 1\n",
    "mlperf": ':::MLLOG {"namespace": "", "key": "error", "value": 0}\n',
    "lossdict": "step 10 {'loss': 0.1, 'loss_error': 0.2, 'cls_error': 12.5}\n",
    "killed-word": "Killed 3 stale cache entries\nAborted transactions: 0\nTerminated workers gracefully: 4\n",
    "killed-word2": "Killed monsters: 17\n",
    "seg": "Segmentation faults handled: 0\nsegmentation fault tolerance enabled\n",
    "code": "def f():\n    raise ValueError('x')\n    # RuntimeError: nothing\n",
    "pip": "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed. This behaviour is the source of the following dependency conflicts.\nfoo 1 requires bar, which is not installed.\nSuccessfully installed baz-1.0\n",
    "git": "error: pathspec 'x' did not match any file(s) known to git\nepoch 1\n",
    "help": "usage: train.py [-h] [--error-rate E]\n  --on-error {raise,ignore}  what to do on an error: raise or ignore\n",
    "ds": "[2024-05-06 10:11:12,123] [INFO] [config.py:1000:print]   curriculum_enabled_legacy .... False\n[2024-05-06 10:11:12,123] [INFO] [config.py:1000:print]   elasticity_enabled ........... False\n  error: none\n",
    "ds2": "[WARNING] async_io requires the dev libaio .so object and headers but these were not found.\n [WARNING]  please install triton==1.0.0 if you want to use sparse attention\n",
    "bert": '{"label": "error: cannot open file", "text": "RuntimeError: CUDA out of memory"}\n',
    "chat": "assistant: To fix `RuntimeError: CUDA out of memory`, reduce the batch size.\nassistant: a traceback (most recent call last) means...\n",
    "lightning": "`Trainer.fit` stopped: `max_epochs=3` reached.\nGPU available: False, used: False\nTPU available: False, using: 0 TPU cores\n",
    "npu-info": "[INFO] GE(1,python):2024-05-06-10:11:12.000.001 [api.cc:5]7 error_tracking enabled, error code is 0\n[INFO] RUNTIME errno=0\n",
    "npu-warn": "[W compiler_depend.ts:190] Warning: CAUTION: The operator 'aten::_foreach' is fine\n/usr/lib/torch_npu/utils/path_manager.py:79: UserWarning: Warning: The /usr/local/Ascend owner does not match the current user.\n",
    "npu-transfer": "torch_npu/contrib/transfer_to_npu.py:164: ImportWarning: \n    *************************************************************************************************************\n    The torch.Tensor.cuda and torch.nn.Module.cuda are replaced with torch.Tensor.npu and torch.nn.Module.npu now..\n    The torch.cuda.DoubleTensor is replaced with torch.npu.FloatTensor cause the double type is not supported now..\n",
    "ascendenv": "ASCEND_OPP_PATH=/usr/local/Ascend/opp\nHCCL_CONNECT_TIMEOUT=120\nTORCH_NPU_FALLBACK_CPU_DISABLE=1\nCUSTOM_DEVICE_BLACK_LIST=pow\n",
    "files": "reading data/error_0001.png\nreading EI0002.jpg\nsaved to out/EZ9999/model.pt\nloading EB0042.wav\n",
    "ids": "sample ED1234 done\nproduct EA5678 ok\nresult: 507015\nret=500002 rows\nresult = 100000\n",
    "ids2": "num samples result: 207001\nerrcode = 100000\n",
    "env": "PYTHONFAULTHANDLER=1\nSIGTERM handler installed\nregistered handler for SIGSEGV, SIGABRT\n",
    "sig": "INFO installing signal handlers for SIGINT SIGTERM SIGSEGV\n",
    "faulthand": "wandb: WARNING Serializing object of type list that is 1.1MB\nwandb: ERROR Failed to detect the name of this notebook, you can set it manually with the WANDB_NOTEBOOK_NAME environment variable.\nwandb: Run data is saved locally\n",
    "sync": "INFO stream sync mode: error free\n",
    "brk": "Connection reset by peer, reconnecting (1/3)\nreconnected\nepoch 1\n",
    "wget tries the next address": "Resolving x.org... 10.1.2.3, 10.1.2.4\nConnecting to x.org|10.1.2.3|:443... failed: Connection refused.\nConnecting to x.org|10.1.2.4|:443... connected.\nHTTP request sent, awaiting response... 200 OK\nSaving to: 'x.pth'\n",
    "pip tries again": "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'ReadTimeoutError(\"HTTPSConnectionPool(host='pypi.org', port=443): Read timed out. (read timeout=15)\")': /simple/numpy/\nCollecting numpy\nSuccessfully installed numpy-2.0\n",
    "hub tries again": "Error while downloading from https://cdn-lfs.huggingface.co/x: HTTPSConnectionPool(host='cdn-lfs.huggingface.co', port=443): Read timed out.\nTrying to resume download...\nmodel.safetensors: 100%\nepoch 1 loss 0.3\n".replace(
        "Error while", "WARNING:huggingface_hub.file_download:Error while"
    ),
    "wandb offline": "wandb: Network error (ConnectionError), entering retry loop.\nepoch 1 loss 0.3\n",
    "git warns": "warning: redirecting to https://gitee.com/a/b.git/\nCloning into 'b'...\n",
    "ssh's first time": "Warning: Permanently added 'node2,10.0.0.2' (ED25519) to the list of known hosts.\n",
    "a cached data set": "Files already downloaded and verified\nUsing downloaded and verified file: ./data/cifar-10-python.tar.gz\n",
    "a scale that falls": "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0.5\nepoch 1\n",
    "nccl looks for its network": "node1:1:1 [0] NCCL INFO Call to connect returned Connection refused, retrying\nnode1:1:1 [0] NCCL INFO comm 0x7f rank 0 nranks 2 - Init COMPLETE\nepoch 1\n",
    "jupyter": "In [3]: raise KeyError('LOCAL_RANK')\n",
    "dmesg": "host memory 512GB; oom-killer disabled; oom-kill policy none\n",
    "earlystop": "EarlyStopping: no improvement, error 0.2 did not decrease\nINFO: best error: 0.11 at epoch 3\n",
    "evalerr": "Eval results: error: 0.123, accuracy: 0.9\nValidation error: 0.11\n",
    "errbar": "Error: 0.234 (0.245)  Acc@1 78.1\nError: 12.3%\n",
    "xpu": "INFO: No XPU devices are available, using CPU\n",
    "loglevel": "TORCH_SDAA_LOG_LEVEL=error\nASCEND_GLOBAL_LOG_LEVEL 3 (ERROR)\nLog level set to ERROR\n",
    "table": "| metric | value |\n| error | 0.2 |\n| ERROR | 0.1 |\n",
    "stats": "requests: 100 ERROR 0 OK 100\nstatus ERROR=0 WARN=2\n",
    "ckpt": "=> no checkpoint found at 'model.pth' (No such file or directory), starting from scratch\n",
    "proxy": "failed to import apex, falling back to torch.amp\nNo module named 'apex': using native AMP\nWarning: flash_attn not installed (No module named 'flash_attn'), using sdpa\nepoch 1 loss 0.1\n",
    "proxy2": "Could not import xformers: No module named 'xformers'\nepoch 1 loss 0.1\nepoch 2\n",
    "torchrundone": "W0506 10:11:12.000 9 torch/distributed/run.py:793] \n[rank0]: epoch 1\n[rank0]:[W506 10:11:12.123 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL.\n",
    "dynamo": "[WARNING] torch._dynamo hit config.recompile_limit (8)\n   function: 'f' (a.py:3)\n   last reason: 0/7: x.shape[0] == 3\n",
    "inductor": "AUTOTUNE mm(64x64, 64x64)\n  triton_mm_1 0.0123 ms 100.0%\nSingleProcess AUTOTUNE takes 1.2 seconds; error tolerance 0.1\n",
    "progress bar": "".join(f"\r{n}%|####| {n}/100 [00:01<00:01, loss=0.1, error=0.2]" for n in range(100))
    + "\n",
    "a sample that was skipped": 'Traceback (most recent call last):\n  File "data.py", line 3, in get\n    open(x)\n'
    "FileNotFoundError: [Errno 2] No such file or directory: 'x.jpg'\n" + "step 1 loss 0.1\n" * 600,
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_claimed(name: str) -> None:
    assert cause(HEALTHY[name]) == ""
