"""What the fact tables say only in prose, written out by hand; each entry names the fact it comes from."""

from __future__ import annotations

# Vendor folder -> its id in the fact tables.
VENDORS = {
    "ascend": "ascend",
    "cambricon": "cambricon",
    "tecorigin": "tecorigin",
    "moorethreads": "moorethreads",
    "intel": "intel_xpu",
}

# What the companies are called in Chinese.
COMPANIES_ZH = {
    "ascend": "华为昇腾",
    "cambricon": "寒武纪",
    "tecorigin": "太初元碁",
    "moorethreads": "摩尔线程",
    "intel": "英特尔",
}

# How the fact tables write dtypes.
DTYPES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "int32": "int32", "int64": "int64",
}  # fmt: skip

# ops/*.json, custom_ops: namespaces of libraries that programs call; the others are the vendor's own.
LIBRARIES_WITH_OPERATORS = ("torchvision::", "torchaudio::")

# vendors.json, preferred_memory_format: "channels_last for convolution" (cambricon), "channels_last (NHWC)"
# (tecorigin), "contiguous ..." (ascend, moorethreads); nothing is said for intel.
PREFERS_CHANNELS_LAST = {"cambricon", "tecorigin"}

# vendors.json, migrate_helper.effects (ascend, cambricon); apis/tecorigin.json, observed["torch.jit.script"].
# A vendor's Triton that vendors.json does not name.
# Intel: the README of intel/intel-xpu-backend-for-triton says that PyTorch's binaries for XPU bring it along.
TRITON = {"intel": "triton-xpu (PyTorch's builds for XPU bring it along)"}

JIT_SCRIPT = {
    "ascend": "torch.jit.script and script_method do nothing once transfer_to_npu is imported: the code runs in eager mode",
    "cambricon": "torch.jit.script returns the object unchanged once gpu_migration is imported: the code runs in eager mode",
    # of the plugin itself
    "tecorigin": "torch.jit.script returns the function unchanged (no TorchScript) in torch_sdaa 3.2.1",
}

# Vendors of which the sentence above holds only after the import of one of MIGRATIONS.
JIT_SCRIPT_BY_MIGRATION = {"ascend", "cambricon"}

# The Ascend guide for PyTorch 1.5/1.8, "integrate mixed precision with apex".
APEX_INITIALIZE = {"ascend": "combine_grad=True"}

# vendors.json, migrate_helper.import and older_import: statements there, the modules they name here.
MIGRATIONS = {
    "ascend": ("torch_npu.contrib.transfer_to_npu",),
    "cambricon": ("torch_mlu.utils.gpu_migration",),
    "tecorigin": ("torch_sdaa.utils.cuda_migrate",),
    "moorethreads": ("torchada",),
}

# The Ascend guide's run_distributed_npu.sh (MindStudio 8.3, migration tool, "from one GPU to several NPUs").
# The performance variables are those of the Ascend guide for PyTorch 1.5/1.8, "common environment variables", as far as
# vendors.json still lists them (TASK_QUEUE_ENABLE, COMBINED_ENABLE), and its settings of the logs.
LAUNCH_ENV = {
    "ascend": {
        "ASCEND_GLOBAL_EVENT_ENABLE": "0",
        "ASCEND_GLOBAL_LOG_LEVEL": "3",
        "ASCEND_SLOG_PRINT_TO_STDOUT": "0",
        "COMBINED_ENABLE": "1",
        "HCCL_WHITELIST_DISABLE": "1",
        "TASK_QUEUE_ENABLE": "1",
    }
}

# The toolkits that src/torchferry/emulate can stand in for, and the card that the emulated device says that it is: one
# for which the plugin calls operator functions, and not the old way by graphs.
EMULATION = {"ascend": {"toolkit": "cann", "card": "Ascend910B2"}}

# vendors.json, env: variables whose meaning is that of a CUDA one but whose name is not derived from it.
# ascend "CANN root, set by set_env.sh"; cambricon "toolkit root", "MLU architectures for extensions".
ENV_BY_MEANING = {
    "ascend": {"CUDA_HOME": "ASCEND_HOME_PATH"},
    "cambricon": {"CUDA_HOME": "NEUWARE_HOME", "TORCH_CUDA_ARCH_LIST": "TORCH_BANG_ARCH_LIST"},
}

# CUDA and NCCL variables that programs set. The TORCH_NCCL_* names are those that torch 2.13 reads, the
# NCCL_* ones after them their older spellings.
CUDA_ENV = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_HOME",
    "CUDA_DEVICE_ORDER",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_CUDA_ARCH_LIST",
    "NCCL_ALGO",
    "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT",
    "NCCL_DEBUG",
    "NCCL_DESYNC_DEBUG",
    "NCCL_IB_DISABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_SOCKET_IFNAME",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_DESYNC_DEBUG",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_NCCL_ENABLE_TIMING",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "TORCH_NCCL_HIGH_PRIORITY",
    "TORCH_NCCL_NAN_CHECK",
    "TORCH_NCCL_NONBLOCKING_TIMEOUT",
    "TORCH_NCCL_RETHROW_CUDA_ERRORS",
    "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "TORCH_NCCL_USE_COMM_NONBLOCKING",
    "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
)

# replacements.json: the `cuda` text of each row -> the dotted names that it speaks of. An empty tuple: the row
# is about a pattern, an argument or a dtype, not about a name. A row that is missing here stops the tool.
REPLACEMENT_NAMES: dict[str, tuple[str, ...]] = {
    "apex.normalization.FusedLayerNorm / MixedFusedLayerNorm": (
        "apex.normalization.FusedLayerNorm",
        "apex.normalization.MixedFusedLayerNorm",
        "apex.normalization.fused_layer_norm.FusedLayerNorm",
        "apex.normalization.fused_layer_norm.MixedFusedLayerNorm",
    ),
    "apex.normalization.FusedRMSNorm": (
        "apex.normalization.FusedRMSNorm",
        "apex.normalization.fused_layer_norm.FusedRMSNorm",
    ),
    "apex.optimizers.FusedSGD": ("apex.optimizers.FusedSGD",),
    "apex.optimizers.FusedAdam": ("apex.optimizers.FusedAdam",),
    "apex.optimizers.FusedLAMB": ("apex.optimizers.FusedLAMB",),
    "apex.amp": ("apex.amp",),
    "apex.parallel.DistributedDataParallel": ("apex.parallel.DistributedDataParallel",),
    "apex.parallel.SyncBatchNorm / convert_syncbn_model": (
        "apex.parallel.SyncBatchNorm",
        "apex.parallel.convert_syncbn_model",
    ),
    "apex.contrib.clip_grad / multi_tensor_applier": (
        "apex.contrib.clip_grad",
        "apex.multi_tensor_apply.multi_tensor_applier",
    ),
    "torch.optim.Adam/AdamW(fused=True)": (),
    "torch.nn.DataParallel": ("torch.nn.DataParallel",),
    "flash_attn.flash_attn_func(q,k,v,dropout_p,softmax_scale,causal)": (
        "flash_attn",
        "flash_attn.flash_attn_func",
    ),
    "flash_attn.flash_attn_varlen_func": ("flash_attn.flash_attn_varlen_func",),
    "flash_attn.layers.rotary.apply_rotary_emb": ("flash_attn.layers.rotary.apply_rotary_emb",),
    "xformers.ops.memory_efficient_attention": ("xformers", "xformers.ops.memory_efficient_attention"),
    "xformers.ops.SwiGLU / fused swiglu": ("xformers.ops.SwiGLU",),
    "xformers.ops.unbind": ("xformers.ops.unbind",),
    "torch.backends.cuda.sdp_kernel / enable_flash_sdp / enable_math_sdp": (
        "torch.backends.cuda.sdp_kernel",
        "torch.backends.cuda.enable_flash_sdp",
        "torch.backends.cuda.enable_math_sdp",
    ),
    "torchvision.ops.nms": ("torchvision.ops.nms",),
    "torchvision.ops.batched_nms": ("torchvision.ops.batched_nms",),
    "torchvision.ops.roi_align": ("torchvision.ops.roi_align",),
    "torchvision.ops.deform_conv2d / mmcv DCNv2": (
        "torchvision.ops.deform_conv2d",
        "mmcv.ops.ModulatedDeformConv2d",
    ),
    "torchvision.ops.ps_roi_align / ps_roi_pool": (
        "torchvision.ops.ps_roi_align",
        "torchvision.ops.ps_roi_pool",
    ),
    "channel shuffle (view/transpose/view)": (),
    "YOLOv5 Focus slicing": (),
    "timm DropPath": (),
    "torch.roll in swin-transformer": (),
    "x[mask] = value (bool index_put)": (),
    "softmax(scores + mask) then dropout (BERT)": (),
    "torch.matmul(a, b.transpose(-1,-2))": (),
    "mmdet multiclass_nms / batched_nms": (),
    "mmdet bbox coder (DeltaXYWH, Yolo)": (),
    "LabelSmoothing cross entropy module": (),
    "DALI / CUDA data prefetcher": ("nvidia.dali",),
    "torch.cuda.nvtx": ("torch.cuda.nvtx",),
    "torch.cuda.CUDAGraph": ("torch.cuda.CUDAGraph",),
    "torch.jit.script": ("torch.jit.script",),
    "bitsandbytes / Triton kernels / custom .cu extensions": (
        "triton",
        "torch.utils.cpp_extension.CUDAExtension",
        "torch.utils.cpp_extension.load",
        "torch.utils.cpp_extension.load_inline",
    ),
    "dgl message passing": ("dgl",),
    "torch_scatter / torch_sparse / torch_cluster": ("torch_scatter", "torch_sparse", "torch_cluster"),
    "torch.set_default_dtype(torch.float64) / .double()": (),
    "torch.sparse layouts": (),
    "model.to(memory_format=torch.channels_last)": (),
    "torch.nn.functional.interpolate(scale_factor=..)": (),
    'torch.nn.functional.gelu(approximate="none")': (),
    "torch.nn.LSTM(dropout, proj_size)": (),
    "optimizers with foreach=None and many parameter groups": (),
    "DataLoader yielding device tensors with num_workers>0": (),
    "nn.Embedding with rank>=3 indices": (),
    "conv weight decay / Megatron fused kernels, TransformerEngine": ("transformer_engine",),
}

# Names that reports must never pass over in silence although no row of replacements.json speaks of them.
# "smi": the vendor's own command does the job (vendors.json, smi); "": nothing is known.
FURTHER_NAMES = {
    "bitsandbytes": "",
    "pynvml": "smi",
    "nvidia_smi": "smi",
    "cupy": "",
    "numba.cuda": "",
    "pycuda": "",
    "tensorrt": "",
    "torch_tensorrt": "",
}

# A library that supports the vendor's device itself. bitsandbytes: its installation guide, v0.48.1, "Intel XPU".
FURTHER_OF_VENDOR = {("intel", "bitsandbytes"): "bitsandbytes 0.48 or newer, which supports XPU"}

# replacements.json, source: the vendor on which each source speaks. A row cites the sources of all its vendors.
SOURCE_VENDOR = {
    "torch-npu": "ascend",
    "op-plugin": "ascend",
    "Ascend/vision": "ascend",
    "transformers": "ascend",
    "torch_mlu": "cambricon",
    "torch_musa": "moorethreads",
    "teco-modelzoo": "tecorigin",
    "teco-ops": "tecorigin",
    "modelzoo": "tecorigin",
    "protenix port": "tecorigin",
    "rfdiffusion port": "tecorigin",
    "diffdock port": "tecorigin",
}

# A drop-in with compatible constructor arguments, for every vendor without one of its own.
AUTOMATIC = {
    "apex.normalization.FusedLayerNorm": "torch.nn.LayerNorm",
    "apex.normalization.MixedFusedLayerNorm": "torch.nn.LayerNorm",
    "apex.normalization.fused_layer_norm.FusedLayerNorm": "torch.nn.LayerNorm",
    "apex.normalization.fused_layer_norm.MixedFusedLayerNorm": "torch.nn.LayerNorm",
    "apex.normalization.FusedRMSNorm": "torch.nn.RMSNorm",
    "apex.normalization.fused_layer_norm.FusedRMSNorm": "torch.nn.RMSNorm",
    "apex.parallel.SyncBatchNorm": "torch.nn.SyncBatchNorm",
    "apex.parallel.convert_syncbn_model": "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    "apex.optimizers.FusedSGD": "torch.optim.SGD",
    "apex.optimizers.FusedAdam": "torch.optim.AdamW",
}

# The vendor's own drop-in (replacements.json, the vendor's value in the row). FusedAdam has adam_w_mode=True by
# default, hence the AdamW forms, and torch's where the vendor's decays like Adam. "": the row names something of which
# the constructor is not known.
AUTOMATIC_OF_VENDOR = {
    ("ascend", "apex.optimizers.FusedSGD"): "torch_npu.optim.NpuFusedSGD",
    ("ascend", "apex.optimizers.FusedAdam"): "torch_npu.optim.NpuFusedAdamW",
    ("ascend", "apex.optimizers.FusedLAMB"): "torch_npu.optim.NpuFusedLamb",
    ("cambricon", "apex.optimizers.FusedSGD"): "torch_mlu.optimizers.FusedSGD",
    ("cambricon", "apex.optimizers.FusedAdam"): "torch_mlu.optimizers.FusedAdam",
    ("cambricon", "apex.optimizers.FusedLAMB"): "torch_mlu.optimizers.FusedLAMB",
    ("tecorigin", "apex.optimizers.FusedSGD"): "torch_sdaa.optim.FusedSGD",
    ("tecorigin", "apex.parallel.SyncBatchNorm"): "",
    (
        "tecorigin",
        "apex.parallel.convert_syncbn_model",
    ): "torch_sdaa.nn.SyncBatchNorm.convert_sync_batchnorm",
    ("moorethreads", "apex.optimizers.FusedAdam"): "torch_musa.optim.FusedAdamW",
    ("moorethreads", "apex.optimizers.FusedLAMB"): "torch_musa.optim.FusedLAMB",
}

# Drop-ins with apex's own arguments, in apex's order and with its defaults.
SAME_ARGUMENTS = frozenset(
    {
        "torch_mlu.optimizers.FusedSGD",
        "torch_mlu.optimizers.FusedAdam",
        "torch_mlu.optimizers.FusedLAMB",
        "torch_musa.optim.FusedLAMB",
    }
)

# Default arguments that differ between an apex class and its drop-in. Those of ascend are in replacements.json,
# ascend_fused_optimizers; those of apex and torch are in their own documentation.
CAVEATS = {
    "torch_npu.optim.NpuFusedAdamW": "weight_decay defaults to 0.01, in apex to 0",
    "torch_npu.optim.NpuFusedLamb": "weight_decay defaults to 0, in apex to 0.01",
    "torch.optim.AdamW": "weight_decay defaults to 0.01, in apex to 0",
    "torch.nn.RMSNorm": "eps defaults to the dtype's machine epsilon, in apex to 1e-5",
}

# Operators that take only sparse tensors in PyTorch itself, whatever the table of registrations says.
SPARSE_OPS = {"_coalesce"}

# ops/tecorigin.json, works[].ops: the one entry that is not a comma-separated list of operators.
WORKS_IN_PROSE = {
    "ops of a ResNet-50 AMP training step (conv2d, batch_norm, relu, max_pool2d, adaptive_avg_pool2d, linear, "
    "cross_entropy, SGD), channels_last": (
        "conv2d, batch_norm, relu, max_pool2d, adaptive_avg_pool2d, linear, cross_entropy"
    ),
}

# ops/tecorigin.json, limits[].op -> operator names; an empty tuple: not an aten operator.
LIMITED_OPS: dict[str, tuple[str, ...]] = {
    "embedding": ("embedding",),
    "arcsinh / asinh": ("arcsinh", "asinh"),
    "max.dim": ("max.dim",),
    'reflection_pad / F.pad(mode="reflect")': (
        "reflection_pad1d",
        "reflection_pad2d",
        "reflection_pad3d",
    ),
    "sparse tensors (COO/CSR)": (),
    "index, _index_put_impl_": ("index", "_index_put_impl_"),
    "fused_adam": (),
    "conv2d (FP32)": ("conv2d",),
    "GEMM (BF16)": ("mm", "bmm", "matmul"),
    "torch.jit.script": (),
    "integer hash arithmetic (HashNeRF)": (),
    "paddle conv2d / conv2d_grad": (),
    "paddle elementwise_pow": (),
    "paddle autograd.grad with create_graph (higher order)": (),
}
