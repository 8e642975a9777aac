"""One module: look at it with all rules, edit it, and prove that the edit is sound."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from torchferry.conversion import problems, renaming
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.python_config import fit_for_config
from torchferry.conversion.rule import Proposal, Rule, RuleSet
from torchferry.conversion.settings import PassSettings
from torchferry.conversion.site import FileContext, RenameTable, Site
from torchferry.conversion.target import Target
from torchferry.conversion.verify import VerificationError, check_rewrite, make_hunks
from torchferry.finding import Finding, Kind, Message, finding_of, message_of, undone
from torchferry.outcome import Hunk
from torchferry.source.decode import DecodedText, SourceText
from torchferry.source.edits import Edit, EditSet, Rewriting, apply_edits
from torchferry.source.module import ParseError, PythonModule, TooDeepError
from torchferry.source.walk import Visitor, WalkState, walk_lines
from torchferry.text import Text

WELL_KNOWN = frozenset({"torch"})
_MOST_REPEATS = 3  # built-in rules that meet what others of them have written; one repeat is enough so far
_MOST_ROUNDS = 25  # rules of the user's that build on each other; more than any file of rules may ask for
_LONGEST_LINE = 200  # characters of a line that a report shows
_LEFT_OUT = Message(
    Text("File converted without `{option}`", "该文件未应用 `{option}`"),
    why=Text(
        "The rewrite of this option did not pass its own check: {reason}.",
        "该选项的改写未通过自检：{reason}。",
    ),
    do=Text("Make this change by hand.", "请手动完成该修改。"),
)
_CONFLICT = Text("Two changes overlap; not made: {title}", "两处修改重叠，未执行：{title}")

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
    user_names: RenameTable = field(default_factory=dict)  # the same, of the user's own rules
    settings: PassSettings = PassSettings()
    neighbours: Neighbours = field(default_factory=Neighbours)

    def without(self, options: tuple[str, ...]) -> FileJob:
        """The same without the rules of some options."""
        rules = RuleSet(rule for rule in self.rules.rules if rule.option not in options)
        return replace(self, rules=rules, names={}, user_names={})


def convert_text(decoded: DecodedText, path: str, job: FileJob) -> Conversion:
    """Convert one module; an option that fails here is left out. Raises ParseError if Python can't parse the text."""
    conversion, error = _tried(decoded, path, job)
    if conversion.failure:
        options = job.rules.options
        # What may be left out: one option, or all.
        for left_out in (*((name,) for name in options), *((options,) if len(options) > 1 else ())):
            other, _ = _tried(decoded, path, job.without(left_out))
            if not other.failure:
                messages = (
                    _LEFT_OUT.format(option=f"--{name.replace('_', '-')}", reason=conversion.failure)
                    for name in left_out
                )
                remarks = (
                    finding_of(problems.LEFT_OUT.id, Kind.TODO, (path, 1, 1), message, job.target.name)
                    for message in messages
                )
                return replace(other, findings=(*remarks, *other.findings))
    if error is not None:
        raise error
    return conversion


def _tried(decoded: DecodedText, path: str, job: FileJob) -> tuple[Conversion, Exception | None]:
    """A conversion with these rules; a mistake in one of them is a failure, too."""
    stages = _Stages(decoded, path, job)
    try:
        return _converted(stages, job), None
    except (RecursionError, MemoryError, TooDeepError):
        raise  # says nothing about the rules
    except Exception as error:
        reason = f"{type(error).__name__}: {error} (please report this file)"
        return Conversion((), failure=reason), error


def _converted(stages: _Stages, job: FileJob) -> Conversion:
    try:
        stages.run()
        if job.rules.users.rules and stages.edits():
            stages.settle()
        elif stages.edits():
            stages.repeat()
        edits = stages.edits()
        if not edits:
            return Conversion(tuple(item for item in stages.findings if item.kind is not Kind.CHANGE))
        stages.check()
    except TooDeepError:
        raise  # says nothing about the rules
    except (ParseError, VerificationError) as error:
        # A change that was thrown away with its file is work for the user.
        return Conversion(tuple(map(undone, stages.findings)), failure=str(error))
    new_module = stages.context.module
    return Conversion(
        tuple(stages.findings), new_module.decoded.text, make_hunks(stages.first, new_module, edits)
    )


class _Stages:
    """A module on its way: changed by the user's rules, restructured by one pass after the other, then converted."""

    def __init__(self, decoded: DecodedText, path: str, job: FileJob) -> None:
        self.first = SourceText(decoded)
        self.job = job
        self.acted: set[str] = set()  # the passes that have changed something
        self.rewriting = Rewriting(self.first.data)
        self.findings: list[Finding] = []
        self.is_edited = False
        self.repaired = self._repair(path) or PythonModule(decoded, WELL_KNOWN)
        self.context = _context(self.repaired, path, job)
        self.since_repair = Rewriting(self.repaired.data)

    def _repair(self, path: str) -> PythonModule | None:
        """The module once the rules have repaired its text, None if there is nothing to repair, or no way to."""
        rules = [rule for rule in self.job.rules.repairing if rule.is_called_for(self.first.data)]
        said = [(rule, proposal) for rule in rules if rule.repair for proposal in rule.repair(self.first)]
        if not said:
            return None
        rewriting = Rewriting(self.first.data)
        rewriting.apply(edit for _, proposal in said for edit in proposal.edits)
        text = rewriting.data.decode("utf-8")
        try:
            module = PythonModule(replace(self.first.decoded, text=text), WELL_KNOWN)
        except TooDeepError:
            raise
        except ParseError:
            return None
        self.findings = [_finding(self.first, path, self.job.target, *item) for item in said]
        self.rewriting = rewriting
        self.is_edited = True
        return module

    def check(self) -> None:
        """Hold the result against the module that the stages began with."""
        edits = self.since_repair.edits()
        check_rewrite(self.repaired, self.context.module, edits, may_nest=bool(self.acted))

    def run(self) -> None:
        """Go through all stages once."""
        rules = self.job.rules
        if rules.users.rules:
            self._follow_user()
        for rule in rules.restructuring:
            self._restructure(rule, _restructured(self.context, rule))
        self.take(self._what_rules_say())

    def _restructure(self, rule: Rule, said: list[Said]) -> None:
        count = len(self.findings)
        self.take(said)
        if any(item.kind is Kind.CHANGE for item in self.findings[count:]):
            self.acted.add(rule.id)

    def _what_rules_say(self) -> list[Said]:
        rules = self.job.rules.built_in
        return examine(self.context, rules, rules.line_words_in(self.context.module.data))

    def repeat(self) -> None:
        """Have the rules convert what they have written until they change nothing more; a pass must not act again.

        One that could not act at first may be able to once another one has, as it would be in a second conversion.
        """
        count = len(self.findings)
        for _ in range(_MOST_REPEATS):
            for rule in self.job.rules.restructuring:
                late = _restructured(self.context, rule)
                again = [proposal for _, proposal in late if proposal.edits]
                if again and rule.id in self.acted:
                    raise self._again(again[0])
                if again:
                    self.findings = [item for item in self.findings if item.rule != rule.id]
                    self._restructure(rule, late)
                    count = len(self.findings)
            said = self._what_rules_say()
            if not any(proposal.edits for _, proposal in said):
                return
            known = {_what(finding) for finding in self.findings}
            self.take(item for item in said if item[1].edits or _what(self._finding(*item)) not in known)
        del self.findings[count:]
        raise self._again(next(proposal for _, proposal in said if proposal.edits))

    def _again(self, proposal: Proposal) -> VerificationError:
        line = self.context.module.line_of(proposal.start)
        return VerificationError(f"a second conversion would change line {line} again")

    def edits(self) -> list[Edit]:
        """All edits together; of the user's rules, one may write what another one had to undo."""
        edits = self.rewriting.edits()
        if self.job.rules.users.rules:
            data = self.first.data
            edits = [edit for edit in edits if data[edit.start : edit.end] != edit.text.encode("utf-8")]
        return edits

    def _follow_user(self) -> None:
        """Apply the user's rules until they have nothing more to do; none of them writes the same twice in a place."""
        made: set[tuple[int, str]] = set()
        rules, names = self.job.rules.users, self.job.user_names
        for _ in range(_MOST_ROUNDS):
            words = [word for word in rules.words if word in self.context.module.data]
            context = replace(self.context, tracked=rules.tracked, renames=rules.renaming, names=names)
            said = examine(context, rules, words) if words else []
            # What each change writes where; places as in the module before all changes.
            origin = self.rewriting.origin
            places = {
                id(proposal): {(origin(edit.start), edit.text) for edit in proposal.edits if not edit.is_line}
                for _, proposal in said
                if proposal.edits
            }
            new = [item for item in said if item[1].edits and not places[id(item[1])] <= made]
            known = {_what(finding) for finding in self.findings}
            remarks = [
                item for item in said if not item[1].edits and _what(self._finding(*item)) not in known
            ]
            accepted = self.take([*new, *remarks])
            if not new:
                return
            made.update(*(places[id(proposal)] for _, proposal in accepted if proposal.edits))

    def settle(self) -> None:
        """Go on until nothing changes: the user's rules may also build on what the others write."""
        again: list[Finding] = []
        for _ in range(_MOST_ROUNDS):
            text, context = self.rewriting.data, self.context
            rewriting, since_repair = copy(self.rewriting), copy(self.since_repair)
            count = len(self.findings)
            self.run()
            again, self.findings = self.findings[count:], self.findings[:count]
            if self.rewriting.data == text:
                self.context, self.rewriting, self.since_repair = context, rewriting, since_repair
                return
            known = {_what(finding) for finding in self.findings}
            self.findings += [finding for finding in again if _what(finding) not in known]
        which = sorted({item.title.en for item in again if item.rule.startswith("USER")})
        raise VerificationError(f"your rules change this file again and again: {'; '.join(which)}")

    def take(self, said: Iterable[Said]) -> list[Said]:
        """Note what was said about the module as it is now, and make the edits; answers with what has come true."""
        accepted = _without_conflicts(said)
        for item in accepted:
            # A change of code that a pass has put in: no place of the user's program means CUDA there.
            proposal = item[1]
            is_late = self.acted and proposal.edits and self.rewriting.is_written(proposal.start)
            if not is_late or self.context.module.data[proposal.start : proposal.end] in self.first.data:
                self.findings.append(self._finding(*item))
        edits = [edit for _, proposal in accepted for edit in proposal.edits]
        if edits:
            self.is_edited = True
            self.rewriting.apply(edits)
            self.since_repair.apply(edits)
            text = self.rewriting.data.decode("utf-8")
            new = PythonModule(DecodedText(text, "utf-8"), WELL_KNOWN)
            self.context = _context(new, self.context.path, self.job)
        return accepted

    def _finding(self, rule: Rule, proposal: Proposal) -> Finding:
        """At its place in the module as the user knows it."""
        found = _finding(self.context.module, self.context.path, self.job.target, rule, proposal)
        if not self.is_edited:
            return found
        start = self.rewriting.origin(proposal.start)
        line = self.first.line_of(start)
        source = shown_line(self.first, line) if found.source else ""
        return replace(found, line=line, col=self.first.column_of(start), source=source)


def shown_line(text: SourceText, line: int) -> str:
    """A line as reports show it."""
    return text.line_text(line).strip()[:_LONGEST_LINE]


def _finding(text: SourceText, path: str, target: Target, rule: Rule, proposal: Proposal) -> Finding:
    before, after = _texts(text, proposal)
    line = text.line_of(proposal.start)
    return finding_of(
        rule.id,
        proposal.kind,
        (path, line, text.column_of(proposal.start)),
        proposal.message,
        target.name,
        before=before,
        after=after,
        url=proposal.url,
        source="" if proposal.edits else shown_line(text, line),
    )


def _what(finding: Finding) -> tuple[str, Kind, int, Text]:
    """What makes two findings of the same place the same."""
    return finding.rule, finding.kind, finding.line, finding.message


def _restructured(context: FileContext, rule: Rule) -> list[Said]:
    """What a pass says about a module that holds one of its words."""
    if rule.restructure is None or not rule.is_called_for(context.module.data):
        return []
    return _not_ignored(context, [(rule, proposal) for proposal in rule.restructure(context)])


def _context(module: PythonModule, path: str, job: FileJob) -> FileContext:
    rules = job.rules.built_in
    names, settings, neighbours = job.names, job.settings, job.neighbours
    return FileContext(module, path, job.target, rules.tracked, rules.renaming, names, settings, neighbours)


def examine(context: FileContext, rules: RuleSet, words: list[bytes]) -> list[Said]:
    """Everything that the rules say about a module, in the order of its text; `words` are the triggers it holds."""
    said: list[Said] = []
    lines = _lines_of_interest(context, rules, words)
    walk_lines(context.module, lines, _visitors(context, rules, said))
    said = fit_for_config(context, _not_ignored(context, said))
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

    def visit(node: ast.AST, place: WalkState) -> None:
        site: Site[Any] = Site(context, node, place)
        rename = _RENAMING.get(type(node))
        if rename is not None:
            said.extend(rename(site))
        asking = by_node.get(type(node), ())
        name = site.name if asking else ""
        for rule in asking:
            if rule.check is not None and (not rule.names or name.startswith(rule.names)):
                for proposal in rule.check(site):
                    said.append((rule, proposal))

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

    def is_silenced(rule: Rule, proposal: Proposal) -> bool:
        ids = silenced.get(context.module.line_of(proposal.start))
        return ids is not None and (not ids or rule.id in ids)

    return [item for item in said if not is_silenced(*item)]


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
            message = message_of(proposal.message).with_title(_CONFLICT)
            kept.append((rule, Proposal(Kind.TODO, proposal.start, proposal.end, message)))
    # Without remarks about code that a change removes altogether.
    removed = [edit for _, proposal in kept for edit in proposal.edits if edit.text in ("", "pass")]
    kept = [
        (rule, proposal)
        for rule, proposal in kept
        if proposal.edits
        or not any(edit.start <= proposal.start and proposal.end <= edit.end for edit in removed)
    ]
    return sorted(kept, key=lambda item: (item[1].start, item[1].end, item[0].id))


def _texts(module: SourceText, proposal: Proposal) -> tuple[str, str]:
    """The text of the place before and after; an insertion elsewhere shows only what is inserted."""
    inside = [edit for edit in proposal.edits if proposal.start <= edit.start and edit.end <= proposal.end]
    if proposal.edits and not inside:
        return "", "".join(edit.text for edit in proposal.edits).strip()
    segment = module.data[proposal.start : proposal.end]
    moved = [Edit(edit.start - proposal.start, edit.end - proposal.start, edit.text) for edit in inside]
    after = apply_edits(segment, moved).decode("utf-8") if moved else ""
    return segment.decode("utf-8"), after
