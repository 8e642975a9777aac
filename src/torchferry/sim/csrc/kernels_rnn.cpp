// Recurrent layers. PyTorch takes other formulas for them on devices than on the CPU, and a slow way where a device
// has no fused kernels. Here a whole layer is one step of the device's graph; inside it the CPU's own code runs, and
// its own derivative.
#include "host_call.h"
#include "host_view.h"
#include "device.h"
#include "generator.h"
#include "operators.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <functional>

namespace ferry {
namespace {

using at::Tensor;
using at::TensorList;
using torch::autograd::variable_list;
using Layer = std::function<variable_list(const variable_list&)>;

variable_list on_device(const variable_list& hosts, c10::DeviceIndex device) {
  variable_list tensors;
  for (const Tensor& host : hosts) {
    // Two results of one host tensor (an output and its last step) are separate tensors on the device.
    const Tensor plain = host.detach();
    tensors.push_back(adopt_host_tensor(plain.storage().use_count() > 2 ? plain.clone() : plain, device));
  }
  return tensors;
}

variable_list on_host(const variable_list& tensors) {
  variable_list hosts;
  for (const Tensor& tensor : tensors) {
    hosts.push_back(is_on_device(tensor) ? host_view(tensor) : tensor);
  }
  return hosts;
}

// The derivative of one call: the host's graph, kept from forward to backward.
struct HostLayerBackward final : torch::autograd::Node {
  variable_list apply(variable_list&& gradients) override {
    TORCH_CHECK(!host_outputs.empty(), "Trying to backward through a recurrent layer a second time.");
    TORCH_CHECK(
        !at::GradMode::is_enabled(),
        "The simulated device has no second derivative of recurrent layers (create_graph=True).");
    variable_list given;
    for (size_t i = 0; i < gradients.size(); ++i) {
      given.push_back(gradients[i].defined() ? on_host({gradients[i]})[0] : at::zeros_like(host_outputs[i]));
    }
    variable_list wanted;
    for (const Tensor& input : host_inputs) {
      if (input.requires_grad()) {
        wanted.push_back(input);
      }
    }
    const Inside inside;
    const HalfInSingle half_in_single;
    const auto found = torch::autograd::grad(
        host_outputs, wanted, given, /*retain_graph=*/true, /*create_graph=*/false, /*allow_unused=*/true);
    variable_list results;
    size_t next = 0;
    for (const Tensor& input : host_inputs) {
      const Tensor gradient = input.requires_grad() ? found[next++] : Tensor();
      results.push_back(gradient.defined() ? on_device({gradient}, device)[0] : Tensor());
    }
    return results;
  }

  std::string name() const override {
    return "HostLayerBackward";
  }

  void release_variables() override {
    host_inputs.clear();
    host_outputs.clear();
  }

  variable_list host_inputs;
  variable_list host_outputs;
  c10::DeviceIndex device = 0;
};

// Nodes were shared pointers until they got a header of their own.
#if __has_include(<torch/csrc/autograd/node.h>)
auto make_node() {
  return c10::make_intrusive<HostLayerBackward>();
}
#else
auto make_node() {
  return std::shared_ptr<HostLayerBackward>(new HostLayerBackward(), torch::autograd::deleteNode);
}
#endif

variable_list run_with_graph(const variable_list& inputs, const Layer& layer) {
  for (const Tensor& input : inputs) {
    TORCH_CHECK(
        !input.defined() || !input.is_inference(),
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
        "computation tracked by autograd.");
  }
  auto node = make_node();
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  node->device = inputs[0].device().index();
  {
    const at::AutoGradMode with_grad(true);
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    LendEngine lend(node->device);
    const Inside inside;
    const HalfInSingle half_in_single;
    node->host_inputs = on_host(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      node->host_inputs[i].set_requires_grad(inputs[i].requires_grad());
    }
    node->host_outputs = layer(node->host_inputs);
  }
  auto results = on_device(node->host_outputs, node->device);
  for (Tensor& result : results) {
    torch::autograd::set_history(result, node);
  }
  return results;
}

variable_list run(const variable_list& inputs, const Layer& layer) {
  if (single_precision_of(inputs[0].scalar_type()).has_value()) {
    prepare_half_in_single();
  }
  bool needs_graph = false;
  for (const Tensor& input : inputs) {
    needs_graph |= input.defined() && input.requires_grad();
  }
  if (needs_graph && at::GradMode::is_enabled()) {
    return run_with_graph(inputs, layer);
  }
  HostOnly host_only;
  const Inside inside;
  const c10::DeviceIndex device = inputs[0].device().index();
  LendEngine lend(device);
  return on_device(layer(on_host(inputs)), device);
}

variable_list joined(std::initializer_list<TensorList> parts) {
  variable_list all;
  for (const TensorList part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TensorList slice(const variable_list& all, size_t begin, size_t count) {
  return TensorList(all).slice(begin, count);
}

std::tuple<Tensor, Tensor, Tensor> three(const variable_list& results) {
  return {results[0], results[1], results[2]};
}

std::tuple<Tensor, Tensor> two(const variable_list& results) {
  return {results[0], results[1]};
}

std::tuple<Tensor, Tensor, Tensor> lstm_input(
    const Tensor& input, TensorList hx, TensorList params, bool biases, int64_t layers, double dropout, bool train,
    bool bidirectional, bool batch_first) {
  const Passage passage("aten::lstm", "input");
  return three(run(joined({input, hx, params}), [&](const variable_list& t) -> variable_list {
    const auto [output, hidden, cell] = at::lstm(
        t[0], slice(t, 1, hx.size()), slice(t, 1 + hx.size(), params.size()), biases, layers, dropout, train,
        bidirectional, batch_first);
    return {output, hidden, cell};
  }));
}

std::tuple<Tensor, Tensor, Tensor> lstm_data(
    const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList params, bool biases, int64_t layers,
    double dropout, bool train, bool bidirectional) {
  const Passage passage("aten::lstm", "data");
  return three(run(joined({data, hx, params}), [&](const variable_list& t) -> variable_list {
    const auto [output, hidden, cell] = at::lstm(
        t[0], batch_sizes, slice(t, 1, hx.size()), slice(t, 1 + hx.size(), params.size()), biases, layers, dropout,
        train, bidirectional);
    return {output, hidden, cell};
  }));
}

// gru, rnn_tanh and rnn_relu have the same two signatures.
template <auto host_layer, const char* name>
std::tuple<Tensor, Tensor> recurrent_input(
    const Tensor& input, const Tensor& hx, TensorList params, bool biases, int64_t layers, double dropout, bool train,
    bool bidirectional, bool batch_first) {
  const Passage passage(name, "input");
  return two(run(joined({input, hx, params}), [&](const variable_list& t) -> variable_list {
    const auto [output, hidden] = host_layer(
        t[0], t[1], slice(t, 2, params.size()), biases, layers, dropout, train, bidirectional, batch_first);
    return {output, hidden};
  }));
}

template <auto host_layer, const char* name>
std::tuple<Tensor, Tensor> recurrent_data(
    const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, bool biases, int64_t layers,
    double dropout, bool train, bool bidirectional) {
  const Passage passage(name, "data");
  return two(run(joined({data, hx, params}), [&](const variable_list& t) -> variable_list {
    const auto [output, hidden] = host_layer(
        t[0], batch_sizes, t[1], slice(t, 2, params.size()), biases, layers, dropout, train, bidirectional);
    return {output, hidden};
  }));
}

variable_list cell_tensors(
    TensorList states, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih,
    const std::optional<Tensor>& b_hh) {
  auto all = joined({states, w_ih, w_hh});
  for (const auto& bias : {b_ih, b_hh}) {
    if (bias.has_value() && bias->defined()) {
      all.push_back(*bias);
    }
  }
  return all;
}

std::optional<Tensor> bias_at(const variable_list& all, size_t position) {
  return position < all.size() ? std::make_optional(all[position]) : std::nullopt;
}

std::tuple<Tensor, Tensor> lstm_cell(
    const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih,
    const std::optional<Tensor>& b_hh) {
  const Passage passage("aten::lstm_cell", "");
  const auto tensors = cell_tensors(joined({input, hx}), w_ih, w_hh, b_ih, b_hh);
  return two(run(tensors, [](const variable_list& t) -> variable_list {
    const auto [hidden, cell] = at::lstm_cell(t[0], slice(t, 1, 2), t[3], t[4], bias_at(t, 5), bias_at(t, 6));
    return {hidden, cell};
  }));
}

Tensor gru_cell(
    const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih,
    const std::optional<Tensor>& b_hh) {
  const Passage passage("aten::gru_cell", "");
  const auto tensors = cell_tensors({input, hx}, w_ih, w_hh, b_ih, b_hh);
  return run(tensors, [](const variable_list& t) -> variable_list {
    return {at::gru_cell(t[0], t[1], t[2], t[3], bias_at(t, 4), bias_at(t, 5))};
  })[0];
}

// The overloads of one function, told apart for use as template arguments.
using InputLayer = std::tuple<Tensor, Tensor> (*)(
    const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool, bool);
using DataLayer = std::tuple<Tensor, Tensor> (*)(
    const Tensor&, const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool);

constexpr char kGru[] = "aten::gru";
constexpr char kRnnTanh[] = "aten::rnn_tanh";
constexpr char kRnnRelu[] = "aten::rnn_relu";

void register_layers(torch::Library& m) {
  m.impl("lstm.input", &lstm_input);
  m.impl("lstm.data", &lstm_data);
  m.impl("gru.input", &recurrent_input<static_cast<InputLayer>(&at::gru), kGru>);
  m.impl("gru.data", &recurrent_data<static_cast<DataLayer>(&at::gru), kGru>);
  m.impl("rnn_tanh.input", &recurrent_input<static_cast<InputLayer>(&at::rnn_tanh), kRnnTanh>);
  m.impl("rnn_tanh.data", &recurrent_data<static_cast<DataLayer>(&at::rnn_tanh), kRnnTanh>);
  m.impl("rnn_relu.input", &recurrent_input<static_cast<InputLayer>(&at::rnn_relu), kRnnRelu>);
  m.impl("rnn_relu.data", &recurrent_data<static_cast<DataLayer>(&at::rnn_relu), kRnnRelu>);
  m.impl("lstm_cell", &lstm_cell);
  m.impl("gru_cell", &gru_cell);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  register_layers(m);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  register_layers(m);
}

} // namespace
} // namespace ferry
