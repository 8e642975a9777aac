#include "recurrent.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include "optional.h"

namespace cann::recurrent {
namespace {

// The plugin keeps sequences of different lengths one beside the other, each with as much room as the longest: which of these rows,
// step by step, are used.
Tensor used_rows(const Tensor& batch_sizes, int64_t width) {
  return at::arange(width).lt(batch_sizes.unsqueeze(1)).reshape({-1}).nonzero().squeeze(1);
}

// Rows in use, one beside the other as ATen wants them, put back where the plugin has room for all.
Tensor with_room(const Tensor& packed, const Tensor& rows, int64_t room) {
  return at::zeros({room, packed.size(1)}, packed.options()).index_copy(0, rows, packed);
}

} // namespace

Tensors lstm(const Layers& layers, const Tensors& inputs) {
  const Tensor& data = inputs[0];
  const at::TensorList states(inputs.data() + 1, 2);
  const at::TensorList parameters(inputs.data() + 3, inputs.size() - 3);
  if (!layers.batch_sizes.defined()) {
    const auto [out, hidden, cells] = at::lstm(
        data, states, parameters, layers.has_bias, layers.count, 0., layers.training, layers.both_ways, layers.batch_first);
    return {out, hidden, cells};
  }
  const int64_t steps = layers.batch_sizes.size(0);
  const Tensor rows = used_rows(layers.batch_sizes, data.size(0) / steps);
  const auto [out, hidden, cells] = at::lstm(
      data.index_select(0, rows),
      layers.batch_sizes,
      states,
      parameters,
      layers.has_bias,
      layers.count,
      0.,
      layers.training,
      layers.both_ways);
  return {with_room(out, rows, data.size(0)).view({steps, -1, out.size(1)}), hidden, cells};
}

Tensors gru(const Layers& layers, const Tensors& inputs) {
  TORCH_CHECK(!layers.batch_sizes.defined(), "sequences of different lengths are not supported");
  const at::TensorList parameters(inputs.data() + 2, inputs.size() - 2);
  const auto [out, hidden] = at::gru(
      inputs[0],
      inputs[1],
      parameters,
      layers.has_bias,
      layers.count,
      0.,
      layers.training,
      layers.both_ways,
      layers.batch_first);
  return {out, hidden};
}

Gates gates_of(const Tensor& sums) {
  const auto parts = sums.chunk(4, 1);
  return {parts[0].sigmoid(), parts[1].sigmoid(), parts[2].tanh(), parts[3].sigmoid()};
}

CellGradients cell_gradients(
    const Gates& gates, const Tensor& cells_before, const Tensor& cells, const Tensor& of_hidden, const Tensor& of_cells) {
  const auto of_sigmoid = [](const Tensor& gate) { return gate.mul(at::rsub(gate, 1)); };
  const auto of_tanh = [](const Tensor& value) { return at::rsub(value.mul(value), 1); };
  const Tensor shown = cells.tanh();
  const Tensor all = of_cells.add(of_hidden.mul(gates.leave).mul(of_tanh(shown)));
  const Tensor sums = at::cat(
      {all.mul(gates.change).mul(of_sigmoid(gates.enter)),
       all.mul(cells_before).mul(of_sigmoid(gates.forget)),
       all.mul(gates.enter).mul(of_tanh(gates.change)),
       of_hidden.mul(shown).mul(of_sigmoid(gates.leave))},
      1);
  return {sums, all.mul(gates.forget)};
}

} // namespace cann::recurrent

namespace {

using at::Tensor;
using cann::IValue;
using cann::tensor_or_nothing;
using cann::Tensors;
using cann::script::write;
using cann::recurrent::Layers;

Tensor computed_in(const Tensor& given) {
  return given.scalar_type() == at::kHalf || given.scalar_type() == at::kBFloat16 ? given.to(at::kFloat) : given;
}

void add(Tensors& inputs, const IValue& more) {
  if (more.isTensor()) {
    inputs.push_back(computed_in(more.toTensor()));
    return;
  }
  for (const Tensor& one : more.toTensorVector()) {
    inputs.push_back(computed_in(one));
  }
}

Tensors together(std::initializer_list<IValue> parts) {
  Tensors all;
  for (const IValue& part : parts) {
    add(all, part);
  }
  return all;
}

// What the plugin keeps for the backward pass, which computes it again: nothing is in it.
void leave_empty(const IValue& kept) {
  if (kept.isNone()) {
    return;
  }
  for (const Tensor& one : kept.toTensorVector()) {
    one.zero_();
  }
}

Tensor batch_sizes(const IValue& given) {
  return given.isNone() ? Tensor() : given.toTensor().to(at::kLong);
}

Tensors single(const IValue& a, const IValue& b) {
  Tensors all;
  for (const IValue& given : {a, b}) {
    all.push_back(given.isNone() ? Tensor() : computed_in(given.toTensor()));
  }
  return all;
}

} // namespace

OPERATOR(aclnnLSTM) {
  const Layers layers{a[5].toInt(), a[4].toBool(), a[7].toBool(), a[8].toBool(), a[9].toBool(), batch_sizes(a[3])};
  const Tensors found = cann::recurrent::lstm(layers, together({a[0], a[2], a[1]}));
  for (size_t i = 0; i < found.size(); ++i) {
    write(a[10 + i], found[i]);
  }
  for (size_t i = 13; i < 20; ++i) {
    leave_empty(a[i]);
  }
}

OPERATOR(aclnnLstmBackward) {
  const Layers layers{a[15].toInt(), a[14].toBool(), a[17].toBool(), a[18].toBool(), a[19].toBool(), batch_sizes(a[13])};
  Tensors of_results = single(a[3], a[4]);
  of_results.push_back(single(a[5], IValue())[0]);
  const Tensors found = cann::gradients(
      [&](const Tensors& given) { return cann::recurrent::lstm(layers, given); }, together({a[0], a[1], a[2]}), of_results);
  write(a[21], found[0]);
  write(a[22], found[1]);
  write(a[23], found[2]);
  write(a[24], Tensors(found.begin() + 3, found.end()));
}

OPERATOR(aclnnGRU) {
  const Layers layers{a[5].toInt(), a[4].toBool(), a[7].toBool(), a[8].toBool(), a[9].toBool(), batch_sizes(a[3])};
  const Tensors found = cann::recurrent::gru(layers, together({a[0], a[2], a[1]}));
  write(a[10], found[0]);
  write(a[11], found[1]);
  for (size_t i = 12; i < 17; ++i) {
    leave_empty(a[i]);
  }
}

OPERATOR(aclnnGRUBackward) {
  const Layers layers{a[12].toInt(), a[11].toBool(), true, a[13].toBool(), a[14].toBool(), batch_sizes(a[10])};
  const Tensors found = cann::gradients(
      [&](const Tensors& given) { return cann::recurrent::gru(layers, given); },
      together({a[0], a[2], a[1]}),
      single(a[3], a[4]));
  write(a[15], found[0]);
  write(a[16], found[1]);
  write(a[17], Tensors(found.begin() + 2, found.end()));
}

OPERATOR(aclnnThnnFusedLstmCell) {
  Tensor sums = computed_in(a[0].toTensor()).add(computed_in(a[1].toTensor()));
  for (const IValue& bias : {a[3], a[4]}) {
    sums = bias.isNone() ? sums : sums.add(computed_in(bias.toTensor()));
  }
  const auto gates = cann::recurrent::gates_of(sums);
  const Tensor cells = gates.forget.mul(computed_in(a[2].toTensor())).add(gates.enter.mul(gates.change));
  write(a[5], gates.leave.mul(cells.tanh()));
  write(a[6], cells);
  write(a[7], at::cat({gates.enter, gates.forget, gates.change, gates.leave}, 1));
}

OPERATOR(aclnnThnnFusedLstmCellBackward) {
  const auto kept = computed_in(a[4].toTensor()).chunk(4, 1);
  const Tensor before = computed_in(a[2].toTensor());
  const auto grad = [&](const IValue& given) {
    return given.isNone() ? at::zeros_like(before) : computed_in(given.toTensor());
  };
  const auto found = cann::recurrent::cell_gradients(
      {kept[0], kept[1], kept[2], kept[3]}, before, computed_in(a[3].toTensor()), grad(a[0]), grad(a[1]));
  write(a[6], found.sums);
  write(a[7], found.cells);
  if (a[5].toBool()) {
    write(a[8], found.sums.sum(0));
  }
}
