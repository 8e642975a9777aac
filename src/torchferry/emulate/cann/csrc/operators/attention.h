// Attention over one sequence: all its heads, from its queries, keys and values, in single precision.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

namespace cann::attention {

using at::Tensor;

// Tensors by heads: (heads, length, features); keys and values may have fewer heads.
struct Sequence {
  Tensor query;
  Tensor key;
  Tensor value;
  Tensor hidden; // truth values, one of (length, keys) or of (heads, length, keys); undefined: all is seen
  bool is_causal = false; // the place of `hidden`, where a query sees the keys up to its own place
  Tensor bias; // added to the products, one for each head
  bool bias_is_scaled = false; // added before they are scaled
  Tensor kept; // what dropout keeps, as 0 and 1
  Tensor sink; // a number of each head that is one more thing to attend to
  double scale = 1;
  double keep = 1;
};

struct Outcome {
  Tensor out;
  Tensor largest; // of the scores of each query, (heads, length, 1)
  Tensor sum; // of the exponentials of the scores less the largest; 0 where a query sees nothing
};

struct Gradients {
  Tensor query;
  Tensor key;
  Tensor value;
  Tensor bias;
  Tensor sink;
};

Outcome forward(const Sequence& sequence);

Gradients backward(const Sequence& sequence, const Tensor& grad, const Tensor& largest, const Tensor& sum);

} // namespace cann::attention
