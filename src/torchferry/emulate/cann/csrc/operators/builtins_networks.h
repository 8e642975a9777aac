// Functions for the tables of recurrent layers and deformable convolutions. Each takes and gives values.
#pragma once

#include "values.h"

namespace cann::builtins {

// One layer, forwards or ("REDIRECTIONAL") backwards, from the inputs of the operator: its outputs.
IValue dynamic_rnn(const IValue& inputs, const IValue& direction);
IValue dynamic_rnn_backward(const IValue& inputs, const IValue& direction);
IValue dynamic_gru(const IValue& inputs);
IValue dynamic_gru_backward(const IValue& inputs);

// What a deformable convolution takes from its input, both with the channels last; and the gradients of input and offsets.
IValue deformed(
    const IValue& input,
    const IValue& offsets,
    const IValue& kernel,
    const IValue& strides,
    const IValue& padding,
    const IValue& dilations,
    const IValue& groups);
IValue deformed_backward(
    const IValue& grad,
    const IValue& input,
    const IValue& offsets,
    const IValue& kernel,
    const IValue& strides,
    const IValue& padding,
    const IValue& dilations,
    const IValue& groups);

} // namespace cann::builtins
