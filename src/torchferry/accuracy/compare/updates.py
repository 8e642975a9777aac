"""What an optimizer's step reads and writes in one process: gradients and parameters, in its order. No torch."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchferry.accuracy.compare.lineup import COMMUNICATION, FORWARD, OPTIMIZER, module_path
from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.model import Call, TensorRecord
from torchferry.operators.names import base_name, is_plumbing

_PARAMETER = "parameter"
_GRADIENTS = "input/grads"  # of fused optimizers, which may write to them
_UNSCALING = "_amp_foreach_non_finite_check_and_unscale_"
_OF_SCALING = ("input/found_inf", "input/inv_scale")
_HANDING_OVER = ("detach", "add_")  # by which autograd makes the result of a backward pass a gradient
_ACCUMULATING = "AccumulateGrad"
_READING = ("clone", "copy_", "_to_copy")  # plumbing that counts as a look at a gradient


@dataclass
class UpdatedParameter:
    """A parameter before and after the step."""

    before: TensorRecord
    after: TensorRecord
    is_known: bool  # for a parameter: the model has used it; it might be the optimizer's own state otherwise
    last: int = 0  # the call that has written to it last


@dataclass
class OptimizerStep:
    """Of one process."""

    own: list[TensorRecord] = field(default_factory=list)  # gradients as the backward pass has left them
    gradients: list[TensorRecord] = field(default_factory=list)  # as the optimizer reads them first
    written: list[UpdatedParameter] = field(default_factory=list)
    modules: dict[int, str] = field(default_factory=dict)  # content of a gradient -> where it was made

    @property
    def parameters(self) -> list[UpdatedParameter]:
        """What is known for a parameter; else what the last call has written to, as an optimizer's last does."""
        known = [each for each in self.written if each.is_known]
        last = max((each.last for each in self.written), default=0)
        return known or [each for each in self.written if each.last == last]

    def read(self) -> list[TensorRecord]:
        """The gradients, as the optimizer reads them first."""
        return self.gradients

    def before(self) -> list[TensorRecord]:
        """The parameters before the step."""
        return [each.before for each in self.parameters]

    def after(self) -> list[TensorRecord]:
        """The parameters after it."""
        return [each.after for each in self.parameters]


class StepsOfOptimizer:
    """Follows the contents of one process from the forward pass to the weights after each step."""

    def __init__(self, record: Record, *, is_first_alone: bool = False) -> None:
        self.steps: dict[int, OptimizerStep] = {}
        self._forward: set[int] = set()  # contents that a forward pass has seen
        self._state: set[int] = set()  # contents that an optimizer has made
        self._places: dict[int, UpdatedParameter] = {}  # by the content that it has now
        self._seen: set[int] = set()  # gradients of the step
        self._waiting: list[Call] = []  # calls of the step after its backward pass
        self._step = 0
        for at in range(len(record.calls)):
            if is_first_alone and self._step not in (0, record.calls[at].step):
                break
            self._see(record.calls[at])
        self._end_step()

    def _see(self, call: Call) -> None:
        if call.step != self._step:
            self._end_step()
            self._step = call.step
        step = self.steps.setdefault(call.step, OptimizerStep())
        if call.phase == OPTIMIZER:
            self._waiting.append(call)
        elif call.phase == FORWARD:
            self._forward.update(each.content for each in (*call.inputs, *call.outputs))
        elif call.node == _ACCUMULATING and base_name(call.operator) in _HANDING_OVER:
            step.own += [each for each in call.inputs[-1:] if each.offset is not None]
        else:
            if call.module:
                path = module_path(call)
                step.modules.update((each.content, path) for each in call.outputs if each.content)
            # parameters that are gathered once more for the backward pass
            self._forward.update(each.content for each in call.inputs if each.role == _PARAMETER)

    def _end_step(self) -> None:
        """Look at what the optimizers do; what is done to gradients before, elsewhere in the program, is not theirs."""
        waiting, self._waiting = self._waiting, []
        places = {call.place for call in waiting if any(map(self._is_known, call.inputs)) and _written(call)}
        if not places and waiting:
            places = {waiting[-1].place}
        for call in waiting:
            if call.place in places and not call.operator.startswith(COMMUNICATION):
                self._see_update(call, self.steps[self._step])
        self._state -= self._places.keys()  # parameters are no state
        self._places, self._seen, self._forward = {}, set(), set()

    def _is_known(self, tensor: TensorRecord) -> bool:
        return tensor.role == _PARAMETER or (tensor.content in self._forward and tensor.content != 0)

    def _see_update(self, call: Call, step: OptimizerStep) -> None:
        name = base_name(call.operator)
        if is_plumbing(call.operator) and name not in _READING:
            given = {each.content for each in call.inputs}  # what a view shows is nothing new
            self._state.update(each.content for each in call.outputs if each.content not in given)
            return
        written = _written(call)
        for tensor in call.inputs:
            after = written.get(tensor.name.partition("/")[2])
            if self._is_gradient(tensor, name, is_written=after is not None):
                self._seen.add(tensor.content)
                step.gradients.append(tensor)
            elif after is not None and after.offset is not None:
                self._update(call.number, tensor, after, step)
        self._state.update(each.content for each in call.outputs if each.content not in self._places)

    def _is_gradient(self, tensor: TensorRecord, operator: str, *, is_written: bool) -> bool:
        if tensor.role or tensor.offset is None or not tensor.shape or "float" not in tensor.dtype:
            return False
        if tensor.name.startswith(_OF_SCALING):
            return False
        if any(tensor.content in known for known in (self._seen, self._places, self._state, self._forward)):
            return False
        return not is_written or operator == _UNSCALING or tensor.name.startswith(_GRADIENTS)

    def _update(self, number: int, tensor: TensorRecord, after: TensorRecord, step: OptimizerStep) -> None:
        known = self._places.pop(tensor.content, None)
        if known is None:
            if tensor.offset is None or not tensor.shape or tensor.content in self._state:
                return
            known = UpdatedParameter(tensor, after, self._is_known(tensor))
            step.written.append(known)
        known.after, known.last = after, number
        self._places[after.content] = known


def _written(call: Call) -> dict[str, TensorRecord]:
    """The arguments that a call has written to, by their names."""
    return {each.name.partition("/")[2]: each for each in call.outputs if "/output_" not in each.name}


def gradient_shapes(record: Record) -> list[tuple[int, ...]]:
    """Of the gradients that the first recorded step of the optimizer reads."""
    steps = StepsOfOptimizer(record, is_first_alone=True).steps
    return [each.shape for step in steps.values() for each in step.gradients]
