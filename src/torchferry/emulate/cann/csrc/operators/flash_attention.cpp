#include "attention.h"
#include "builtins.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace cann::builtins {
namespace {

using at::Tensor;
using attention::Sequence;

constexpr int64_t kCopies = 8; // of each number that is kept for the backward pass
constexpr int64_t kMaskSize = 2048; // of the mask that stands for a larger one
constexpr int64_t kBiasRows = 1024; // of a bias that stands for a longer one

// The modes of sparse attention, as the toolkit counts them.
enum Mode { kGiven = 0, kWhole = 1, kCausal = 2, kCausalAtEnd = 3, kBand = 4, kPrefix = 5, kShortPrefix = 6, kLastIsBand = 7, kFirstIsBand = 8 };

// How a bias joins the scores: given by the caller, or made of one slope for each head.
enum Bias { kAddedLast = 0, kAddedFirst = 1, kOfDistance = 2, kOfRootOfDistance = 3 };

std::vector<int64_t> ints(const IValue& list) {
  return list.isNone() ? std::vector<int64_t>{} : list.toIntVector();
}

// A tensor by its batch and its heads, whatever the order of its dimensions is.
class Layout {
 public:
  explicit Layout(std::string name) : name_(std::move(name)) {
    std::transform(name_.begin(), name_.end(), name_.begin(), [](unsigned char c) { return std::toupper(c); });
  }

  bool is_packed() const {
    return name_ == "TND";
  }

  int64_t batches(const Tensor& tensor) const {
    return tensor.size(name_ == "SBH" ? 1 : 0);
  }

  // (heads, length, features) of one of the batch; a view.
  Tensor one(const Tensor& tensor, int64_t index, int64_t heads) const {
    if (name_ == "BNSD") {
      return tensor[index];
    }
    if (name_ == "BSND") {
      return tensor[index].transpose(0, 1);
    }
    TORCH_CHECK(name_ == "BSH" || name_ == "SBH", "no layout ", name_);
    return tensor.select(name_ == "SBH" ? 1 : 0, index).unflatten(-1, {heads, -1}).transpose(0, 1);
  }

  // Where a sequence's rows stand one after the other.
  static Tensor rows(const Tensor& tensor, int64_t begin, int64_t count) {
    return tensor.narrow(0, begin, count).transpose(0, 1);
  }

  int64_t heads(const Tensor& tensor, int64_t features) const {
    if (is_packed() || name_ == "BNSD") {
      return tensor.size(1);
    }
    return name_ == "BSND" ? tensor.size(2) : tensor.size(2) / features;
  }

 private:
  std::string name_;
};

// The arguments that the forward and the backward functions have in common.
struct Call {
  Call(
      const IValue& tensors,
      const IValue& prefix,
      const IValue& query_ends,
      const IValue& key_ends,
      const IValue& query_start,
      const IValue& key_start,
      const IValue& scale,
      const IValue& keep,
      const IValue& numbers,
      const IValue& layout,
      const IValue& softmax_layout)
      : given(tensors.toTensorVector()),
        prefix(ints(prefix)),
        query_ends(ints(query_ends)),
        key_ends(ints(key_ends)),
        shift(first(query_start) - first(key_start)),
        scale(scale.toDouble()),
        keep(keep.toDouble()),
        layout(layout.toStringRef()),
        as_input(!softmax_layout.isNone() && softmax_layout.toStringRef() == "same_as_input") {
    const auto all = numbers.toIntVector();
    before = all[0];
    after = all[1];
    heads = all[2];
    mode = all[3];
    bias_kind = all[4];
    features = this->layout.is_packed() ? 0 : query_features();
    TORCH_CHECK(mode >= kGiven && mode <= kFirstIsBand, "no sparse mode ", mode);
  }

  const Tensor& query() const { return given[0]; }
  const Tensor& query_part() const { return given[1]; }
  const Tensor& key() const { return given[2]; }
  const Tensor& key_part() const { return given[3]; }
  const Tensor& value() const { return given[4]; }
  const Tensor& bias() const { return given[5]; }
  const Tensor& kept() const { return given[6]; }
  const Tensor& mask() const { return given[7]; }
  const Tensor& sink() const { return given[8]; }

  int64_t sequences() const {
    return layout.is_packed() ? static_cast<int64_t>(query_ends.size()) : layout.batches(query());
  }

  int64_t query_begin(int64_t index) const { return index == 0 ? 0 : query_ends[index - 1]; }
  int64_t key_begin(int64_t index) const { return index == 0 ? 0 : key_ends[index - 1]; }
  int64_t query_length(int64_t index) const { return query_ends[index] - query_begin(index); }
  int64_t key_length(int64_t index) const { return key_ends[index] - key_begin(index); }

  // Of tensors that are as the query, and as the key, is; views, which results can be written to.
  Tensor as_query(const Tensor& tensor, int64_t index) const {
    return layout.is_packed() ? Layout::rows(tensor, query_begin(index), query_length(index)) : layout.one(tensor, index, heads);
  }

  Tensor as_key(const Tensor& tensor, int64_t index) const {
    return layout.is_packed() ? Layout::rows(tensor, key_begin(index), key_length(index))
                              : layout.one(tensor, index, layout.heads(key(), features));
  }

  // Of the numbers for the backward pass. In the packed layout the heads come first, within each sequence.
  Tensor as_softmax(const Tensor& tensor, int64_t index) const {
    if (!layout.is_packed()) {
      return tensor[index];
    }
    if (as_input) {
      return Layout::rows(tensor, query_begin(index), query_length(index));
    }
    const int64_t length = query_length(index);
    return tensor.view({-1, kCopies}).narrow(0, query_begin(index) * heads, length * heads).view({heads, length, kCopies});
  }

  std::vector<Tensor> given;
  std::vector<int64_t> prefix;
  std::vector<int64_t> query_ends;
  std::vector<int64_t> key_ends;
  int64_t shift; // of the queries' places against the keys'
  double scale;
  double keep;
  int64_t before = 0;
  int64_t after = 0;
  int64_t heads = 0;
  int64_t mode = 0;
  int64_t bias_kind = 0;
  int64_t features = 0;
  Layout layout;
  bool as_input;

 private:
  static int64_t first(const IValue& list) {
    const auto all = ints(list);
    return all.empty() ? 0 : all[0];
  }

  int64_t query_features() const {
    return query().dim() == 4 ? query().size(3) : query().size(2) / heads;
  }
};

// How far each key stands behind the query's own place: (length, keys).
Tensor places(int64_t length, int64_t keys) {
  return at::arange(keys).unsqueeze(0) - at::arange(length).unsqueeze(1);
}

Tensor outside_band(const Tensor& ahead, int64_t before, int64_t after) {
  return ahead.gt(after).logical_or_(ahead.lt(-before));
}

bool sees_all(int64_t before, int64_t after) {
  constexpr int64_t kAll = std::numeric_limits<int32_t>::max();
  return before >= kAll && after >= kAll;
}

// Of one sequence, out of a mask for all.
Tensor full_mask(const Call& call, int64_t index, int64_t length, int64_t keys) {
  Tensor mask = call.mask();
  if (mask.dim() == 4) {
    mask = mask[mask.size(0) == 1 ? 0 : index];
  }
  TORCH_CHECK(
      mask.size(-2) >= length && mask.size(-1) >= keys, "the attention mask ", call.mask().sizes(), " is too small for ", length, " x ", keys);
  return mask.narrow(-2, 0, length).narrow(-1, 0, keys).to(at::kBool);
}

// The small mask must be the one that the mode is for: what another gives depends on the kernel's blocks.
void check_small_mask(const Call& call) {
  const int64_t rows = call.mode == kShortPrefix ? kMaskSize + kBiasRows : kMaskSize;
  const Tensor& mask = call.mask();
  TORCH_CHECK(
      mask.dim() >= 2 && mask.size(-2) == rows && mask.size(-1) == kMaskSize,
      "sparse mode ", call.mode, " wants a mask of ", rows, " x ", kMaskSize, ", not of ", mask.sizes());
  const Tensor upper = mask.view({-1, kMaskSize}).narrow(0, 0, kMaskSize).to(at::kBool);
  TORCH_CHECK(
      upper.equal(at::ones({kMaskSize, kMaskSize}, at::kBool).triu(1)),
      "sparse mode ", call.mode, " wants a mask that hides what is above the diagonal, torch.ones(2048, 2048).triu(1)");
}

bool is_banded(const Call& call, int64_t index) {
  if (call.mode == kBand) {
    return true;
  }
  if (call.mode == kFirstIsBand) {
    int64_t first = 0;
    while (first < index && call.query_length(first) == 0) {
      ++first;
    }
    return first == index;
  }
  if (call.mode == kLastIsBand) {
    int64_t last = call.sequences() - 1;
    while (last > index && call.query_length(last) == 0) {
      --last;
    }
    return last == index;
  }
  return false;
}

void set_hidden(Sequence& sequence, const Call& call, int64_t index) {
  const int64_t length = sequence.query.size(1);
  const int64_t keys = sequence.key.size(1);
  if (!call.mask().defined()) {
    return; // then the mode says nothing
  }
  if (call.mode == kGiven || call.mode == kWhole || call.mode == kPrefix) {
    sequence.hidden = full_mask(call, index, length, keys);
    if (call.mode == kGiven && !sees_all(call.before, call.after)) {
      sequence.hidden = sequence.hidden.logical_or(outside_band(places(length, keys), call.before, call.after));
    }
    return;
  }
  check_small_mask(call);
  const bool is_band = is_banded(call, index);
  const bool from_end = is_band || call.mode == kCausalAtEnd || call.mode == kShortPrefix || call.mode == kLastIsBand;
  const int64_t offset = from_end ? keys - length : 0;
  if (!is_band && offset == 0 && call.mode != kShortPrefix) {
    sequence.is_causal = true;
    return;
  }
  const Tensor ahead = places(length, keys) - offset;
  sequence.hidden = is_band ? outside_band(ahead, call.before, call.after) : ahead.gt(0);
  if (call.mode == kShortPrefix) {
    sequence.hidden.logical_and_(at::arange(keys).ge(call.prefix.at(index)));
  }
}

// Where the bias of a place is in the last row of a bias that depends on the distance alone.
Tensor places_in_last_row(const Call& call, int64_t length, int64_t keys) {
  const int64_t longest = call.bias().size(3);
  return (places(length, keys) + (longest - 1)).clamp(0, longest - 1).flatten();
}

bool is_shortened(const Call& call, int64_t length) {
  return call.bias().size(2) == kBiasRows && length > kBiasRows;
}

int64_t bias_batch(const Call& call, int64_t index) {
  return call.bias().size(0) == 1 ? 0 : index;
}

Tensor bias_of(const Call& call, int64_t index, int64_t length, int64_t keys) {
  const Tensor& bias = call.bias();
  if (call.bias_kind == kOfDistance || call.bias_kind == kOfRootOfDistance) {
    const Tensor slopes = bias.dim() == 2 ? bias[bias_batch(call, index)] : bias;
    const Tensor distance = (places(length, keys) - call.shift).abs().to(at::kFloat);
    return (call.bias_kind == kOfDistance ? distance : distance.sqrt()) * -slopes.to(at::kFloat).view({-1, 1, 1});
  }
  TORCH_CHECK(bias.dim() == 4, "a bias of the shape ", bias.sizes());
  const Tensor one = bias[bias_batch(call, index)].to(at::kFloat);
  if (is_shortened(call, length)) {
    return one.select(1, -1).index_select(1, places_in_last_row(call, length, keys)).view({one.size(0), length, keys});
  }
  return one.narrow(1, 0, one.size(1) == 1 ? 1 : length).narrow(2, 0, keys);
}

// Adds the gradient of a sequence's bias to that of all.
void add_bias_gradient(const Call& call, int64_t index, const Tensor& grad, Tensor& all) {
  if (call.bias_kind == kOfDistance || call.bias_kind == kOfRootOfDistance) {
    return; // slopes have none
  }
  Tensor one = all[bias_batch(call, index)];
  const int64_t length = grad.size(1);
  const int64_t keys = grad.size(2);
  if (is_shortened(call, length)) {
    one.select(1, -1).index_add_(1, places_in_last_row(call, length, keys), grad.flatten(1));
    return;
  }
  const bool is_row = one.size(1) == 1;
  one.narrow(1, 0, is_row ? 1 : length).narrow(2, 0, keys).add_(is_row ? grad.sum(1, true) : grad);
}

// What dropout keeps: a bit for each score, those of the sequences before this one first.
Tensor kept_of(const Call& call, int64_t index, int64_t length, int64_t keys) {
  int64_t skipped = 0;
  for (int64_t i = 0; i < index; ++i) {
    skipped += call.layout.is_packed() ? call.query_length(i) * call.key_length(i) : length * keys;
  }
  const std::vector<int64_t> sizes{(skipped + length * keys) * call.heads};
  const Tensor bits = unpacked_bits(call.kept(), sizes).toTensor();
  return bits.narrow(0, skipped * call.heads, length * keys * call.heads).view({call.heads, length, keys}).to(at::kFloat);
}

Tensor joined(const Tensor& main, const Tensor& part) {
  const Tensor whole = part.defined() ? at::cat({main, part}, -1) : main;
  return whole.to(at::kFloat);
}

Sequence sequence_of(const Call& call, int64_t index) {
  const auto query_part = call.query_part().defined() ? call.as_query(call.query_part(), index) : Tensor();
  const auto key_part = call.key_part().defined() ? call.as_key(call.key_part(), index) : Tensor();
  Sequence made;
  made.query = joined(call.as_query(call.query(), index), query_part);
  made.key = joined(call.as_key(call.key(), index), key_part);
  made.value = call.as_key(call.value(), index).to(at::kFloat);
  made.scale = call.scale;
  made.keep = call.keep;
  const int64_t length = made.query.size(1);
  const int64_t keys = made.key.size(1);
  set_hidden(made, call, index);
  if (call.bias().defined()) {
    made.bias = bias_of(call, index, length, keys);
    made.bias_is_scaled = call.bias_kind == kAddedFirst;
  }
  if (call.kept().defined()) {
    made.kept = kept_of(call, index, length, keys);
  }
  if (call.sink().defined()) {
    made.sink = call.sink().to(at::kFloat);
  }
  return made;
}

// Rows behind the last sequence belong to none.
void clear(const std::vector<Tensor>& results) {
  for (const Tensor& result : results) {
    if (result.defined()) {
      result.zero_();
    }
  }
}

void copy_parts(const Tensor& grad, const Tensor& main, const Tensor& part) {
  main.copy_(grad.narrow(-1, 0, main.size(-1)));
  if (part.defined()) {
    part.copy_(grad.narrow(-1, main.size(-1), part.size(-1)));
  }
}

} // namespace

IValue flash_attention(
    const IValue& tensors,
    const IValue& prefix,
    const IValue& query_ends,
    const IValue& key_ends,
    const IValue& query_start,
    const IValue& key_start,
    const IValue& scale,
    const IValue& keep,
    const IValue& numbers,
    const IValue& layout,
    const IValue& softmax_layout,
    const IValue& results) {
  const Call call(tensors, prefix, query_ends, key_ends, query_start, key_start, scale, keep, numbers, layout, softmax_layout);
  const auto made = results.toTensorVector();
  clear(made);
  for (int64_t i = 0; i < call.sequences(); ++i) {
    const auto outcome = attention::forward(sequence_of(call, i));
    call.as_softmax(made[0], i).copy_(outcome.largest);
    call.as_softmax(made[1], i).copy_(outcome.sum);
    call.as_query(made[2], i).copy_(outcome.out);
  }
  return {};
}

namespace {

// The keys or values of one of the batch as (1, heads, length, features), out of a cache of blocks where there is one.
Tensor cached(const std::vector<Tensor>& all, const Layout& layout, const Tensor& blocks, int64_t index, int64_t heads, int64_t length) {
  if (!blocks.defined()) {
    const bool is_split = all.size() > 1;
    const Tensor one = layout.one(all[is_split ? static_cast<size_t>(index) : 0], is_split ? 0 : index, heads);
    return one.narrow(1, 0, length < 0 ? one.size(1) : length).unsqueeze(0);
  }
  const Tensor& cache = all[0];
  const int64_t block = cache.dim() == 4 ? cache.size(2) : cache.size(1);
  const Tensor used = blocks[index].narrow(0, 0, (length + block - 1) / block).to(at::kLong);
  const Tensor found = cache.index_select(0, used);
  const Tensor rows = found.dim() == 4 ? found.transpose(1, 2).flatten(0, 1) : found.flatten(0, 1).unflatten(-1, {heads, -1});
  return rows.narrow(0, 0, length).transpose(0, 1).unsqueeze(0);
}

// Of one of the batch; a mask of (batch, keys) is one for queries of a single token.
Tensor mask_of(const Tensor& mask, int64_t index, int64_t batches, int64_t length, bool is_small) {
  if (!mask.defined() || is_small) {
    return mask;
  }
  if (mask.dim() == 2) {
    return length == 1 && batches > 1 && mask.size(0) == batches ? mask[index].view({1, 1, 1, -1}) : mask;
  }
  const Tensor one = mask[mask.size(0) == 1 ? 0 : index];
  return one.dim() == 2 ? one.view({1, 1, one.size(0), one.size(1)}) : one.unsqueeze(0);
}

} // namespace

IValue inference_attention(
    const IValue& query,
    const IValue& keys,
    const IValue& values,
    const IValue& others,
    const IValue& query_lengths,
    const IValue& key_lengths,
    const IValue& scale,
    const IValue& numbers,
    const IValue& layout,
    const IValue& results) {
  const auto given = others.toTensorVector(); // [bias, mask, blocks, sink]
  const auto counts = numbers.toIntVector(); // [before, after, heads, heads of keys, mode]
  const auto made = results.toTensorVector(); // [out, logarithm of the sums]
  const std::string name = layout.toStringRef();
  const bool moves_heads = name == "BNSD_BSND";
  const Layout order(moves_heads ? "BNSD" : name);
  const Layout out_order(moves_heads ? "BSND" : name);
  TORCH_CHECK(!order.is_packed(), "the layout TND, without flash attention's own function");
  const auto query_counts = ints(query_lengths);
  const auto key_counts = ints(key_lengths);
  const auto count_at = [](const std::vector<int64_t>& all, int64_t i) {
    return all.empty() ? int64_t{-1} : all[all.size() == 1 ? 0 : static_cast<size_t>(i)];
  };
  const Tensor all = query.toTensor();
  const int64_t batches = order.batches(all);
  const int64_t heads = counts[2];
  const int64_t key_heads = counts[3] == 0 ? heads : counts[3];
  clear(made);
  for (int64_t i = 0; i < batches; ++i) {
    const Tensor whole = order.one(all, i, heads);
    const int64_t length = count_at(query_counts, i) < 0 ? whole.size(1) : count_at(query_counts, i);
    const Tensor one = whole.narrow(1, 0, length).unsqueeze(0);
    const Tensor key = cached(keys.toTensorVector(), order, given[2], i, key_heads, count_at(key_counts, i));
    const Tensor value = cached(values.toTensorVector(), order, given[2], i, key_heads, count_at(key_counts, i));
    const int64_t mode = length == 1 && counts[4] > 1 ? 0 : counts[4]; // a single query sees all that is there
    const bool is_small = mode > kWhole && mode != kPrefix;
    Tensor mask = length == 1 && counts[4] > 1 ? Tensor() : mask_of(given[1], i, batches, length, is_small);
    const Tensor bias = given[0].defined() ? given[0][given[0].size(0) == 1 ? 0 : i].unsqueeze(0) : Tensor();
    const c10::List<Tensor> tensors({one, Tensor(), key, Tensor(), value, bias, Tensor(), mask, given[3]});
    const std::vector<int64_t> settings{counts[0], counts[1], heads, mode, kAddedLast};
    const Call call(tensors, {}, {}, {}, {}, {}, scale, 1.0, settings, std::string("BNSD"), {});
    const auto outcome = attention::forward(sequence_of(call, 0));
    out_order.one(made[0], i, heads).narrow(1, 0, length).copy_(outcome.out);
    if (made[1].defined() && made[1].numel() > 0) {
      made[1][i].narrow(1, 0, length).copy_(outcome.largest + outcome.sum.log());
    }
  }
  return {};
}

IValue flash_attention_backward(
    const IValue& tensors,
    const IValue& prefix,
    const IValue& query_ends,
    const IValue& key_ends,
    const IValue& query_start,
    const IValue& key_start,
    const IValue& scale,
    const IValue& keep,
    const IValue& numbers,
    const IValue& layout,
    const IValue& softmax_layout,
    const IValue& kept_results,
    const IValue& results) {
  const Call call(tensors, prefix, query_ends, key_ends, query_start, key_start, scale, keep, numbers, layout, softmax_layout);
  const auto given = kept_results.toTensorVector();
  const auto made = results.toTensorVector();
  clear({made.begin(), made.begin() + 5});
  Tensor bias = call.bias().defined() ? at::zeros(call.bias().sizes(), at::kFloat) : Tensor();
  Tensor sink = call.sink().defined() ? at::zeros(call.sink().sizes(), at::kFloat) : Tensor();
  const auto part_of = [&](const Tensor& tensor, bool is_key, int64_t i) {
    return !tensor.defined() || tensor.numel() == 0 ? Tensor() : is_key ? call.as_key(tensor, i) : call.as_query(tensor, i);
  };
  for (int64_t i = 0; i < call.sequences(); ++i) {
    const Tensor grad = call.as_query(given[0], i).to(at::kFloat);
    const Tensor largest = call.as_softmax(given[1], i).narrow(-1, 0, 1);
    const Tensor sum = call.as_softmax(given[2], i).narrow(-1, 0, 1);
    const auto gradients = attention::backward(sequence_of(call, i), grad, largest, sum);
    copy_parts(gradients.query, call.as_query(made[0], i), part_of(made[1], false, i));
    copy_parts(gradients.key, call.as_key(made[2], i), part_of(made[3], true, i));
    call.as_key(made[4], i).copy_(gradients.value);
    if (bias.defined()) {
      add_bias_gradient(call, i, gradients.bias, bias);
    }
    if (sink.defined()) {
      sink.add_(gradients.sink);
    }
  }
  if (bias.defined() && made[5].defined()) {
    made[5].copy_(bias);
  }
  if (sink.defined() && made[6].defined()) {
    made[6].copy_(sink);
  }
  return {};
}

} // namespace cann::builtins
