// Recurrent layers by ATen's own, and their gradients by autograd, so that results are those of the same program on the CPU.
#pragma once

#include "gradients.h"

#include <ATen/core/Tensor.h>

namespace cann::recurrent {

using at::Tensor;

struct Layers {
  int64_t count = 1;
  bool has_bias = true;
  bool training = true;
  bool both_ways = false;
  bool batch_first = false;
  Tensor batch_sizes; // of sequences of different lengths: how many go on at each step; undefined where all are equally long
};

// The output, and the last states. Inputs are the sequences, the first states and the parameters.
Tensors lstm(const Layers& layers, const Tensors& inputs);
Tensors gru(const Layers& layers, const Tensors& inputs);

// The gates of one step of an LSTM, in the order of its weights.
struct Gates {
  Tensor enter;
  Tensor forget;
  Tensor change;
  Tensor leave;
};

Gates gates_of(const Tensor& sums);

struct CellGradients {
  Tensor sums; // of the gates, before their functions
  Tensor cells; // before the step
};

CellGradients cell_gradients(
    const Gates& gates, const Tensor& cells_before, const Tensor& cells, const Tensor& of_hidden, const Tensor& of_cells);

} // namespace cann::recurrent
