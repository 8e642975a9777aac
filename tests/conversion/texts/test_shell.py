"""TF810: shell scripts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conversion.rewriting import VENDORS, vendor
from tests.conversion.texts.texting import messages, rewritten, run, said
from torchferry.conversion.texts.shell_lexer import read_script


def shell(text: str, to: str = "ascend") -> str:
    """One converted line."""
    return rewritten("run.sh", text + "\n", to).removesuffix("\n")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("# export CUDA_VISIBLE_DEVICES=0 --device cuda", id="a comment"),
        pytest.param('echo "training on cuda with nccl"', id="a message"),
        pytest.param("printf '%s\\n' CUDA_VISIBLE_DEVICES=0", id="a message with a variable's name"),
        pytest.param("python train.py --cuda --no-cuda --use_cuda", id="flags of the program"),
        pytest.param("python train.py --output-dir cuda:0/x", id="a path"),
        pytest.param("cd cuda && make cuda", id="names of folders and targets"),
        pytest.param("git checkout cuda", id="a branch"),
        pytest.param("python train.py --notes 'device cuda'", id="a text in quotes"),
        pytest.param("MY_CUDA_VISIBLE_DEVICES=0 python a.py", id="a longer name"),
        pytest.param("echo '$CUDA_VISIBLE_DEVICES'", id="no reference in single quotes"),
        pytest.param("CUDA_NUM=3", id="a variable of the script's own"),
        pytest.param("cat <<EOF\ndevice: cuda\nCUDA_VISIBLE_DEVICES=0\nEOF", id="a heredoc"),
        pytest.param("python train.py --gpus 4", id="a count of the program's own"),
    ],
)
def test_noop(line: str) -> None:
    for name in (*VENDORS, "portable"):
        assert shell(line, name) == line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1 python a.py", "ASCEND_RT_VISIBLE_DEVICES=0,1 python a.py"),
        ("export CUDA_VISIBLE_DEVICES=0,1", "export ASCEND_RT_VISIBLE_DEVICES=0,1"),
        ("export A=1 CUDA_VISIBLE_DEVICES=$1", "export A=1 ASCEND_RT_VISIBLE_DEVICES=$1"),
        ("env CUDA_VISIBLE_DEVICES=0 python a.py", "env ASCEND_RT_VISIBLE_DEVICES=0 python a.py"),
        ("docker run -e CUDA_VISIBLE_DEVICES x", "docker run -e ASCEND_RT_VISIBLE_DEVICES x"),
        ("unset CUDA_VISIBLE_DEVICES", "unset ASCEND_RT_VISIBLE_DEVICES"),
        ("n=${#CUDA_VISIBLE_DEVICES}", "n=${#ASCEND_RT_VISIBLE_DEVICES}"),
        ('echo "${CUDA_VISIBLE_DEVICES:-0}"', 'echo "${ASCEND_RT_VISIBLE_DEVICES:-0}"'),
        ("IFS=, read -ra ids <<< $CUDA_VISIBLE_DEVICES", "IFS=, read -ra ids <<< $ASCEND_RT_VISIBLE_DEVICES"),
        ("n=$(echo $CUDA_VISIBLE_DEVICES | wc -c)", "n=$(echo $ASCEND_RT_VISIBLE_DEVICES | wc -c)"),
        ("n=`echo $CUDA_VISIBLE_DEVICES`", "n=`echo $ASCEND_RT_VISIBLE_DEVICES`"),
        ("CUDA_LAUNCH_BLOCKING=1 python a.py", "ASCEND_LAUNCH_BLOCKING=1 python a.py"),
        ("export NCCL_BLOCKING_WAIT=1", "export TORCH_HCCL_BLOCKING_WAIT=1"),
        ("bash -c 'CUDA_VISIBLE_DEVICES=1 python a.py'", "bash -c 'ASCEND_RT_VISIBLE_DEVICES=1 python a.py'"),
        (
            'env "CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}" a',
            'env "ASCEND_RT_VISIBLE_DEVICES=${ASCEND_RT_VISIBLE_DEVICES:-0}" a',
        ),
        (
            "ssh host 'cd x && CUDA_VISIBLE_DEVICES=0 python a.py --device cuda'",
            "ssh host 'cd x && ASCEND_RT_VISIBLE_DEVICES=0 python a.py --device npu'",
        ),
        (
            'CMD="A=1 CUDA_VISIBLE_DEVICES=$i python a.py"; eval $CMD',
            'CMD="A=1 ASCEND_RT_VISIBLE_DEVICES=$i python a.py"; eval $CMD',
        ),
        (
            'sbatch --wrap="CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES python a.py"',
            'sbatch --wrap="ASCEND_RT_VISIBLE_DEVICES=$ASCEND_RT_VISIBLE_DEVICES python a.py"',
        ),
    ],
)
def test_variables(before: str, after: str) -> None:
    assert shell(before) == after


def test_each_vendor_has_its_own_variable() -> None:
    for name in VENDORS:
        own = vendor(name).visible_devices_env
        assert shell("CUDA_VISIBLE_DEVICES=2 python a.py", name) == f"{own}=2 python a.py"


def test_a_variable_is_renamed_only_where_its_values_mean_the_same() -> None:
    line = "export NCCL_DEBUG=INFO"
    assert shell(line, "moorethreads") == "export MCCL_DEBUG=INFO"
    assert shell(line, "ascend") == line
    assert said("run.sh", line) == [("TF810", "todo", "NCCL_DEBUG=INFO")]
    assert shell("export CUDA_HOME=/usr/local/cuda", "moorethreads") == "export CUDA_HOME=/usr/local/cuda"
    assert "MUSA_HOME" in messages("run.sh", "export CUDA_HOME=/usr/local/cuda", "moorethreads")


@pytest.mark.parametrize("value", ['""', "-1", "GPU-8c2f"])
def test_values_without_a_counterpart_keep_the_variable_everywhere(value: str) -> None:
    text = f"export CUDA_VISIBLE_DEVICES={value}\necho $CUDA_VISIBLE_DEVICES\n"
    assert rewritten("run.sh", text) == text
    assert [kind for _, kind, _ in said("run.sh", text)] == ["todo", "info"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("python a.py --device cuda", "python a.py --device npu"),
        ("python a.py --device=cuda:0 x", "python a.py --device=npu:0 x"),
        ('python a.py --dist_backend "nccl"', 'python a.py --dist_backend "hccl"'),
        ("python a.py --dist-backend='nccl'", "python a.py --dist-backend='hccl'"),
        ("./a.sh --devices cuda:0 cuda:1", "./a.sh --devices npu:0 npu:1"),
        ("python a.py --device cuda:$i", "python a.py --device npu:$i"),
        (
            "python a.py train.device=cuda +dist.backend=nccl",
            "python a.py train.device=npu +dist.backend=hccl",
        ),
        ("python a.py \\\n  --map-location \\\n  cuda", "python a.py \\\n  --map-location \\\n  npu"),
        ("python a.py --backend cpu:gloo,cuda:nccl", "python a.py --backend cpu:gloo,npu:hccl"),
        ("DEVICE=cuda", "DEVICE=npu"),
        ('device="cuda:${RANK}"', 'device="npu:${RANK}"'),
        ("DEVICE=${1:-cuda}", "DEVICE=${1:-npu}"),
        ("x=${BACKEND:-nccl}", "x=${BACKEND:-hccl}"),
        ("ARGS=(--device cuda\n  --backend nccl)", "ARGS=(--device npu\n  --backend hccl)"),
        ('if [ "$DEVICE" = "cuda" ]; then :; fi', 'if [ "$DEVICE" = "npu" ]; then :; fi'),
        ("if [[ $dev == cuda ]]; then :; fi", "if [[ $dev == npu ]]; then :; fi"),
        (
            "for device in cuda cpu; do a --device $device; done",
            "for device in npu cpu; do a --device $device; done",
        ),
        ("x && (python a.py --device cuda) || y", "x && (python a.py --device npu) || y"),
        ("case $DEVICE in\n  cpu|cuda) a;;\nesac", "case $DEVICE in\n  cpu|npu) a;;\nesac"),
        ("export CUDA_VISIBLE_DEVICES=`seq -s, 0 3`", "export ASCEND_RT_VISIBLE_DEVICES=`seq -s, 0 3`"),
    ],
)
def test_options_and_settings(before: str, after: str) -> None:
    assert shell(before) == after


@pytest.mark.parametrize(
    "line",
    ["python a.py -d cuda", "python a.py cuda", "python a.py --flavour nccl", "case $1 in cuda) a;; esac"],
)
def test_a_word_whose_name_says_nothing_is_asked_about(line: str) -> None:
    assert shell(line) == line
    ((rule, kind, _),) = said("run.sh", line)
    assert (rule, kind) == ("TF810", "todo")


def test_no_word_names_every_device() -> None:
    line = "python a.py --device cuda --backend nccl"
    assert shell(line, "portable") == line
    assert [kind for _, kind, _ in said("run.sh", line, "portable")] == ["todo", "todo"]
    assert "Leave the setting out" in messages("run.sh", line, "portable")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "python -m torch.distributed.launch --nproc_per_node=2 --use_env a.py -x 1",
            "torchrun --nproc_per_node=2 a.py -x 1",
        ),
        (
            "python3 -m torch.distributed.launch --use-env --nnodes 2 --node_rank $R --master_addr $A a.py",
            "torchrun --nnodes 2 --node_rank $R --master_addr $A a.py",
        ),
        (
            "python -m torch.distributed.launch \\\n  --nproc_per_node 2 \\\n  --use_env \\\n  a.py",
            "torchrun \\\n  --nproc_per_node 2 \\\n  a.py",
        ),
        (
            "$PYTHON -u -m torch.distributed.launch --use_env a.py",
            "$PYTHON -u -m torch.distributed.run a.py",
        ),
    ],
)
def test_the_old_launcher_becomes_torchrun(before: str, after: str) -> None:
    for name in (*VENDORS, "portable"):
        assert shell(before, name) == after


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("python -m torch.distributed.launch --nproc_per_node=2 a.py --use_env", "--local-rank"),
        ("python -m torch.distributed.launch $ARGS --use_env a.py", "options that can't be read"),
        ("python -m torch.distributed.launch --use_env --unheard_of 3 a.py", "options that can't be read"),
    ],
)
def test_the_old_launcher_stays_where_torchrun_is_not_the_same(line: str, reason: str) -> None:
    assert shell(line) == line
    assert reason in messages("run.sh", line)


def test_nvidia_smi_alone_becomes_the_vendors_tool() -> None:
    for name in VENDORS:
        assert shell("nvidia-smi", name) == vendor(name).smi
        assert shell("watch -n 1 nvidia-smi", name) == f"watch -n 1 {vendor(name).smi}"


@pytest.mark.parametrize(
    "line",
    [
        "nvidia-smi -L",
        "nvidia-smi | grep MiB",
        "n=$(nvidia-smi)",
        "command -v nvidia-smi",
        "nvcc -V",
        "docker run --gpus all image",
        "docker run --runtime=nvidia image",
        "torchrun --nproc_per_node=gpu a.py",
        "torchrun --nproc-per-node gpu a.py",
        "export PATH=/usr/local/cuda-11.8/bin:$PATH",
        "srun --gres=gpu:8 python a.py",
        "#SBATCH --gpus-per-node=8",
        "python -c 'import torch; print(torch.cuda.is_available())'",
        'ssh host "echo \\"x\\"; CUDA_VISIBLE_DEVICES=0 python a.py"',
        "CMD='print CUDA_VISIBLE_DEVICES=0 or so'",
        "module load gcc/9 cuda/11.8",
        'bash -c "CUDA_VISIBLE_DEVICES=0; echo \\$CUDA_VISIBLE_DEVICES"',
        "pip install flash-attn",
        "docker build --build-arg DEVICE=cuda .",
    ],
)
def test_what_differs_is_reported(line: str) -> None:
    for name in (*VENDORS, "portable"):
        assert shell(line, name) == line
        assert [kind for _, kind, _ in said("run.sh", line, name)] == ["todo"]


def test_python_in_a_heredoc_is_reported() -> None:
    text = "python - <<PY\nimport torch\ntorch.cuda.synchronize()\nPY\n"
    assert rewritten("run.sh", text) == text
    assert "its own file" in messages("run.sh", text)


def test_a_line_can_be_silenced() -> None:
    text = (
        "export CUDA_VISIBLE_DEVICES=0  # ferry: ignore\npython a.py --device cuda  # ferry: ignore[TF810]\n"
    )
    conversion = run("run.sh", text)
    assert conversion.new_text is None
    assert conversion.findings == ()


def test_a_rule_can_be_turned_off() -> None:
    text = "export CUDA_VISIBLE_DEVICES=0\n"
    assert run("run.sh", text, ignore=("TF810",)).new_text is None


def test_every_line_that_speaks_of_cuda_is_changed_or_reported() -> None:
    text = "LIB=/opt/cuda\nsource cuda\necho cuda\nspecial-tool nccl\n"
    assert [(rule, kind) for rule, kind, _ in said("run.sh", text)] == [
        ("TF802", "todo"),
        ("TF802", "todo"),
        ("TF802", "info"),
        ("TF810", "todo"),
    ]


def test_line_ends_and_the_byte_order_mark_stay() -> None:
    data = "\ufeffexport CUDA_VISIBLE_DEVICES=0\r\n# 注释\tcuda \r\npython a.py --device cuda".encode()
    conversion = run("run.sh", data)
    expected = "export ASCEND_RT_VISIBLE_DEVICES=0\r\n# 注释\tcuda \r\npython a.py --device npu"
    assert conversion.new_text == expected


def test_makefiles() -> None:
    text = "export CUDA_VISIBLE_DEVICES ?= 0\nall:\n\t@CUDA_LAUNCH_BLOCKING=1 a --device cuda $(X) $$CUDA_VISIBLE_DEVICES\n"
    assert rewritten("Makefile", text) == (
        "export ASCEND_RT_VISIBLE_DEVICES ?= 0\nall:\n"
        "\t@ASCEND_LAUNCH_BLOCKING=1 a --device npu $(X) $$ASCEND_RT_VISIBLE_DEVICES\n"
    )
    kept = "CUDA_VISIBLE_DEVICES = 0\nall:\n\techo cuda\n# cuda\n"
    assert rewritten("Makefile", kept) == kept


@pytest.mark.parametrize(
    "text",
    ["'", '"', "$(", "`", "${", "$((1", "a <<X\nb", "x=(a", "case a in b) c;; esac", "a\\", "<", "((", "$"],
)
def test_broken_scripts_are_read_to_their_end(text: str) -> None:
    script = read_script(f"{text}\n--device cuda")
    for command in script.commands:
        assert all(word.start <= word.end <= len(text) + 14 for word in command.words)


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize("name", VENDORS)
def test_a_converted_script_does_the_same_with_other_words(name: str, tmp_path: Path) -> None:
    """The script runs with a program that prints what it was given, before and after."""
    target = vendor(name)
    script = """\
        export CUDA_VISIBLE_DEVICES=0,1
        DEVICE=${1:-cuda}
        count=$(echo $CUDA_VISIBLE_DEVICES | tr ',' '\\n' | wc -l)
        for backend in nccl gloo; do
          ./program --count $count --device=$DEVICE:1 --backend "$backend" 'cuda  stays' \\
            --last cuda:0
        done
        [[ $DEVICE == cuda ]] && echo same
    """
    after = rewritten("run.sh", script, name)
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nprintf "<%s> " "$@"\n')
    program.chmod(0o755)
    outputs = []
    for text in (script, after):
        result = subprocess.run(
            ["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        outputs.append(result.stdout)
    first, last = outputs
    words = first.replace("<cuda  stays>", "*").replace("cuda", target.device_type)
    assert last.replace("<cuda  stays>", "*") == words.replace("nccl", target.dist_backend)
    assert "<2>" in last
    assert last.endswith("same\n")
