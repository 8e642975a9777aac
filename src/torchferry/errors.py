"""The ways in which a user's input can be wrong; caught once, in cli/main.py."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING

from torchferry.text import NOTHING, Text, then, user_language

if TYPE_CHECKING:
    from typing_extensions import Self


class FerryError(Exception):
    """Bad usage or bad input: one line that says what is wrong, where, and what to do; or one line for each mistake.

    `str(error)` is English, for logs and for callers from Python; a command shows the lines in the user's language.
    """

    exit_code = 2

    def __init__(self, *lines: Text) -> None:
        self.texts = lines
        super().__init__("\n".join(text.en for text in self.texts))

    def __reduce__(
        self,
    ) -> tuple[type[FerryError], tuple[Text, ...]]:  # from a worker process, in both languages
        return type(self), self.texts

    def to_json(self) -> str:
        """What another process needs to raise the same lines again."""
        return json.dumps(self.texts)

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(*(Text(*pair) for pair in json.loads(text)))

    @property
    def text(self) -> Text:
        """All lines as one text in both languages, to be part of another sentence."""
        return Text("\n".join(text.en for text in self.texts), "\n".join(text.zh for text in self.texts))

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines in the user's language."""
        return tuple(text.in_language(user_language()) for text in self.texts)

    @property
    def shown(self) -> str:
        """All lines in the user's language."""
        return "\n".join(self.lines)


class InputError(FerryError):
    """The path to work on is missing, unreadable or of the wrong kind."""


class OutputError(FerryError):
    """The output can't be written there."""


class VendorError(FerryError):
    """A vendor is unknown, or its data does not fit the schema."""


class RuleFileError(FerryError):
    """A user's rule file has mistakes: one line for each."""


class ReportError(FerryError):
    """A findings file can't be read, or a report format is unknown."""


class BuildError(FerryError):
    """The compiled part of the simulated device can't be built or used here."""


class RunError(FerryError):
    """A program can't be started as requested."""


# What the system says in English alone, in Chinese.
_SYSTEM_REASONS = {
    errno.ENOENT: "没有该文件或文件夹",
    errno.EACCES: "权限不足",
    errno.EPERM: "不允许该操作",
    errno.EEXIST: "文件已存在",
    errno.EISDIR: "是文件夹",
    errno.ENOTDIR: "不是文件夹",
    errno.ENOTEMPTY: "文件夹非空",
    errno.ENOSPC: "磁盘空间不足",
    errno.EDQUOT: "超出磁盘配额",
    errno.EROFS: "文件系统只读",
    errno.EFBIG: "文件过大",
    errno.ENAMETOOLONG: "文件名过长",
    errno.EIO: "读写出错",
    errno.ENOEXEC: "不是可执行文件",
    errno.ENOMEM: "内存不足",
    errno.ELOOP: "符号链接层数过多",
}


def system_reason(error: OSError) -> Text:
    """Why the system refused, without the path."""
    english = error.strerror or str(error)
    return Text(english, _SYSTEM_REASONS.get(error.errno or 0, english))


def not_readable(path: object, reason: OSError | str | Text, advice: Text | None = None) -> InputError:
    """An input that can't be read."""
    return InputError(
        _refused(Text("{path}: can't be read: {reason}", "{path}：无法读取：{reason}"), path, reason, advice)
    )


def not_writable(path: object, reason: OSError | str | Text, advice: Text | None = None) -> OutputError:
    """An output that can't be written."""
    said = Text("{path}: can't be written: {reason}", "{path}：无法写入：{reason}")
    return OutputError(_refused(said, path, reason, advice))


def _refused(said: Text, path: object, reason: OSError | str | Text, advice: Text | None) -> Text:
    why = system_reason(reason) if isinstance(reason, OSError) else reason
    return then(said.format(path=path, reason=why), advice or NOTHING)


# What to do about an output that can't be written.
ANOTHER_PLACE = Text("choose another place", "请另选位置")
EXISTING_FOLDER = Text("name a file in a folder that exists", "请给出已有文件夹中的文件名")


def no_place(path: object, advice: Text = EXISTING_FOLDER) -> OutputError:
    """An output in a folder that does not exist or is not writable."""
    return OutputError(
        Text(f"{path}: can't be written there; {advice.en}", f"{path}：无法写入该位置；{advice.zh}")
    )
