"""What names in a pickle mean."""

from __future__ import annotations

import pytest

from torchferry.checkpoint.classes import LoadingNeed, meaning
from torchferry.checkpoint.model import Global


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        (
            LoadingNeed.PLAIN,
            "collections.OrderedDict torch._utils._rebuild_tensor_v2 torch.FloatStorage torch.cuda.HalfStorage "
            "torch.float8_e5m2 torch.storage.UntypedStorage torch.nn.parameter.Parameter builtins.set",
        ),
        (
            LoadingNeed.VALUE,
            "argparse.Namespace types.SimpleNamespace pathlib.PosixPath collections.defaultdict builtins.dict "
            "numpy.core.multiarray._reconstruct numpy._core.multiarray.scalar numpy.dtype",
        ),
        (
            LoadingNeed.NEEDED,
            "functools.partial models.yolo.Model torch.nn.modules.conv.Conv2d",
        ),
        (
            LoadingNeed.DANGEROUS,
            "posix.system os.popen subprocess.Popen builtins.eval builtins.getattr builtins.__import__ types.FunctionType "
            "importlib.import_module runpy.run_path operator.attrgetter torch.load torch.utils.cpp_extension.load_inline",
        ),
    ],
)
def test_meanings(expected: LoadingNeed, names: str) -> None:
    for name in names.split():
        module, _, last = name.rpartition(".")
        assert meaning(Global(module, last)) is expected, name
