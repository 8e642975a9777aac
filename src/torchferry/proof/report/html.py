"""A proof as one self-contained page: made here, whole; the script adds what hovering and choosing a language need."""

from __future__ import annotations

from collections.abc import Mapping

from torchferry import __version__, units
from torchferry.proof.model import (
    REFERENCE,
    OperatorCall,
    OperatorDifference,
    ProgramRun,
    Proof,
    StepSummary,
    VendorResult,
)
from torchferry.proof.report import comparison, sentences, words
from torchferry.proof.report.comparison import Gap, StepPair
from torchferry.proof.report.text import (
    losses_text,
    next_commands,
    norms_text,
    optimizer_name,
    parameters_text,
    step_heads,
    step_text,
)
from torchferry.report.bodies import PageBody
from torchferry.report.formats import Options
from torchferry.report.html import (
    ARROW,
    CHARTS,
    CHARTS_STYLE,
    ELEMENTS,
    both,
    escaped,
    quiet,
    row,
    scrolled,
    section,
    table,
)
from torchferry.report.provenance import short_path, without_folders
from torchferry.report.svg import Chart, Points, chart_of, difference_of, figures
from torchferry.text import Text

_CURVES, _SCOPE = Text("Curves", "曲线"), Text("What was compared", "比较范围")
_DEVICE = Text("Device", "设备")
_SIMULATED, _EMULATED = Text("simulated", "模拟"), Text("emulated", "仿真")
ENDS = 50  # rows of a table's beginning and end


def to_body(proof: Proof, options: Options) -> PageBody:
    """The page; the logs are those of runs that failed."""
    vendors = ", ".join(proof.request.vendors)
    return PageBody(
        "proof",
        _program(proof),
        heading=escaped(_program(proof)) + ARROW + escaped(vendors),
        overview=_overview(proof),
        sections=(
            *(_result(proof, result, f"result-{at}") for at, result in enumerate(proof.results, 1)),
            _charts(proof),
            _logs(proof, options.logs),
            _settings(proof),
        ),
        package=str(__package__),
        styles=(CHARTS_STYLE, "proof.css"),
        scripts=(ELEMENTS, CHARTS),
    )


def _program(proof: Proof) -> str:
    return " ".join(map(without_folders, proof.request.original))


def _overview(proof: Proof) -> str:
    if not proof.results:
        return f'<div class="empty">{both(words.NOTHING)}</div>'
    holds = words.HOLDS if proof.holds else words.FAILS
    kind = "change" if proof.holds else "unsupported"
    entries = "".join(
        f'<li class="entry {words.VERDICT[result.verdict].kind}"><strong>{escaped(sentences.shown(result.vendor))}</strong> '
        f"{both(sentences.verdict(result))}</li>"
        for result in proof.results
    )
    scope = sentences.scope(proof)
    below = both(scope, "p") if scope else ""
    return (
        f'<div class="card {kind}"><h2>{both(holds)}</h2><ul class="verdicts">{entries}</ul>'
        f'<div class="scope"><h3>{both(_SCOPE)}</h3><dl>{_scope_facts(proof)}</dl>{below}</div></div>'
    )


def _scope_facts(proof: Proof) -> str:
    """In figures: what the verdict rests on."""
    request = proof.request
    compared = sorted({each.compared_steps for each in proof.results if each.compared_steps})
    device = _EMULATED if request.emulated else _SIMULATED
    found = [
        (words.STEPS, " / ".join(map(str, compared)) or "0"),
        (words.SEED, str(request.seed)),
        (words.PROCESSES, str(request.processes or 1)),
        (_DEVICE, both(device)),
    ]
    return "".join(f"<div><dt>{both(name)}</dt><dd>{value}</dd></div>" for name, value in found)


def _charts(proof: Proof) -> str:
    """Each chart, and how far the runs are from the reference."""
    found = [each for chart in charts(proof) for each in (chart, difference_of(chart)) if each]
    drawn = figures(found) or f'<p class="empty">{both(words.NO_STEPS)}</p>'
    return section(_CURVES, drawn, "curves")


def _result(proof: Proof, result: VendorResult, place: str) -> str:
    name = f"{sentences.shown(result.vendor)} ({sentences.shown(result.device_type)})"
    said = "".join(both(sentence, "p") for sentence in sentences.explanations(result))
    operator = _operator(result.operator) if result.operator else ""
    if result.judgement is not None:
        commands = "\n".join(map(escaped, next_commands(proof.request, result)))
        operator += "".join(both(sentence, "p") for sentence in sentences.judgement(result.judgement))
        operator += f"{both(words.NEXT, 'p')}<pre>{commands}</pre>"
    steps = "".join(_steps(each, result) for each in comparison.tables(proof, result))
    return (
        f'<section class="result {words.VERDICT[result.verdict].kind}" id="{place}">'
        f"<h2>{escaped(name)}: {both(sentences.verdict(result))}</h2>"
        f"{said}{operator}{steps}</section>"
    )


def _operator(difference: OperatorDifference) -> str:
    said = "".join(both(sentence, "p") for sentence in sentences.operator(difference))
    calls = [(words.REFERENCE, difference.reference), (words.MIGRATED, difference.migrated)]
    heads = [words.RUN, words.NAME, words.WHEN, words.MODULE, words.PLACE]
    heads += [words.ARGUMENTS, words.INPUTS, words.OUTPUTS]
    rows = [_call(name, call) for name, call in calls if call]
    return f'<div class="operator"><h3>{both(words.OPERATOR)}</h3>{said}{table(heads, rows) if rows else ""}</div>'


def _call(name: Text, call: OperatorCall) -> str:
    phase = words.PHASE.get(call.phase, Text(call.phase, call.phase))
    node = f" {_code(sentences.shown(call.node))}" if call.node else ""
    cells = [both(name), _code(sentences.shown(call.name)), both(phase) + node]
    cells += [_code(sentences.shown(text)) for text in (call.module, call.place, call.arguments)]
    cells += [
        "<br>".join(_code(sentences.tensor(each)) for each in side) for side in (call.inputs, call.outputs)
    ]
    return row(cells)


def _code(text: str) -> str:
    return f"<code>{escaped(text)}</code>"


def _steps(steps: comparison.ProofSteps, result: VendorResult) -> str:
    heads = step_heads(steps, result)
    rows = [_step(each, steps, len(heads)) for each in steps.shortened(ENDS)]
    title = f"{both(words.STEPS)} {both(steps.title)}" if steps.title.en else both(words.STEPS)
    count = f'<span class="count">{len(steps.rows)}</span>'
    return f'<details class="group steps"><summary><h3>{title}{count}</h3></summary>{table(heads, rows)}</details>'


def _step(each: StepPair | Gap, steps: comparison.ProofSteps, columns: int) -> str:
    if isinstance(each, Gap):
        said = both(words.LEFT_OUT.format(count=each.count))
        return f'<tr class="gap"><td colspan="{columns}">… {said}</td></tr>'
    cells = [both(step_text(each))]
    if steps.several_optimizers:
        cells.append(escaped(optimizer_name(each, steps)))
    cells += [losses_text(each.reference), losses_text(each.migrated)]
    cells.append("" if each.difference is None else units.number(each.difference))
    cells += [norms_text(each), both(parameters_text(each))]
    return row(cells, kind="" if comparison.is_equal(each) else "differs")


def _logs(proof: Proof, logs: Mapping[str, str]) -> str:
    if not logs:
        return ""
    runs = {run.name: run for run in comparison.all_runs(proof)}
    parts = []
    for name, tail in logs.items():
        run = runs.get(name)
        title = both(run_name(run)) if run else escaped(sentences.shown(name))
        files = (
            {name: short_path(each) for name, each in (("stdout", run.stdout), ("stderr", run.stderr))}
            if run
            else {}
        )
        below = quiet(words.LOG_FILES.format(**files)) if files else ""
        parts.append(f"<h3>{title}</h3><pre>{escaped(tail)}</pre>{below}")
    return section(words.LOGS, "".join(parts), "logs", kind="logs")


def _settings(proof: Proof) -> str:
    request = proof.request
    yes_or_no = {True: words.YES, False: words.NO}
    tolerance = [
        f"{name} {value:g}"
        for name, value in (("rtol", request.rtol), ("atol", request.atol))
        if value is not None
    ]
    rows: list[tuple[Text, Text | str]] = [
        (words.PROGRAM, _program(proof)),
        (words.CONVERTED, request.converted or words.UNCHANGED),
        (words.STEPS_ASKED, words.TO_THE_END if request.steps is None else str(request.steps)),
        (words.SEED, str(request.seed)),
        (words.PROCESSES, str(request.processes or 1)),
        (words.SAME_WEIGHTS, yes_or_no[request.same_weights]),
        (words.TOLERANCE, words.BIT_FOR_BIT if request.exact else ", ".join(tolerance) or words.BY_DTYPE),
        (words.DATE, proof.date),
        (words.VERSIONS, f"TorchFerry {__version__}, PyTorch {proof.torch}"),
    ]
    for run in comparison.all_runs(proof):
        name = run_name(run)
        rows.append(
            (Text(f"{words.SECONDS.en}, {name.en}", f"{words.SECONDS.zh}（{name.zh}）"), f"{run.seconds:.1f}")
        )
    body = "".join(
        f"<tr><th>{both(name)}</th><td>{both(value) if isinstance(value, Text) else escaped(value)}</td></tr>"
        for name, value in rows
    )
    return section(words.SETTINGS, scrolled(f"<tbody>{body}</tbody>", "rules settings"), "settings")


# The numbers of the plots: losses and gradient norms of all runs over the steps.


def charts(proof: Proof) -> list[Chart]:
    """Losses and gradient norms, for each process and each optimizer that a process has."""
    runs = comparison.all_runs(proof)
    found = []
    for number in range(max((len(run.processes) for run in runs), default=0)):
        processes = [run.processes[number] if number < len(run.processes) else None for run in runs]
        some = next(process for process in processes if process)
        has_several = any(len(run.processes) > 1 for run in runs)
        where = comparison.process_title(some, number) if has_several else Text("", "")
        for optimizer in range(max(1, len(some.optimizers))):
            name = some.optimizers[optimizer] if len(some.optimizers) > 1 else ""
            which = _title(where, f"{optimizer} {sentences.shown(name)}" if name else "")
            for what, read in ((words.LOSSES, _losses), (words.NORMS, _norms)):
                curves = [
                    {
                        at: number
                        for step in (process.steps if process else ())
                        if step.optimizer == optimizer
                        for at, number in read(step).items()
                    }
                    for process in processes
                ]
                found.append(chart_of(_title(what, which), tuple(map(run_name, runs)), curves))
    return [chart for chart in found if chart.steps]


def run_name(run: ProgramRun) -> Text:
    """A vendor's name, or what the reference is."""
    name = sentences.shown(run.name)
    return words.REFERENCE if run.name == REFERENCE else Text(name, name)


def _title(one: Text, other: Text | str) -> Text:
    other = Text(other, other) if isinstance(other, str) else other
    return Text(*(" · ".join(filter(None, pair)) for pair in zip(one, other, strict=True)))


def _losses(step: StepSummary) -> Points:
    count = len(step.losses)
    return {step.ordinal - 1 + (place + 1) / count: loss for place, loss in enumerate(step.losses)}


def _norms(step: StepSummary) -> Points:
    return {float(step.ordinal): step.gradient_norm}
