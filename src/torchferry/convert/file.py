"""One module: look at it with all rules, edit it, and prove that the edit is sound."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from torchferry.convert import renaming
from torchferry.convert.hunks import make_hunks
from torchferry.convert.rule import Proposal, Rule
from torchferry.convert.ruleset import RuleSet
from torchferry.convert.site import FileContext, RenameTable, Site
from torchferry.convert.target import Target
from torchferry.convert.verify import VerificationError, check_rewrite
from torchferry.finding import Finding, Kind
from torchferry.outcome import Hunk
from torchferry.source.decode import DecodedText
from torchferry.source.edits import Edit, EditSet, apply_edits
from torchferry.source.module import ParseError, PythonModule
from torchferry.source.walk import Place, Visitor, walk_lines
from torchferry.text import Text

WELL_KNOWN = frozenset({"torch"})
_CONFLICT = Text("two changes meet here; this one was not made: {message}", "两处修改冲突，未执行：{message}")

_IGNORE = re.compile(r"#\s*ferry: ignore(?:\[([^\]]*)\]|(?![\w\[-]))")

Said = tuple[Rule, Proposal]


@dataclass(frozen=True)
class Conversion:
    """The outcome for one module: findings, and its new text if anything changed."""

    findings: tuple[Finding, ...]
    new_text: str | None = None
    hunks: tuple[Hunk, ...] = ()
    failure: str = ""  # why a rewrite was thrown away; the findings then propose nothing


@dataclass(frozen=True)
class FileJob:
    """What is the same for every file of a run."""

    target: Target
    rules: RuleSet
    names: RenameTable = field(default_factory=dict)  # what is known about dotted names by now


def convert_text(decoded: DecodedText, path: str, job: FileJob) -> Conversion:
    """Convert one module; raises ParseError if Python can't parse it."""
    module = PythonModule(decoded, WELL_KNOWN)
    context = _context(module, path, job)
    words = [word for word in job.rules.words if word in module.data]
    accepted = _without_conflicts(examine(context, job.rules, words))
    edits = [edit for _, proposal in accepted for edit in proposal.edits]
    findings = tuple(_finding(context, rule, proposal) for rule, proposal in accepted)
    if not edits:
        return Conversion(findings)
    new_text = apply_edits(module.data, edits).decode("utf-8")
    written = "\n".join(edit.text for edit in edits).encode("utf-8")
    words += [word for word in job.rules.words if word in written and word not in words]
    try:
        new_module = PythonModule(DecodedText(new_text, "utf-8"), WELL_KNOWN)
        check_rewrite(module, new_module, edits)
        _check_second_run(_context(new_module, path, job), job.rules, words)
    except (ParseError, VerificationError) as error:
        return Conversion(tuple(_undone(finding) for finding in findings), failure=str(error))
    return Conversion(findings, new_text, make_hunks(module, new_module, edits))


def _context(module: PythonModule, path: str, job: FileJob) -> FileContext:
    return FileContext(module, path, job.target, job.rules.tracked, job.rules.renaming, job.names)


def examine(context: FileContext, rules: RuleSet, words: list[bytes]) -> list[Said]:
    """Everything that the rules say about a module, in the order of its text; `words` are the triggers it holds."""
    said: list[Said] = []
    lines = _lines_of_interest(context, rules, words)
    walk_lines(context.module, lines, _visitors(context, rules, said))
    said = _not_ignored(context, said)
    proposals = [proposal for _, proposal in said]
    for rule in rules.finishing:
        if rule.finish is not None:
            said.extend((rule, proposal) for proposal in rule.finish(context, proposals))
    said.sort(key=lambda item: (item[1].start, item[1].end, item[0].id))
    return said


def _lines_of_interest(context: FileContext, rules: RuleSet, words: list[bytes]) -> list[int]:
    """Lines with a trigger word, with an import that a rule asks for, or with a name that stands for such a thing."""
    module = context.module
    lines = module.lines_with(words) | module.lines_matching(rules.import_pattern)
    module.focus(sorted(lines))
    names, imports = renaming.imported_names(context)
    lines |= imports
    lines |= module.lines_with_names(
        {name for name in names if not any(word in name.encode() for word in words)}
    )
    found = sorted(lines)
    module.focus(found)
    return found


def _visitors(context: FileContext, rules: RuleSet, said: list[Said]) -> dict[type[ast.AST], Visitor]:
    by_node = rules.by_node

    def visit(node: ast.AST, place: Place) -> None:
        site: Site[Any] = Site(context, node, place)
        rename = _RENAMING.get(type(node))
        if rename is not None:
            said.extend(rename(site))
        asking = by_node.get(type(node), ())
        name = site.name if asking else ""
        for rule in asking:
            if rule.check is not None and (not rule.names or name.startswith(rule.names)):
                said.extend((rule, proposal) for proposal in rule.check(site))

    return dict.fromkeys({*by_node, *_RENAMING}, visit)


_RENAMING: dict[type[ast.AST], Any] = {
    ast.Attribute: renaming.check_attribute,
    ast.Name: renaming.check_name,
    ast.Import: renaming.check_import,
    ast.ImportFrom: renaming.check_import_from,
}


def _not_ignored(context: FileContext, said: list[Said]) -> list[Said]:
    """Without what the user has silenced: `# ferry: ignore` or `# ferry: ignore[TF105]` on the line."""
    if b"ferry: ignore" not in context.module.data:
        return said
    silenced = dict(_ignore_comments(context.module))
    kept: list[Said] = []
    for rule, proposal in said:
        ids = silenced.get(context.module.line_of(proposal.start))
        if ids is None or (ids and rule.id not in ids):
            kept.append((rule, proposal))
    return kept


def _ignore_comments(module: PythonModule) -> Iterator[tuple[int, frozenset[str]]]:
    """Line, and the rule ids that its comment names; no ids means all rules."""
    import io
    import tokenize

    text = re.sub("\r\n|\r", "\n", module.decoded.text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        match = _IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
        if match:
            yield token.start[0], frozenset(re.split(r"[\s,]+", match.group(1)) if match.group(1) else ())


def _without_conflicts(said: Iterable[Said]) -> list[Said]:
    """Keep the first of changes that overlap, and the user's own before all; another one becomes a todo."""
    of_user, accepted = EditSet(), EditSet()
    kept: list[Said] = []
    for rule, proposal in sorted(said, key=lambda item: not item[0].is_users):
        if not any(map(accepted.conflicts, proposal.edits)):
            accepted.add(proposal.edits)
            if rule.is_users:
                of_user.add(proposal.edits)
            kept.append((rule, proposal))
        elif not any(map(of_user.conflicts, proposal.edits)):
            message = _CONFLICT.format(message=proposal.message)
            kept.append((rule, Proposal(Kind.TODO, proposal.start, proposal.end, message)))
    return sorted(kept, key=lambda item: (item[1].start, item[1].end, item[0].id))


def _finding(context: FileContext, rule: Rule, proposal: Proposal) -> Finding:
    module = context.module
    before, after = _texts(module, proposal)
    return Finding(
        rule=rule.id,
        kind=proposal.kind,
        path=context.path,
        line=module.line_of(proposal.start),
        col=module.column_of(proposal.start),
        before=before,
        after=after,
        message=proposal.message,
        vendor=context.target.name,
        url=proposal.url,
    )


def _texts(module: PythonModule, proposal: Proposal) -> tuple[str, str]:
    """The text of the place before and after; an insertion elsewhere shows only what is inserted."""
    inside = [edit for edit in proposal.edits if proposal.start <= edit.start and edit.end <= proposal.end]
    if proposal.edits and not inside:
        return "", "".join(edit.text for edit in proposal.edits).strip()
    segment = module.data[proposal.start : proposal.end]
    moved = [Edit(edit.start - proposal.start, edit.end - proposal.start, edit.text) for edit in inside]
    after = apply_edits(segment, moved).decode("utf-8") if moved else ""
    return segment.decode("utf-8"), after


def _undone(finding: Finding) -> Finding:
    """A change that was thrown away with its file is work for the user."""
    if finding.kind is not Kind.CHANGE:
        return finding
    return replace(finding, kind=Kind.TODO)


def _check_second_run(context: FileContext, rules: RuleSet, words: list[bytes]) -> None:
    again = [proposal for _, proposal in examine(context, rules, words) if proposal.edits]
    if again:
        line = context.module.line_of(again[0].start)
        raise VerificationError(f"a second conversion would change line {line} again")
