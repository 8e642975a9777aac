"""The imports that new code needs."""

from __future__ import annotations

import ast
import builtins

from torchferry.conversion.custom.model import UserRule, module_of, parsed_import
from torchferry.conversion.program.blocks import add_imports
from torchferry.conversion.site import Site
from torchferry.source.edits import Edit
from torchferry.source.scopes import ModuleScopes
from torchferry.text import Text

TAKEN = Text(
    "your rule: the new code needs `{line}`, but `{name}` is something else here",
    "自定义规则：新代码需要 `{line}`，但此处 `{name}` 另有所指",
)


def needed_imports(rule: UserRule, renames: bool = False, wraps: bool = False) -> tuple[str, ...]:
    """The imports that a rule's new code needs: those it names, else what its new name or its wrapping says."""
    if rule.needs:
        return rule.needs
    names = rule.wrap.names() if wraps and rule.wrap is not None else []
    if renames and rule.may_import:
        names.append(rule.rename)
    modules = {
        module_of(name) for name in names if "." in name and not hasattr(builtins, name.partition(".")[0])
    }
    return tuple(f"import {module}" for module in sorted(modules))


def import_edits(site: Site[ast.Call], lines: tuple[str, ...], exact: bool) -> list[Edit] | Text:
    """The insertions of what is not there yet; a message if a name is taken."""
    missing: list[str] = []
    for line in lines:
        statement = parsed_import(line)
        if statement is None:
            continue
        for alias in statement.names:
            name = (alias.asname or alias.name).partition(".")[0]
            if not _is_there(site.module.scopes, statement, alias, exact):
                if site.scope.owner_of(name) is not None and not _is_package(site, statement, alias, name):
                    return TAKEN.format(line=line, name=name)
                missing.append(line)
                break
    return add_imports(site.module, missing)


def _is_there(
    scopes: ModuleScopes, statement: ast.Import | ast.ImportFrom, alias: ast.alias, exact: bool
) -> bool:
    """Whether the module imports this already; if not `exact`, an import of its package will do."""
    bindings = scopes.root.bindings
    if isinstance(statement, ast.ImportFrom):
        qualified = "." * statement.level + f"{statement.module or ''}.{alias.name}"
        return any(item.qualified == qualified for item in bindings.get(alias.asname or alias.name, ()))
    if alias.asname:
        return any(item.qualified == alias.name for item in bindings.get(alias.asname, ()))
    root = alias.name.partition(".")[0]
    if not any(item.qualified == root for item in bindings.get(root, ())):
        return False
    return (
        not exact
        or alias.name == root
        or any(f"{name}.".startswith(f"{alias.name}.") for name in scopes.modules)
    )


def _is_package(
    site: Site[ast.Call], statement: ast.Import | ast.ImportFrom, alias: ast.alias, name: str
) -> bool:
    """Whether the name stands for the package of a module that is still to be imported."""
    owner = site.scope.owner_of(name)
    return (
        owner is not None
        and isinstance(statement, ast.Import)
        and not alias.asname
        and all(item.qualified == name for item in owner.bindings[name])
    )
