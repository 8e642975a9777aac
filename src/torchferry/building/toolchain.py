"""What our sources are compiled with: the installed PyTorch, a C++ compiler, its flags. Imports no torch."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.errors import BuildError
from torchferry.operators.native_functions import package_folder, torch_version
from torchferry.text import Text

OLDEST_TORCH = (2, 4)
# The headers refuse C++17 from here on.
_FIRST_WITH_CXX20 = (2, 12)
# The constructor of c10::Error as it is named when std::string has its form from before C++11.
_OLD_STRING_SYMBOL = b"_ZN3c105ErrorC1ENS_14SourceLocationESs"
# Builds of one release for the CPU or for some CUDA differ in libraries that are not linked here.
_INTERCHANGEABLE_BUILD = re.compile(r"\+(?:cpu|cu\d+)(?:\.cxx11\.abi)?$")
TORCH_LIBRARIES = ("torch", "torch_cpu", "c10")


@dataclass(frozen=True)
class TorchInstallation:
    """A PyTorch on disk."""

    version: str  # 2.13.0+cpu
    folder: Path  # holds include/ and lib/
    torchgen: Path
    cxx11_abi: bool  # whether std::string has its form from C++11 on

    @property
    def release(self) -> tuple[int, int]:
        """The version's first two numbers."""
        return _release(self.version)

    @property
    def build(self) -> str:
        """The version, without what does not matter to a library compiled against it."""
        return _INTERCHANGEABLE_BUILD.sub("", self.version)

    @property
    def label(self) -> str:
        """Version, sort of machine, form of strings: libraries that differ in one can't be exchanged."""
        return f"{self.build}-{os.uname().machine}-cxx11abi{int(self.cxx11_abi)}"


def find_torch() -> TorchInstallation:
    """The PyTorch that `import torch` would give."""
    return torch_in(_folder("torch"), _folder("torchgen"))


def installed_release() -> tuple[int, int]:
    """(2, 13); also of a PyTorch that is too old to be compiled against."""
    return _release(_version(_folder("torch")))


def torch_in(folder: Path, torchgen: Path) -> TorchInstallation:
    """The PyTorch in a folder."""
    version = _version(folder)
    if _release(version) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise BuildError(
            Text(
                f"torch {version} is too old; the compiled parts of TorchFerry need torch {oldest} or newer",
                f"torch {version} 过旧；TorchFerry 的编译部分需要 torch {oldest} 或更新版本",
            )
        )
    return TorchInstallation(version, folder, torchgen, _has_cxx11_abi(folder / "lib" / "libc10.so"))


def _folder(package: str) -> Path:
    folder = package_folder(package)
    if folder is None:
        raise BuildError(
            Text(
                f"{package} is not installed here; pip install torch",
                f"当前环境没有安装 {package}；请执行 pip install torch",
            )
        )
    return folder


def _version(folder: Path) -> str:
    version = torch_version(folder)
    if not version:
        raise BuildError(
            Text(
                f"{folder / 'version.py'} does not tell the version of torch; reinstall torch",
                f"{folder / 'version.py'} 没有说明 torch 的版本；请重新安装 torch",
            )
        )
    return version


def _release(version: str) -> tuple[int, int]:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _has_cxx11_abi(library: Path) -> bool:
    """What `torch.compiled_with_cxx11_abi()` answers, read from the names that a library exports."""
    try:
        return _OLD_STRING_SYMBOL not in library.read_bytes()
    except FileNotFoundError:
        raise BuildError(
            Text(
                f"{library} is missing; the compiled parts of TorchFerry need PyTorch for Linux",
                f"缺少 {library}；TorchFerry 的编译部分需要 Linux 版 PyTorch",
            )
        ) from None


def find_compiler() -> tuple[str, ...]:
    """The compiler that $CXX names, else the first one there is, as the beginning of its command line."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    if chosen:
        if shutil.which(chosen[0]) is None:
            raise BuildError(
                Text(
                    f"$CXX is {chosen[0]!r}, which is not a command here; unset or correct it",
                    f"$CXX 的值 {chosen[0]!r} 不是可用的命令；请取消设置或改正",
                )
            )
        return tuple(chosen)
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return (name,)
    raise BuildError(
        Text(
            "no C++ compiler found, and the device must be compiled once; install g++ (apt-get install g++, "
            "dnf install gcc-c++, conda install gxx), or for the simulated device a TorchFerry wheel with "
            "binaries for your torch",
            "找不到 C++ 编译器，而设备需要先编译一次；请安装 g++（apt-get install g++、dnf install gcc-c++、"
            "conda install gxx），若使用模拟设备也可安装含有对应 torch 版本二进制的 TorchFerry wheel",
        )
    )


def compile_flags(torch: TorchInstallation) -> tuple[str, ...]:
    """The flags that decide what a source becomes; they are part of the cache's key."""
    standard = "c++20" if torch.release >= _FIRST_WITH_CXX20 else "c++17"
    return (f"-std={standard}", *common_flags(torch), "-fvisibility=hidden")


def common_flags(torch: TorchInstallation) -> tuple[str, ...]:
    """The flags of every library of ours, whichever standard it is written in and whatever it shows."""
    return ("-O2", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.cxx11_abi)}")


def path_flags(torch: TorchInstallation, sources: Path) -> tuple[str, ...]:
    """Where PyTorch's headers are (warnings in them are not ours); no path of this machine goes into the result."""
    include = torch.folder / "include"
    return (
        "-isystem",
        str(include),
        "-isystem",
        str(include / "torch/csrc/api/include"),
        f"-ffile-prefix-map={sources}=torchferry",
        f"-ffile-prefix-map={include}=torch",
    )


def link_flags(
    compiler: Sequence[str],
    torch: TorchInstallation | None = None,
    libraries: Sequence[str] = TORCH_LIBRARIES,
) -> tuple[str, ...]:
    """Without a search path at run time: PyTorch has its libraries loaded before ours comes."""
    found = ["-shared", "-Wl,--no-as-needed"]
    if torch is not None:
        found += [f"-L{torch.folder / 'lib'}", *(f"-l{name}" for name in libraries)]
    # whether the compiler links the C++ runtime as a shared library; some have it only to be copied in
    question = [*compiler, "-print-file-name=libstdc++.so"]
    answer = subprocess.run(question, capture_output=True, text=True, check=False).stdout.strip()
    if answer != "libstdc++.so":
        return (*found, "-Wl,--no-undefined")
    # A second C++ runtime inside our library would clash with PyTorch's; the one it has loaded serves us as well.
    return (*found, "-nodefaultlibs", "-lgcc_s", "-lgcc", "-lm", "-lc")
