"""Programs of the names that a vendor's table calls available: each is looked up, and called where arguments are evident.

What a call answers is compared where it is determined; else its type is.
"""

from __future__ import annotations

from torchferry.vendors.model import Support, Vendor

_CUDA = "torch.cuda."
# Calls by the last part of a name, whose answer is determined; `found` in the programs is what the name means.
_DETERMINED = """
can_device_access_peer(0, 1)  current_device()  device_count()  empty_cache()  init()  get_allocator_backend()
get_device_capability()  get_device_name()  get_sync_debug_mode()  get_per_process_memory_fraction()  ipc_collect()
is_available()  is_bf16_supported()  is_current_stream_capturing()  is_initialized()  manual_seed(3)  manual_seed_all(3)
amp_definitely_not_available()  is_built()  is_nccl_available()  seed()  seed_all()  set_device(0)  _lazy_init()
set_per_process_memory_fraction(1.0)  set_sync_debug_mode(0)  synchronize()  reset_accumulated_host_memory_stats()
reset_accumulated_memory_stats()  reset_max_memory_allocated()  reset_max_memory_cached()  reset_peak_memory_stats()
reset_peak_host_memory_stats()  _sleep(10)  mark('here')  range_pop()  _record_memory_history(None)
set_rng_state(module.get_rng_state())  set_rng_state_all(module.get_rng_state_all())
set_stream(module.current_stream())  caching_allocator_delete(module.caching_allocator_alloc(512))
clear()  is_cuda  is_npu  allow_tf32  benchmark  deterministic  enabled
get_device(torch.ones(1, device=device))  record_stream(torch.ones(1, device=device), module.current_stream())
"""
# Calls whose answer is another one each time, or on each machine: the type of it.
_OF_A_TYPE = """
current_blas_handle()  current_stream()  default_stream()  get_device_properties(0)  graph_pool_handle()  max_size
host_memory_stats()  host_memory_stats_as_nested_dict()  initial_seed()  max_memory_allocated()  max_memory_cached()
max_memory_reserved()  memory_allocated()  memory_cached()  memory_reserved()  memory_snapshot()  memory_stats()  size
_snapshot()  memory_stats_as_nested_dict()  memory_summary()  mem_get_info()  caching_allocator_alloc(512)
range_start('here')  range_push('here')  Stream()  Event()  MemPool()  GradScaler()  autocast()  cann  cuda
"""
_PROGRAMS = {
    "custom_bwd": "seen = [callable(found)]",
    "custom_fwd": "seen = [callable(found)]",
    "default_generators": "seen = [len(found), type(found[0]).__name__]",
    "device": "with found(1):\n    seen = [module.current_device()]",
    "device_of": "with found(torch.ones(1, device=device)):\n    seen = [module.current_device()]",
    "get_rng_state": "seen = [found().dtype, found().shape, found().device]",
    "get_rng_state_all": "seen = [len(found()), found()[0].dtype]",
    "annotate": "with found('here'):\n    seen = [True]",
    "mstx": "seen = [callable(found.mark)]",
    "nvtx": "seen = [callable(found.mark)]",
    "OutOfMemoryError": "seen = [issubclass(found, RuntimeError), found.__name__]",
    "pin_memory": "seen = [found(torch.ones(2)).is_pinned()]",
    "range": "with found('here'):\n    seen = [True]",
    "range_end": "seen = [callable(found)]",
    "stream": "with found(module.Stream()):\n    seen = [module.current_stream() == module.default_stream()]",
    "StreamContext": "with found(module.Stream()):\n    seen = [module.current_stream() == module.default_stream()]",
    "graph": (
        "held = module.NPUGraph() if hasattr(module, 'NPUGraph') else module.CUDAGraph()\n"
        "with found(held):\n    one = torch.ones(1, device=device)\nheld.replay()\nseen = [one]"
    ),
    "NPUGraph": "seen = [found.__name__, isinstance(found(), found)]",
    "CUDAGraph": "seen = [isinstance(found(), found)]",
    "make_graphed_callables": (
        # PyTorch warns once in a process, wherever the first one is
        "import warnings\nwarnings.simplefilter('ignore')\n"
        "one = torch.ones(2, 2, device=device, requires_grad=True)\n"
        "made = found(torch.nn.Linear(2, 2).to(device), (one,))\nseen = [made(one).shape]"
    ),
    "change_current_allocator": (
        "class Own:\n    def allocator(self):\n        return None\nseen = [found(Own())]"
    ),
    "NPUPluggableAllocator": "seen = [found('/nowhere.so', 'one', 'other')]",
    "CUDAPluggableAllocator": "seen = [found('/nowhere.so', 'one', 'other')]",
    "utilization": "seen = [type(found()).__name__]",
    "_dump_snapshot": (
        "import os, tempfile\nwith tempfile.TemporaryDirectory() as folder:\n"
        "    found(folder + '/here')\n    seen = [os.path.getsize(folder + '/here') > 0]"
    ),
    "use_mem_pool": "with found(module.MemPool()):\n    seen = [torch.ones(2, device=device)]",
    "Tensor": "seen = [found(2).shape, found(2).dtype, found(2).device]",
    # PyTorch warns of typed storages once in a process, wherever the first one is
    "Storage": "import warnings\nwarnings.simplefilter('ignore')\nseen = [len(found(2)), found(2).dtype]",
}
# What takes the number of a device; old names and what answers in a way of its own are left to the calls above.
_OF_A_DEVICE = """
current_stream default_stream get_device_name get_device_properties get_rng_state max_memory_allocated max_memory_reserved
mem_get_info memory_allocated memory_reserved memory_stats memory_stats_as_nested_dict memory_summary
reset_accumulated_memory_stats reset_peak_memory_stats set_device synchronize utilization
"""
_ON_EACH_DEVICE = """\
kinds = [type(found(place)) for place in (1, device[:-1] + '1', torch.device(device[:-1] + '1'), None)]
module.set_device(0)
seen = [kind.__name__ if kind.__module__ in ('builtins', 'collections') else 'an object' for kind in kinds]
"""
_ON_NO_DEVICE = """\
try:
    seen = [found(9)]
finally:
    module.set_device(0)
"""
_TYPE = "kind = type({})\nseen = [kind.__name__ if kind.__module__ in ('builtins', 'collections') else 'an object']"
# Methods and properties are looked up on what they belong to.
_MOVED = {
    "torch.nn.Module": "torch.nn.Linear(2, 2)",
    "torch.nn.utils.rnn.PackedSequence": "torch.nn.utils.rnn.pack_sequence([torch.ones(2)])",
    "torch.Tensor": "torch.ones(2)",
    "torch.UntypedStorage": "torch.ones(2).untyped_storage()",
}
_KIND = (
    "import types\n"
    "seen = ['module' if isinstance(found, types.ModuleType) else 'class' if isinstance(found, type) "
    "else 'callable' if callable(found) else type(found).__name__]"
)


def programs_of_names(vendor: Vendor, as_cuda: bool) -> dict[str, str]:
    """ "names: NAME" -> source, under CUDA's names if those are to be tried, else under the vendor's own."""
    found = {}
    for cuda, api in sorted(vendor.apis.items()):
        if api.support not in (Support.UNSUPPORTED, Support.UNKNOWN):
            name = cuda if as_cuda else api.name or cuda.replace(_CUDA, f"{vendor.torch_module}.")
            found[f"names: {name}"] = _program(name)
            if not as_cuda and name.rpartition(".")[2] in _OF_A_DEVICE.split():
                found[f"names: {name} of each card"] = f"found = {name}\n{_ON_EACH_DEVICE}"
                found[f"names: {name} of a card that is not there"] = f"found = {name}\n{_ON_NO_DEVICE}"
    return found


def _program(name: str) -> str:
    owner, _, last = name.rpartition(".")
    if owner in _MOVED and last in ("cuda", "npu"):
        return f"value = {_MOVED[owner]}.{last}()\nseen = [type(value).__name__, str(getattr(value, 'device', ''))]"
    if owner in _MOVED and last in ("is_cuda", "is_npu"):
        return f"seen = [{_MOVED[owner]}.{last}]"
    return f"found = {name}\n{_use(last)}"


def _use(last: str) -> str:
    kind = next((kind for kind in ("Tensor", "Storage") if last.endswith(kind)), last)
    if kind in _PROGRAMS:
        return _PROGRAMS[kind]
    for calls, form in ((_DETERMINED, "seen = [{}]"), (_OF_A_TYPE, _TYPE)):
        for call in calls.replace("\n", "  ").split("  "):
            if call.partition("(")[0] == last:
                return form.format(f"found{call[len(last) :]}")
    return _KIND
