"""What strangers must not read is taken out of texts, and what they need stays."""

from __future__ import annotations

import ast

import pytest

from torchferry.report.anonymous import (
    Anonymiser,
    PrivateFacts,
    PrivateKind,
    counted_kinds,
    facts_of,
    replaced_table,
)

ENVIRONMENT = {
    "USER": "liwei",
    "HOSTNAME": "gpu-7",
    "HF_TOKEN": "abcdef-123456",
    "EDITOR": "vim",
    "TORCHFERRY_CASE_TO": "cambricon",
    "MONKEY": "see",
}


def anonymiser(*learned: str, **more: tuple[str, ...]) -> Anonymiser:
    facts = facts_of(ENVIRONMENT, "gpu-7.corp.example")
    made = Anonymiser(PrivateFacts(**{**vars(facts), **more}))  # type: ignore[arg-type]
    for text in learned:
        made.learn(text)
    return made


STAYS = [
    "at::native::add, aten::add_.Tensor, torch.ops.aten.max.dim at 12:34:56, 5 MB/s, N/A, and/or, 1/2",
    "driver version 24.1.0.3, version=8.0.0.1, torch==2.1.0.1, v10.0.0.1",
    "127.0.0.1 and 0.0.0.0 and ::1 and localhost",
    "/usr/lib/x86_64-linux-gnu/libc.so.6 /dev/davinci0 /proc/self /etc/hosts",
    "see https://pytorch.org/docs/stable/x.html and https://gitee.com/ascend/pytorch",
    "num_tokens=128, token: 4096, max_key=3, keyboard=abcdefghijk",
    "_ZN2at6native28vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE",
    "src/models/net.py:31: layer1.0.conv1 (32x100:float32) 0.1.2.3",
    "float-32 top-1 rank-0 step-12 conv2d-3x3 0xdeadbeef 1e-05",
    "ASCEND_LAUNCH_BLOCKING=1\nexport OMP_NUM_THREADS=8\nRANK=3",
    "host: localhost, device: npu, node: none, the host said no",
]


@pytest.mark.parametrize("text", STAYS)
def test_what_stays(text: str) -> None:
    assert anonymiser(text)(text) == text


TAKEN_OUT = [
    ('File "/home/liwei/a b/train.py", line 31', 'File "<path-1>/train.py", line 31'),
    ("/work/x/train.py:34, /work/x/net.py and /work/x", "<path-1>/train.py:34, <path-1>/net.py and <path-1>"),
    ("/opt/c/lib/python3.11/site-packages/torch/nn/a.py", "<path-1>/site-packages/torch/nn/a.py"),
    ("PATH=/srv/liwei/bin:/usr/bin", "PATH=<value-1>"),
    ("--data=/mnt/team/liwei.", "--data=<path-1>."),
    ("~/secret/run.sh and ~liwei/x", "<path-1>/run.sh and <path-2>"),
    (r"C:\Users\liwei\train.py", "<path-1>/train.py"),
    ("file:///home/liwei/x.py", "file://<path-1>/x.py"),
    ("liwei ran it on gpu-7, LIWEI on GPU-7.corp.example", "<user-1> ran it on <host-1>, <user-1> on <host-2>"),
    ("liwei@gpu-7:~$ python", "<user-1>@<host-1>:~$ python"),
    ("10.1.2.3:29500, 10.1.2.3 and 10.1.2.4", "<address-1>:29500, <address-1> and <address-2>"),
    ("fe80::1:2:3:4 02:42:ac:11:00:02", "<address-1> <address-2>"),
    ("a.b+c@corp.example.com", "<email-1>"),
    ("http://git.corp/x?token=abc s3://bucket/x", "<url-1> <url-2>"),
    ("https://me:pw@github.com/a/b", "<url-1>"),
    ("abcdef-123456", "<secret-1>"),
    ("api_key = 'k3yk3yk3yk3y'", "api_key = '<secret-1>'"),
    ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer <secret-1>"),
    ("hf_abcdefghijklmnopqrst ghp_abcdefghijklmnopqrstuvwxyz", "<secret-1> <secret-2>"),
    ("id 0123456789abcdef0123456789abcdef01234567", "id <secret-1>"),
    ("export WANDB_PROJECT=alpha\nHCCL_TOKEN=xyz", "export WANDB_PROJECT=<value-1>\nHCCL_TOKEN=<value-2>"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nend", "<secret-1>\nend"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), TAKEN_OUT)
def test_what_is_taken_out(before: str, after: str) -> None:
    assert anonymiser()(before) == after


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("  host      : node-17.hpc.example", "node-17"),
        ("node-17:1234:1250 [0] NCCL INFO Bootstrap", "node-17"),
        ("[prterun-node-17@1,3]<stderr>: MASTER_ADDR=node-17", "node-17"),
        ("Nov 19 14:30:01 node-17 kernel: oom", "node-17"),
        ("host node-17 start", "node-17"),
        ("connecting to trainer.team.internal", "trainer.team.internal"),
    ],
)
def test_a_name_that_was_learned_is_taken_out_everywhere(line: str, host: str) -> None:
    hide = anonymiser(line)
    assert host not in hide(line)
    assert hide(f"rank 3 on {host} failed").startswith("rank 3 on <host-")


def test_users_are_learned_from_their_homes() -> None:
    hide = anonymiser("/home/zhangsan/x.py", "/home/model/x.py")
    assert hide("zhangsan has a model") == "<user-1> has a model"  # nobody is called model


def test_words_of_the_user_s_choice() -> None:
    hide = anonymiser(words=("ProjectX",))
    assert hide("projectx/train.py of PROJECTX") == "<word-1>/train.py of <word-1>"


def test_a_toolkit_stays_where_everybody_has_it() -> None:
    text = "/usr/local/Ascend/ascend-toolkit/latest/lib64/libascendcl.so"
    assert anonymiser(public_folders=("/usr/local/Ascend",))(text) == text
    assert anonymiser()(text) == "<path-1>/libascendcl.so"


SOURCE = '''"""Made by liwei."""
# from /home/liwei/work/train.py
liwei = {"x": "/home/liwei/a.txt", "n": "npu"}
text = f"{liwei['n']} on gpu-7"
assert liwei["n"] == "npu"
'''


def test_of_source_only_comments_and_strings_change() -> None:
    changed = anonymiser().in_source(SOURCE)
    exec(compile(changed, "<source>", "exec"), {})
    names = {node.id for node in ast.walk(ast.parse(changed)) if isinstance(node, ast.Name)}
    assert "liwei" in names and "/home" not in changed
    assert changed.startswith('"""Made by <user-1>."""\n# from <path-1>/train.py\n')


def test_some_kinds_alone() -> None:
    text = "gpu-7 is 10.1.2.3, see /home/liwei"
    assert anonymiser()(text, frozenset({PrivateKind.HOST})) == "<host-1> is 10.1.2.3, see /home/liwei"


def test_what_its_owner_is_shown() -> None:
    hide = anonymiser()
    hide("gpu-7 gpu-7 abcdef-123456 /home/liwei/x.py")
    rows = [[cell.say("en") for cell in row] for row in replaced_table(hide.replacements).cells]
    assert rows == [
        ["secret", "abc…", "<secret-1>", "1"],
        ["path", "/home/liwei", "<path-1>", "1"],
        ["host name", "gpu-7", "<host-1>", "2"],
    ]
    assert counted_kinds(hide.replacements) == {"secret": 1, "path": 1, "host": 1}


def test_a_long_line_takes_no_long_time() -> None:
    for piece in ("a.", "a-", "/a", "token", "A1", "0:", "x@"):
        anonymiser()(piece * 1000)
