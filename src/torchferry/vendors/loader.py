"""Reads one vendor folder into a Vendor record."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torchferry.errors import VendorError
from torchferry.vendors.model import (
    Api,
    Card,
    DtypeLimit,
    Emulation,
    Limits,
    MissingOperator,
    Narrowing,
    Replacement,
    Saturation,
    Source,
    Sparse,
    Support,
    Vendor,
)
from torchferry.vendors.schema import (
    APIS_FILE,
    REPLACEMENTS_FILE,
    VENDOR_FILE,
    Table,
    check_files,
    read_table,
)

# Keys whose value is a text, "" when it is not known.
_WORDS = (
    "company_zh",
    "visible_devices_env",
    "smi",
    "amp_module",
    "fused_optimizer_module",
    "profiler_module",
    "profiler_activity",
    "marker_module",
    "memory_format",
    "jit_script",
    "graphs",
    "apex",
    "apex_initialize",
    "triton",
    "extension",
    "missing_op",
    "oom_exception",
)
_STATUS = {entry.value: entry for entry in (Support.SAME, Support.UNSUPPORTED, Support.UNKNOWN)}


def load_vendor(folder: Path) -> Vendor:
    """Read and check a vendor folder; only vendor.toml is needed, what is missing is unknown."""
    if not (folder / VENDOR_FILE).is_file():
        raise VendorError(f"{folder}: no {VENDOR_FILE} there; give a vendor folder")
    check_files(folder)
    data = read_table(folder / VENDOR_FILE)
    apis = _optional(folder / APIS_FILE)
    replacements = _optional(folder / REPLACEMENTS_FILE)
    return Vendor(
        name=data["name"],
        company=data["company"],
        device_type=data["device_type"],
        plugin=data["plugin"],
        torch_module=data["torch_module"],
        dist_backend=data["dist_backend"],
        tensor_method=data["tensor_method"],
        is_attribute=data["is_attribute"],
        # torch.autocast takes a device type; only a vendor that wants another one says so
        autocast_device_type=data.get("autocast_device_type") or data["device_type"],
        amp_dtypes=tuple(data.get("amp_dtypes", ())),
        fused_optimizers=tuple(data.get("fused_optimizers", ())),
        migrations=tuple(data.get("migrations", ())),
        jit_script_by_migration=data.get("jit_script_by_migration", False),
        channels_last=data.get("channels_last", False),
        dtypes=data.get("dtypes", {}),
        data_parallel=Support(data.get("data_parallel", "unknown")),
        env=data.get("env", {}),
        env_map=data.get("env_map", {}),
        launch_env=data.get("launch_env", {}),
        emulation=Emulation(**data.get("emulation", {})),
        cards=tuple(Card(**_with_tuples(row)) for row in data.get("cards", ())),
        apis=_apis(apis, data["torch_module"]),
        apis_complete=apis.get("complete", False),
        replacements=tuple(Replacement(**row) for row in replacements.get("replacements", ())),
        sources=_sources((data, apis, replacements)),
        folder=str(folder),
        api_notes=apis.get("notes", {}),
        limits=_limits(data.get("limits", {})),
        **{key: data.get(key, "") for key in _WORDS},
    )


def natural_name(name: str, torch_module: str) -> str:
    """The name that an API has if the vendor didn't rename it: torch.cuda.X is under the vendor's module."""
    if name == "torch.cuda" or name.startswith("torch.cuda."):
        return torch_module + name[len("torch.cuda") :]
    return name


def _optional(file: Path) -> Table:
    return read_table(file) if file.exists() else {}


def _apis(data: Table, torch_module: str) -> dict[str, Api]:
    basis = {name: how for how, names in data.get("basis", {}).items() for name in names}
    found = {}
    for name, value in data.get("apis", {}).items():
        support = _STATUS.get(value, Support.RENAMED)
        if support is Support.RENAMED:
            new = value
        else:
            new = "" if support is Support.UNSUPPORTED else natural_name(name, torch_module)
        found[name] = Api(support, new, basis.get(name, ""))
    return found


def _limits(data: Table) -> Limits:
    dtypes = {
        dtype: DtypeLimit(
            Narrowing(row["narrowing"]),
            row.get("becomes", ""),
            row.get("message", ""),
            tuple(row.get("when", ())),
            tuple(row.get("unlisted", ())),
        )
        for dtype, row in data.get("dtypes", {}).items()
    }
    values = _with_tuples(data)
    values["missing_operator"] = MissingOperator(data.get("missing_operator", ""))
    values["dtypes"] = dtypes
    values["sparse"] = _sparse(data.get("sparse", {}))
    values["saturation"] = Saturation(**_with_tuples(data.get("saturation", {})))
    return Limits(**values)


def _sparse(data: Table) -> Sparse:
    missing = MissingOperator(data.get("missing_operator", ""))
    return Sparse(**{**_with_tuples(data), "missing_operator": missing})


def _with_tuples(data: Table) -> Table:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


def _sources(tables: Iterable[Table]) -> tuple[Source, ...]:
    """The sources of all tables, each once, the vendor's own first."""
    rows = (row for table in tables for row in table.get("sources", ()))
    found = (Source(row["name"], row.get("version", ""), row.get("path", "")) for row in rows)
    return tuple(dict.fromkeys(found))
