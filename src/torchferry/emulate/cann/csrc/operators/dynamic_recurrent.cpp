// One layer of LSTM or GRU, as the plugin calls it the old way where it does not call aclnnLSTM or aclnnGRU.
#include <ATen/Functions.h>

#include "builtins_networks.h"
#include "gradients.h"
#include "recurrent.h"

namespace cann::builtins {
namespace {

using at::Tensor;

Tensor in_single(const Tensor& given) {
  return given.defined() && at::isReducedFloatingType(given.scalar_type()) ? given.to(at::kFloat) : given;
}

Tensors all_in_single(const Tensors& given) {
  Tensors all;
  for (const Tensor& one : given) {
    all.push_back(in_single(one));
  }
  return all;
}

// Steps in use of sequences of different lengths, from a mask of (steps, batch, features).
struct Lengths {
  explicit Lengths(const Tensor& mask)
      : used(mask.select(2, 0).ne(0)), batch_sizes(used.sum(1)), rows(used.reshape({-1}).nonzero().squeeze(1)) {}

  // For each row the one at the same distance from the other end of its sequence.
  Tensor reversed() const {
    const Tensor lengths = used.sum(0);
    const Tensor steps = at::arange(used.size(0)).unsqueeze(1);
    const Tensor mirrored = at::where(used, lengths.unsqueeze(0).sub(steps).sub(1), steps);
    return mirrored.mul(used.size(1)).add(at::arange(used.size(1))).reshape({-1});
  }

  Tensor used;
  Tensor batch_sizes;
  Tensor rows;
};

struct Lstm {
  bool reversed = false;
  Tensor mask; // undefined: all sequences are equally long
};

// The input and the hidden state have one weight together, the states have a dimension of one layer.
struct LstmInputs {
  explicit LstmInputs(const Tensors& given)
      : x(given[0]),
        of_input(given[1].slice(0, 0, given[0].size(2)).t()),
        of_hidden(given[1].slice(0, given[0].size(2)).t()),
        bias(given[2]),
        hidden(given[3].reshape({1, given[0].size(1), -1})),
        cells(given[4].reshape({1, given[0].size(1), -1})) {}

  Tensors parameters() const {
    return {of_input, of_hidden, bias, at::zeros_like(bias)};
  }

  Tensor x;
  Tensor of_input;
  Tensor of_hidden;
  Tensor bias;
  Tensor hidden;
  Tensor cells;
};

Tensors equally_long(const Lstm& of, const LstmInputs& in) {
  const Tensor x = of.reversed ? in.x.flip({0}) : in.x;
  const auto [out, hidden, cells] = at::lstm(x, {in.hidden, in.cells}, in.parameters(), true, 1, 0., true, false, false);
  return {of.reversed ? out.flip({0}) : out, hidden, cells};
}

Tensors of_lengths(const Lstm& of, const LstmInputs& in) {
  const Lengths lengths(of.mask);
  const Tensor flat = in.x.reshape({-1, in.x.size(2)});
  const Tensor given = of.reversed ? flat.index_select(0, lengths.reversed()) : flat;
  const auto [packed, hidden, cells] = at::lstm(
      given.index_select(0, lengths.rows), lengths.batch_sizes, {in.hidden, in.cells}, in.parameters(), true, 1, 0., true, false);
  const Tensor out = at::zeros({flat.size(0), packed.size(1)}, packed.options()).index_copy(0, lengths.rows, packed);
  const Tensor ordered = of.reversed ? out.index_select(0, lengths.reversed()) : out;
  return {ordered.view({in.x.size(0), in.x.size(1), -1}), hidden, cells};
}

// Output of all steps, last states.
Tensors lstm(const Lstm& of, const Tensors& inputs) {
  const LstmInputs in(inputs);
  return of.mask.defined() ? of_lengths(of, in) : equally_long(of, in);
}

// States that stay as they are where a sequence is not in use.
Tensor kept(const Lstm& of, int64_t step, const Tensor& next, const Tensor& before) {
  return of.mask.defined() ? at::where(of.mask.select(0, step).ne(0), next, before) : next;
}

// What the operator hands back beside the output: hidden states, cells, the four gates and the cells' tanh at each step.
Tensors inner_values(const Lstm& of, const LstmInputs& in, const Tensors& found) {
  const int64_t steps = in.x.size(0);
  std::vector<Tensors> values(7, Tensors(static_cast<size_t>(steps)));
  Tensor hidden = in.hidden[0];
  Tensor cells = in.cells[0];
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t step = of.reversed ? steps - 1 - i : i;
    const Tensor sums = at::linear(in.x[step], in.of_input, in.bias).add(at::linear(hidden, in.of_hidden));
    const auto gates = recurrent::gates_of(sums);
    cells = kept(of, step, gates.forget.mul(cells).add(gates.enter.mul(gates.change)), cells);
    hidden = kept(of, step, found[0][step], hidden);
    const Tensor all[] = {hidden, cells, gates.enter, gates.change, gates.forget, gates.leave, cells.tanh()};
    for (size_t k = 0; k < values.size(); ++k) {
      values[k][static_cast<size_t>(step)] = all[k];
    }
  }
  const size_t last = of.reversed ? 0 : static_cast<size_t>(steps) - 1;
  values[0][last] = found[1][0];
  values[1][last] = found[2][0];
  Tensors stacked;
  for (const auto& one : values) {
    stacked.push_back(at::stack(one));
  }
  return stacked;
}

Lstm lstm_of(const IValue& direction, const Tensor& mask) {
  return {direction.isString() && direction.toStringRef() == "REDIRECTIONAL", mask.defined() && mask.dim() == 3 ? mask : Tensor()};
}

IValue listed(const Tensors& tensors) {
  return c10::List<Tensor>(tensors);
}

} // namespace

IValue dynamic_rnn(const IValue& inputs, const IValue& direction) {
  const Tensors given = inputs.toTensorVector();
  const Lstm of = lstm_of(direction, given[3]);
  const Tensors in = all_in_single({given[0], given[1], given[2], given[4], given[5]});
  const Tensors found = lstm(of, in);
  Tensors outputs{found[0]};
  for (const Tensor& value : inner_values(of, LstmInputs(in), found)) {
    outputs.push_back(value);
  }
  return listed(outputs);
}

IValue dynamic_rnn_backward(const IValue& inputs, const IValue& direction) {
  const Tensors given = inputs.toTensorVector();
  const Lstm of = lstm_of(direction, given[16]);
  const Tensors in = all_in_single({given[0], given[1], given[2], given[4], given[5]});
  const auto of_state = [&](const Tensor& grad) { return in_single(grad).reshape({1, in[0].size(1), -1}); };
  const Tensors found = gradients(
      [&](const Tensors& leaves) { return lstm(of, leaves); }, in, {in_single(given[8]), of_state(given[9]), of_state(given[10])});
  return listed({found[1], found[2], found[0], found[3], found[4]});
}

IValue lstm_cell_backward(const IValue& inputs) {
  const Tensors in = all_in_single(inputs.toTensorVector());
  const int64_t batch = in[0].numel() / in[1].size(0);
  const auto flat = [&](const Tensor& of_one_step) { return of_one_step.reshape({batch, -1}); };
  const recurrent::Gates gates{flat(in[11]), flat(in[13]), flat(in[12]), flat(in[14])};
  const Tensor x = flat(in[0]);
  const Tensor hidden = flat(in[4]);
  const Tensor of_hidden = flat(in[8]).add(flat(in[9]));
  const auto found = recurrent::cell_gradients(gates, flat(in[5]), flat(in[7]), of_hidden, flat(in[10]));
  return listed(
      {x.t().matmul(found.sums),
       hidden.t().matmul(found.sums),
       found.sums.sum(0),
       found.sums.matmul(in[1].t()),
       found.sums.matmul(in[2].t()),
       found.cells});
}

IValue dynamic_gru(const IValue& inputs) {
  const Tensors given = inputs.toTensorVector();
  const Tensors in = all_in_single({given[0], given[1], given[2], given[3], given[4], given[6]});
  const Tensor first = in[5].reshape({1, in[0].size(1), -1});
  const Tensor out = std::get<0>(at::gru(in[0], first, {in[1].t(), in[2].t(), in[3], in[4]}, true, 1, 0., true, false, false));
  const Tensor before = at::cat({first, out.slice(0, 0, -1)});
  const auto of_input = at::linear(in[0], in[1].t(), in[3]).chunk(3, 2);
  const auto of_hidden = at::linear(before, in[2].t(), in[4]).chunk(3, 2);
  const Tensor reset = of_input[0].add(of_hidden[0]).sigmoid();
  const Tensor fresh = of_input[2].add(reset.mul(of_hidden[2])).tanh();
  return listed({out, out, of_input[1].add(of_hidden[1]).sigmoid(), reset, fresh, of_hidden[2]});
}

// Step by step from the end: the biases are not among the inputs, the gates are.
IValue dynamic_gru_backward(const IValue& inputs) {
  const Tensors in = all_in_single(inputs.toTensorVector());
  const Tensor& x = in[0];
  const Tensor first = in[4].reshape({1, x.size(1), -1});
  const Tensor before = at::cat({first, in[5].slice(0, 0, -1)});
  const Tensor& update = in[8];
  const Tensor& reset = in[9];
  const Tensor& fresh = in[10];
  const Tensor& of_hidden = in[11];
  Tensor carried = in[7].reshape({x.size(1), -1});
  Tensors by_input(static_cast<size_t>(x.size(0)));
  Tensors by_hidden(by_input.size());
  for (int64_t t = x.size(0) - 1; t >= 0; --t) {
    const Tensor grad = in[6][t].add(carried);
    const Tensor by_fresh = grad.mul(at::rsub(update[t], 1)).mul(at::rsub(fresh[t].mul(fresh[t]), 1));
    const Tensor by_update = grad.mul(before[t].sub(fresh[t])).mul(update[t]).mul(at::rsub(update[t], 1));
    const Tensor by_reset = by_fresh.mul(of_hidden[t]).mul(reset[t]).mul(at::rsub(reset[t], 1));
    by_input[static_cast<size_t>(t)] = at::cat({by_reset, by_update, by_fresh}, 1);
    by_hidden[static_cast<size_t>(t)] = at::cat({by_reset, by_update, by_fresh.mul(reset[t])}, 1);
    carried = grad.mul(update[t]).add(by_hidden[static_cast<size_t>(t)].matmul(in[2].t()));
  }
  const Tensor of_inputs = at::stack(by_input);
  const Tensor of_hiddens = at::stack(by_hidden);
  return listed({
      x.flatten(0, 1).t().matmul(of_inputs.flatten(0, 1)),
      before.flatten(0, 1).t().matmul(of_hiddens.flatten(0, 1)),
      of_inputs.sum({0, 1}),
      of_hiddens.sum({0, 1}),
      of_inputs.matmul(in[1].t()),
      carried});
}

} // namespace cann::builtins
