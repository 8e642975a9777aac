"""A page of every kind of report, made of what the tests of its area have: its name, and the page in a language."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.accuracy.curves.samples import watched
from tests.accuracy.report import samples as comparisons
from tests.examination.making import machine
from tests.examination.stations import ascend_files, put, station
from tests.explanation.explaining import explained
from tests.explanation.test_real_logs import LOGS
from tests.perf.oplog.making import training
from tests.perf.report import samples as analyses
from tests.proof.report import samples as proofs
from tests.readiness import samples as readinesses
from tests.zoo.projects import deliver
from torchferry.accuracy.curves.reports import REPORTS as CURVES
from torchferry.accuracy.curves.trends import trends_of
from torchferry.accuracy.report import REPORTS as COMPARISONS
from torchferry.cli.rule_pages import REPORTS as RULES
from torchferry.cli.vendor_pages import REPORTS as VENDORS
from torchferry.cli.vendor_pages import VendorListing
from torchferry.conversion.rule import all_rules
from torchferry.examination.examine import MachineReport, examine_device, examine_host
from torchferry.examination.report import REPORTS as MACHINES
from torchferry.explanation.report import REPORTS as EXPLANATIONS
from torchferry.perf.oplog.reading import WarmUp, host_log_of, read_oplog
from torchferry.perf.oplog.report import REPORTS as OPLOGS
from torchferry.perf.report import REPORTS as ANALYSES
from torchferry.proof.report import REPORTS as PROOFS
from torchferry.readiness.report import REPORTS as READINESS
from torchferry.report.findings import REPORTS as FINDINGS
from torchferry.report.formats import Options
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, vendor_names
from torchferry.vendors.zoo import find_zoo
from torchferry.zoo.delivery import Delivery
from torchferry.zoo.review import REPORTS as REVIEWS
from torchferry.zoo.review import review

from . import samples

MakePage = Callable[[Path, Options], bytes]


def _doctor(folder: Path, options: Options) -> bytes:
    put(folder, ascend_files())
    found = examine_device(station(folder))
    report = MachineReport(found, examine_host(machine(folder / "host"), get_vendor("ascend")))
    return MACHINES.render(report, "html", options)


def _oplog(folder: Path, options: Options) -> bytes:
    log = training(4, changing=True).write(folder / "plog-4242_20240506101112000.log")
    vendor, forms = host_log_of(None, ())
    return OPLOGS.render(read_oplog([log], vendor, forms, WarmUp()), "html", options)


def _zoo(folder: Path, options: Options) -> bytes:
    vendor, table = find_zoo(None, ())
    return REVIEWS.render(review(Delivery(deliver(folder), vendor, table, 0.05)), "html", options)


def _vendors(names: list[str], options: Options) -> bytes:
    vendors = tuple(map(get_vendor, names))
    tables = tuple(load_ops(Path(vendor.folder)) for vendor in vendors)
    return VENDORS.render(VendorListing(vendors, tables, len(names) == 1), "html", options)


def _watch(folder: Path, options: Options) -> bytes:
    runs = [
        watched(folder / "npu.h5", nan_from=17),
        watched(folder / "gpu.h5", loss=lambda step: 1.01 / step),
    ]
    return CURVES.render(trends_of(runs), "html", options)


EVERY_PAGE: dict[str, MakePage] = {
    "findings": lambda folder, options: FINDINGS.render(samples.sample_report(), "html", options),
    "ops": lambda folder, options: READINESS.render(readinesses.sample(), "html", options),
    "proof": lambda folder, options: PROOFS.render(proofs.sample(), "html", options),
    "compare": lambda folder, options: COMPARISONS.render(comparisons.faulty(), "html", options),
    "analyze": lambda folder, options: ANALYSES.render(analyses.bottleneck(), "html", options),
    "watch": _watch,
    "doctor": _doctor,
    "explain": lambda folder, options: EXPLANATIONS.render(
        explained(LOGS["vector core"][1]), "html", options
    ),
    "oplog": _oplog,
    "zoo": _zoo,
    "vendors": lambda folder, options: _vendors(vendor_names(), options),
    "vendor": lambda folder, options: _vendors(["ascend"], options),
    "rules": lambda folder, options: RULES.render(all_rules(), "html", options),
    "rule": lambda folder, options: RULES.render([all_rules()[4]], "html", options),
}
