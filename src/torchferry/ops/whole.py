"""Which calls of a program arrive at a device: those inside of an operator that the device takes whole do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from torchferry.ops.model import Capture, Site, Use

_Called = tuple[Site, str]  # where, as if from the program itself, and the operator


def device_uses(capture: Capture, is_whole: Callable[[str], bool]) -> list[Use]:
    """The uses that the device must serve. Of a composite operator: itself if it is taken whole, else its parts."""
    on_device = [use for use in capture.uses if capture.runs_on_device(use)]
    wholes = Wholes(on_device, is_whole)
    served, inner = [], []
    for use in on_device:
        if wholes.hide(use.site):
            inner.append(use)
        elif not use.expanded or is_whole(use.operator):
            served.append(use)
    return _with_time_of_parts(served, inner, wholes)


def _with_time_of_parts(served: list[Use], inner: list[Use], wholes: Wholes) -> list[Use]:
    """An operator that is taken whole takes the time of what it was made of, each of its uses by its calls."""
    seconds: Counter[_Called] = Counter()
    for use in inner:
        around = wholes.outermost(use.site)
        if around is not None:
            seconds[around] += use.seconds  # type: ignore[assignment]  # a counter counts fractions as well
    calls: Counter[_Called] = Counter()
    for use in served:
        calls[_called(use)] += use.calls
    return [_longer(use, seconds[_called(use)] / calls[_called(use)]) for use in served]


def _longer(use: Use, seconds_a_call: float) -> Use:
    extra = seconds_a_call * use.calls
    return replace(use, seconds=use.seconds + extra) if use.expanded and extra else use


class Wholes:
    """The operators that a device takes whole, and what is inside of them."""

    def __init__(self, uses: Iterable[Use], is_whole: Callable[[str], bool]) -> None:
        self._is_whole = is_whole
        self._expanded: dict[_Called, list[Use]] = {}
        self._hidden: dict[Site, bool] = {}
        for use in uses:
            if use.expanded:
                self._expanded.setdefault(_called(use), []).append(use)

    def hide(self, site: Site) -> bool:
        """Whether calls from here are made inside of a whole operator, however deep."""
        if not site.inside:
            return False
        if site not in self._hidden:
            self._hidden[site] = False  # an operator that calls itself from its own site ends here
            self._hidden[site] = self._is_whole(site.inside) or self._parents_are_hidden(site)
        return self._hidden[site]

    def outermost(self, site: Site) -> _Called | None:
        """The whole operator around a hidden call that is not hidden itself: where it is called, and its name."""
        seen = set()
        while site not in seen:
            seen.add(site)
            key = (_outside(site), site.inside)
            visible = next((use for use in self._expanded.get(key, []) if not self.hide(use.site)), None)
            if visible is not None:
                return key
            outer = next(iter(self._expanded.get(key, [])), None)
            if outer is None:
                return None
            site = outer.site
        return None

    def _parents_are_hidden(self, site: Site) -> bool:
        parents = self._expanded.get((_outside(site), site.inside), [])
        return bool(parents) and all(self.hide(parent.site) for parent in parents)


def _called(use: Use) -> _Called:
    return _outside(use.site), use.operator


def _outside(site: Site) -> Site:
    return replace(site, inside="")
