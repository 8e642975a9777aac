"""What `make demo` shows, stage by stage: whether this machine is ready; the operators of one training program looked up
for four vendors; the program carried to three of them and to portable code, then run unchanged on a simulated device,
proved equal to the original both ways, and on a vendor's own plugin; a crash explained, a wrong kernel and a bottleneck
found; another program, for one card, made one for two; the checkpoint that the simulated device has left made an ONNX
model; a delivery for a model zoo; and a scan.

Run it again as often as you like: ferry replaces its own earlier output in demo-out/.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
ROOT = EXAMPLES.parent
OUT = ROOT / "demo-out"
TARGETS = ("ascend", "cambricon", "tecorigin", "portable")
ORIGINAL = "../examples/imagenet/main.py"  # from demo-out/, where programs run: they leave checkpoints
FAULTY = "../examples/accuracy/train.py"
SLOW = "../examples/performance/train.py"
TRAINING = (
    "--gpu", "0", "--dummy", "-a", "resnet_tiny", "--dummy-batches", "4", "-b", "8", "--image-size", "32",
    "--classes", "10", "-j", "0", "--epochs", "1", "-p", "1",
)  # fmt: skip
SHORT = ("--batch-size", "16", "--log-interval", "8")
ASSESSED = ("ascend", "cambricon", "moorethreads", "tecorigin")
PROVED = ("ascend", "cambricon", "tecorigin")
STEPS = "3"
TRAINED = "trained.pth.tar"  # by the simulated npu
DELIVERY = "PyTorch/contrib/Classification/Digits"
WIDTH = 80
SHOWN_CHANGES = 6
COLOURS = {"+": "32", "-": "31", "=": "1", "$": "36"}


def main():
    started = time.monotonic()
    for number, (title, show) in enumerate(STAGES.items(), 1):
        say("=", f"{number}. {title}")
        show()
    say("=", f"{len(STAGES) + 1}. Open these")
    print(f"  {'demo-out/operators.html':<34} every operator on every device, by module")
    for target in TARGETS:
        print(f"  {f'demo-out/{target}/report.html':<34} every change, side by side, explained")
    print(f"  {'demo-out/ascend/main.py':<34} the converted program")
    print(f"  {'demo-out/ascend/findings.json':<34} the same findings for programs")
    print(f"  {'demo-out/cards/train.py':<34} the trainer for several cards")
    print(f"  {'demo-out/proof/proof.html':<34} the proof: both loss curves, every step")
    print(f"  {'demo-out/compare.html':<34} the wrong operator, every call, by module")
    print(f"  {'demo-out/analyze.html':<34} the bottleneck, a timeline, operators")
    print(f"  {'demo-out/model.onnx':<34} what was trained on the simulated device")
    print(f"  demo-out/{DELIVERY}/  the delivery")
    print("\nYour own project:  .venv/bin/ferry scan PATH --to ascend")
    print(f"The demo took {time.monotonic() - started:.1f} s.")


def diagnose_machine():
    """Say whether a device could be used here: on most machines that see this demo it could not."""
    show_beginning(ferry("doctor", "--to", "ascend"), 3)


def assess():
    """Let the example train for a step on the CPU, and show what the vendors' tables say of its operators."""
    OUT.mkdir(exist_ok=True)
    options = ("--to", ",".join(ASSESSED), "-o", "operators.html")
    output = ferry("ops", *options, ORIGINAL, *TRAINING, cwd=OUT)
    for verdict in output.splitlines()[: len(ASSESSED)]:
        print(textwrap.fill(verdict, WIDTH, initial_indent="  ", subsequent_indent="    "))


def convert_for_all():
    for target in TARGETS:
        convert(target)


def convert(target):
    """Convert the example, show the first changed lines and the summary."""
    out = f"demo-out/{target}"
    diff = ferry("convert", "examples/imagenet", "--to", target, "-o", out, "--force", "--diff")
    changes = list(changed_lines(diff))
    for pair in changes[:SHOWN_CHANGES]:
        for line in pair:
            print_line(line)
    if len(changes) > SHOWN_CHANGES:
        print(f"    ... and {len(changes) - SHOWN_CHANGES} more lines")
    summary = json.loads((OUT / target / "findings.json").read_text("utf-8"))["summary"]
    print(
        f"  {summary['sites']} places mean CUDA: {summary['automatic']} done"
        f" ({summary['automatic_percent']:g} %), {summary['todo']} for you to decide,"
        f" {summary['unknown']} unknown\n"
    )


def train():
    """Train the original through the layer, and show its losses."""
    output = ferry("run", "--sim", "--to", "ascend", "--devices", "2", ORIGINAL, *TRAINING, cwd=OUT)
    for step, loss in enumerate(re.findall(r"Epoch.*?Loss (\S+)", output)):
        print(f"  step {step}: loss {float(loss):.4f}")
    (OUT / "checkpoint.pth.tar").replace(OUT / TRAINED)  # what runs later writes another


def prove_unchanged():
    prove("proof", PROVED, "--", ORIGINAL, *TRAINING)
    print(" (the tables of the other two are in demo-out/proof/proof.html)")


def prove_converted():
    converted = ("--original", ORIGINAL, "--converted", "{vendor}/main.py", "--")
    prove("proof-converted", PROVED[:1], *converted, *TRAINING)


def prove_on_the_plugin():
    """Huawei's own torch_npu computes, on an emulated CANN; `make demo` sets it up where the plugin can be had."""
    setup = subprocess.run([command(), "emulate", "info", "--to", "ascend"], capture_output=True)
    if setup.returncode != 0:
        print("  The plugin is not set up here:  ferry emulate setup --to ascend")
        return
    prove("proof-plugin", PROVED[:1], "--emulate", "--", ORIGINAL, *TRAINING)


def explain_crash():
    """The logs of two processes that ended one another: what came first, and what to do."""
    show_beginning(ferry("explain", "-q", "examples/crash"), 5)


def share_among_cards():
    """Rewrite a trainer for one card, show the lines that matter, and train it on two simulated cards."""
    options = ("--to", "ascend", "--distributed", "--main", "train.py", "--amp")
    diff = ferry(
        "convert", "examples/single_gpu/mnist", *options, "-o", "demo-out/cards", "--force", "--diff"
    )
    telling = re.compile(r"init_process_group\(backend=backend\)|sampler=|= Distributed|scaler\.(scale|step)")
    for *_, added in changed_lines(diff):
        if telling.search(added):
            print_line(added)
    processes = ("--converted", "--nproc", "2", "-q", "cards/train.py")
    output = ferry("run", "--sim", "--to", "ascend", *processes, *SHORT, cwd=OUT)
    print("  " + "\n  ".join(output.expandtabs(4).splitlines()))
    print("  (demo-out/cards/run_distributed_npu.sh starts it on real cards)")


def prove(out, vendors, *program):
    """Prove a program for some vendors; show the verdicts and the steps of the first vendor."""
    options = ("--to", ",".join(vendors), "--steps", STEPS, "--cwd", ".", "-o", out)
    output = ferry("prove", *options, *program, cwd=OUT)
    lines = output.splitlines()
    end = lines.index(vendors[1]) if len(vendors) > 1 else len(lines)
    for line in "\n".join(lines[:end]).rstrip().splitlines():
        print(textwrap.fill(line, WIDTH) if len(line) > WIDTH else line)


def find_operator():
    """Record a step of a program on both devices, one of which has a wrong kernel, and show the verdict."""
    ferry("record", "-q", "-o", "gpu.h5", FAULTY, cwd=OUT)
    ferry("record", "-q", "--sim", "--to", "ascend", "-o", "npu.h5", FAULTY, "--wrong-kernel", cwd=OUT)
    output = ferry("compare", "npu.h5", "gpu.h5", "-o", "compare.html", cwd=OUT, expected=1)
    for line in output.partition("\n  \N{RIGHTWARDS ARROW}")[0].splitlines():
        print(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent=" " * 13))


def find_bottleneck():
    """Profile three steps of a program whose loader is slow, and show the verdict and where the time goes."""
    shutil.rmtree(OUT / "profile", ignore_errors=True)
    steps = ("--steps", "3:5", "-o", "profile")
    ferry("profile", "-q", "--sim", "--to", "ascend", *steps, SLOW, "--plant", "slow_loader", cwd=OUT)
    output = ferry("analyze", "-q", "profile", "-o", "analyze.html", cwd=OUT)
    verdict, _, parts = output.partition("\n\n")
    for line in verdict.splitlines()[:2]:
        print(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="  "))
    for line in parts.partition("\n\n")[0].splitlines()[1:]:
        name, share = re.match(r"  (\w.*?)  .*?([\d.]+%)", line).groups()
        print(f"  {name:<34} {share:>6}")


def carry_on_with_the_model():
    """Look at what the simulated device has left, put it on the CPU, and make an ONNX model of it."""
    told = ferry("checkpoint", "info", TRAINED, cwd=OUT)
    show_beginning(told, 3)
    ferry(
        "checkpoint",
        "fix",
        TRAINED,
        "-o",
        "clean.pth",
        "--only",
        "state_dict",
        "--map",
        "npu:cpu",
        "--force",
        cwd=OUT,
    )
    model = ("--model", "../examples/imagenet/resnet.py:resnet_tiny", "--init", "num_classes=10")
    options = ("--input", "1x3x32x32", "--dynamic", "batch", "--to", "ascend", "-o", "model.onnx", "--force")
    show_beginning(ferry("export", "clean.pth", *model, *options, cwd=OUT), 5)


def deliver():
    """Make the folder that a vendor's model zoo wants, and show what is still missing in it."""
    shutil.rmtree(OUT / DELIVERY, ignore_errors=True)
    source = ("--from", "../examples/single_gpu/mnist", "--main", "train.py", "--amp", "--distributed")
    ferry("zoo", "new", DELIVERY, *source, "--arguments=--epochs 1", cwd=OUT)
    show_beginning(ferry("zoo", "check", DELIVERY, cwd=OUT, expected=1), 2)


def scan():
    ferry("scan", "examples/finetune", "--to", "ascend", capture=False)


def show_beginning(output, lines):
    """The first lines of a report: its verdict."""
    for line in output.splitlines()[:lines]:
        print(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="    "))


def changed_lines(diff):
    """Each changed line of a unified diff: the old one, then the new one."""
    removed = []
    for line in diff.splitlines():
        if line.startswith(("---", "+++")):
            continue
        if line.startswith("-"):
            removed.append(line)
        elif line.startswith("+"):
            yield [removed.pop(0), line] if removed else [line]


def ferry(*arguments, capture=True, cwd=ROOT, expected=0):
    """Run the real command, as a user would. What it says on stderr is shown as it comes."""
    print_line("$ ferry " + " ".join(arguments))
    sys.stdout.flush()
    # PyTorch's warnings about the programs are not what this is about.
    environment = {**os.environ, "COLUMNS": str(WIDTH), "PYTHONWARNINGS": "ignore"}
    result = subprocess.run(
        [command(), *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE if capture else None,
        text=True,
        encoding="utf-8",
    )
    if result.returncode != expected:
        sys.exit(f"demo: ferry ended with {result.returncode}")
    return result.stdout or ""


def command():
    """Where `ferry` is."""
    beside = Path(sys.executable).with_name("ferry")
    found = str(beside) if beside.exists() else shutil.which("ferry")
    if found is None:
        sys.exit("demo: the command `ferry` is not installed; run `make demo`")
    return found


def print_line(line):
    """A diff line or a command: coloured on a terminal, folded at the width of the page."""
    folded = textwrap.wrap(
        line, WIDTH - 2, subsequent_indent="      ", drop_whitespace=False, break_on_hyphens=False
    )
    for part in folded or [""]:
        say(line[:1], part.rstrip(), heading=False)


def say(mark, text, heading=True):
    colour = COLOURS.get(mark, "") if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ""
    shown = f"\033[{colour}m{text}\033[0m" if colour else text
    if heading:
        print(f"\n{shown}\n{'-' * len(text)}")
    else:
        print(f"  {shown}")


STAGES = {
    "Is this machine ready?": diagnose_machine,
    "Before anything is moved: do the devices have the operators of a trainer?": assess,
    "One ImageNet trainer for three vendors, and for any of them": convert_for_all,
    "Or change nothing: the original on a simulated npu (compiled at first use)": train,
    "Proved: unchanged, three simulated vendors compute what the CPU computes": prove_unchanged,
    "Proved: the converted program as well": prove_converted,
    "Proved: on Huawei's own plugin, above an emulated CANN": prove_on_the_plugin,
    "It crashes: what do the logs of its processes mean?": explain_crash,
    "The loss differs on the device: which operator is wrong?": find_operator,
    "It is slow: why?": find_bottleneck,
    "A trainer for one card, rewritten for all cards with mixed precision": share_among_cards,
    "What the npu has trained, as ONNX for the vendor's offline converter": carry_on_with_the_model,
    "A delivery for a vendor's model zoo": deliver,
    "What can't be done for you: a scan of examples/finetune for Ascend": scan,
}

if __name__ == "__main__":
    main()
