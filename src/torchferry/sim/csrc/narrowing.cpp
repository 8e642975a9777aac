#include "narrowing.h"

#include "operators.h"
#include "wording.h"

#include <array>
#include <atomic>

namespace ferry {
namespace {

constexpr size_t kDtypes = static_cast<size_t>(at::ScalarType::NumOptions);

struct Rule {
  Narrowing narrowing = Narrowing::native;
  at::ScalarType becomes = at::ScalarType::Undefined;
};

std::array<Rule, kDtypes> rules;
std::array<std::atomic<int64_t>, kDtypes> met;
std::array<std::atomic<bool>, kDtypes> warned;
std::atomic<bool> any_rule{false};
std::string cast_wording = "The device does not support {dtype}: the cast gives {becomes}.";
std::string refused_wording = "This device does not support {dtype}.";

const Rule& rule_of(at::ScalarType dtype) {
  return rules[static_cast<size_t>(dtype)];
}

} // namespace

void set_narrowing(at::ScalarType dtype, at::ScalarType becomes, Narrowing narrowing) {
  rules[static_cast<size_t>(dtype)] = {narrowing, becomes};
  any_rule = true;
}

void set_dtype_messages(std::string cast, std::string refused) {
  cast_wording = std::move(cast);
  refused_wording = std::move(refused);
}

void check_dtype(at::ScalarType dtype) {
  if (!any_rule.load(std::memory_order_relaxed) || !limits_on()) {
    return;
  }
  if (rule_of(dtype).narrowing == Narrowing::refused) {
    count_narrowed(dtype);
    TORCH_CHECK_TYPE(false, fill_in(refused_wording, {{"dtype", c10::toString(dtype)}}));
  }
}

at::ScalarType cast_dtype(at::ScalarType asked) {
  if (!any_rule.load(std::memory_order_relaxed) || !limits_on()) {
    return asked;
  }
  const Rule& rule = rule_of(asked);
  if (rule.narrowing != Narrowing::cast_as) {
    return asked;
  }
  count_narrowed(asked);
  if (!warned[static_cast<size_t>(asked)].exchange(true)) {
    TORCH_WARN(fill_in(cast_wording, {{"dtype", c10::toString(asked)}, {"becomes", c10::toString(rule.becomes)}}));
  }
  return rule.becomes;
}

at::ScalarType computed_dtype(at::ScalarType dtype) {
  if (!any_rule.load(std::memory_order_relaxed) || !limits_on()) {
    return dtype;
  }
  const Rule& rule = rule_of(dtype);
  return rule.narrowing == Narrowing::computed_as ? rule.becomes : dtype;
}

void count_narrowed(at::ScalarType dtype) {
  met[static_cast<size_t>(dtype)].fetch_add(1, std::memory_order_relaxed);
}

std::tuple<std::vector<std::string>, std::vector<int64_t>> narrowed_dtypes() {
  std::vector<std::string> names;
  std::vector<int64_t> counts;
  for (size_t i = 0; i < kDtypes; ++i) {
    if (met[i] > 0) {
      names.emplace_back(c10::toString(static_cast<at::ScalarType>(i)));
      counts.push_back(met[i]);
    }
  }
  return {names, counts};
}

} // namespace ferry
