// Functions for the tables of recurrent layers, convolutions and embeddings. Each takes and gives values.
#pragma once

#include "values.h"

namespace cann::builtins {

// One layer, forwards or ("REDIRECTIONAL") backwards, from the inputs of the operator: its outputs.
IValue dynamic_rnn(const IValue& inputs, const IValue& direction);
IValue dynamic_rnn_backward(const IValue& inputs, const IValue& direction);
// The same of a cell, that is of one step.
IValue lstm_cell_backward(const IValue& inputs);
IValue dynamic_gru(const IValue& inputs);
IValue dynamic_gru_backward(const IValue& inputs);

// Numbers of classes as rows that have one value at the class, another elsewhere; the rows go along a dimension.
IValue marked_classes(const IValue& classes, const IValue& count, const IValue& on, const IValue& off, const IValue& axis);

// Places among dimensions, as a list; they are handed over as a tensor.
IValue dimensions_in(const IValue& tensor);

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
