#include "operators.h"

#include "half_precision.h"
#include "wording.h"

#include <ATen/core/function_schema.h>
#include <c10/util/flat_hash_map.h>

#include <pthread.h>

#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

namespace ferry {
namespace {

struct Facts {
  std::string reported_as;
  Verdict verdict = Verdict::unknown;
  DeviceCheck device_check = DeviceCheck::same_device;
  bool moves_data = false;
};

std::mutex registry_lock;
// A fork taken while another thread looks an operator up would leave the child a lock that nobody opens.
const int at_fork = pthread_atfork(
    [] { registry_lock.lock(); }, [] { registry_lock.unlock(); }, [] { registry_lock.unlock(); });
std::unordered_map<std::string, Facts>& known_facts() {
  static std::unordered_map<std::string, Facts> facts;
  return facts;
}
// By schema: PyTorch keeps one for each operator at a fixed address.
std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<Operator>>& registry() {
  static auto* entries = new std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<Operator>>();
  return *entries;
}

std::string missing_wording = "Could not run '{operator}' with arguments from this backend.";
std::string fallback_wording = "The operator '{operator}' has no kernel on this device and runs on the CPU.";
std::string double_wording = "'{operator}' may not compute in double precision on this device.";
std::set<std::string> names_unlisted_in_double;
thread_local bool limits_enabled = true;

ArgumentKind kind_of(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return ArgumentKind::tensor;
    case c10::TypeKind::ListType: {
      const auto inner = kind_of(*type.containedType(0));
      return inner == ArgumentKind::tensor ? ArgumentKind::tensor_list : ArgumentKind::other;
    }
    case c10::TypeKind::OptionalType:
      return kind_of(*type.containedType(0));
    case c10::TypeKind::DeviceObjType:
      return ArgumentKind::device;
    case c10::TypeKind::GeneratorType:
      return ArgumentKind::generator;
    case c10::TypeKind::ScalarTypeType:
      return ArgumentKind::dtype;
    default:
      return ArgumentKind::other;
  }
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// What attention keeps for its derivative.
bool is_always_single(const c10::Argument& argument) {
  return argument.name() == "logsumexp";
}

// An operator that writes to an argument returns that argument (in-place, out=).
int argument_returned_by(const c10::FunctionSchema& schema, const c10::Argument& returned) {
  if (!is_written(returned)) {
    return -1;
  }
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite() && alias->beforeSets() == returned.alias_info()->beforeSets()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// The schema types of dtype and device arguments read `int` and `Device` in the usual view: the real ones are kept
// beside it.
ArgumentKind kind_of(const c10::Argument& argument) {
  return kind_of(*argument.real_type());
}

// Without overload, and without the mark of the form that works in place.
std::string base_name(const std::string& name) {
  const std::string base = name.substr(0, name.find('.'));
  return base.back() == '_' ? base.substr(0, base.size() - 1) : base;
}

void apply_facts(Operator& op) {
  const auto found = known_facts().find(op.name);
  if (found != known_facts().end()) {
    op.reported_as = found->second.reported_as;
    op.verdict = found->second.verdict;
    op.device_check = found->second.device_check;
    op.moves_data = found->second.moves_data;
  }
  op.unlisted_in_double = !op.moves_data && names_unlisted_in_double.count(base_name(op.name)) > 0;
}

std::unique_ptr<Operator> describe(const c10::OperatorHandle& handle) {
  const c10::FunctionSchema& schema = handle.schema();
  auto op = std::make_unique<Operator>();
  op->name = c10::toString(handle.operator_name());
  bool takes_generator = false;
  op->writes = false;
  for (const auto& argument : schema.arguments()) {
    op->arguments.push_back({kind_of(argument), is_written(argument), is_always_single(argument)});
    takes_generator |= op->arguments.back().kind == ArgumentKind::generator;
    op->writes |= op->arguments.back().written;
  }
  for (const auto& returned : schema.returns()) {
    op->returns.push_back({argument_returned_by(schema, returned), is_always_single(returned)});
  }
  op->bumps_versions = op->writes && op->name.rfind("aten::_foreach_", 0) == 0 &&
      !handle.hasKernelForDispatchKey(c10::DispatchKey::ADInplaceOrView);
  op->copies = op->name == "aten::copy_";
  op->notes_overflow = op->name == "aten::_amp_foreach_non_finite_check_and_unscale_";
  op->half_in_single = computes_half_in_single(op->name);
  op->has_host_kernel = handle.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
  op->draws_from_process_wide_generator = !takes_generator && handle.hasTag(at::Tag::nondeterministic_seeded);
  op->takes_int32_labels = op->name.rfind("aten::nll_loss", 0) == 0;
  op->packs_sequences = op->name == "aten::_pack_padded_sequence";
  op->reported_as = op->name;
  apply_facts(*op);
  return op;
}

} // namespace

Operator& operator_of(const c10::OperatorHandle& handle) {
  // Each thread keeps what it has seen: no lock on the way of an operator.
  thread_local ska::flat_hash_map<const c10::FunctionSchema*, Operator*> seen;
  const c10::FunctionSchema* schema = &handle.schema();
  const auto found = seen.find(schema);
  if (found != seen.end()) {
    return *found->second;
  }
  std::lock_guard<std::mutex> guard(registry_lock);
  auto& entry = registry()[schema];
  if (entry == nullptr) {
    entry = describe(handle);
  }
  seen[schema] = entry.get();
  return *entry;
}

Passage::Passage(Operator& op) {
  op.calls.fetch_add(1, std::memory_order_relaxed);
  if (op.verdict < Verdict::falls_back || !limits_enabled) {
    return;
  }
  if (op.verdict == Verdict::raises) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, fill_in(missing_wording, {{"operator", op.reported_as}}));
  }
  if (!op.warned.exchange(true)) {
    TORCH_WARN(fill_in(fallback_wording, {{"operator", op.reported_as}}));
  }
  on_host_.emplace(at::RecordScope::USER_SCOPE);
  if (on_host_->isActive()) {
    on_host_->before(("torchferry::fallback " + op.reported_as).c_str());
  }
}

Passage::Passage(const char* name, const char* overload)
    : Passage(operator_of(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload))) {}

void set_operator_facts(
    const std::vector<std::string>& names,
    const std::vector<std::string>& reported_as,
    const std::vector<int64_t>& verdicts,
    const std::vector<int64_t>& device_checks,
    const std::vector<int64_t>& moves_data) {
  for (const size_t length : {reported_as.size(), verdicts.size(), device_checks.size(), moves_data.size()}) {
    TORCH_CHECK(length == names.size(), "the lists differ in length");
  }
  std::lock_guard<std::mutex> guard(registry_lock);
  for (size_t i = 0; i < names.size(); ++i) {
    known_facts()[names[i]] = {
        reported_as[i], static_cast<Verdict>(verdicts[i]), static_cast<DeviceCheck>(device_checks[i]), moves_data[i] != 0};
  }
  for (auto& [schema, op] : registry()) {
    apply_facts(*op);
  }
}

void set_unlisted_in_double(const std::vector<std::string>& names, std::string wording) {
  std::lock_guard<std::mutex> guard(registry_lock);
  double_wording = std::move(wording);
  names_unlisted_in_double = std::set<std::string>(names.begin(), names.end());
  for (auto& [schema, op] : registry()) {
    apply_facts(*op);
  }
}

void warn_of_double(Operator& op) {
  if (limits_enabled && !op.warned_of_double.exchange(true)) {
    TORCH_WARN(fill_in(double_wording, {{"operator", op.reported_as}}));
  }
}

void set_operator_messages(std::string missing, std::string fallback) {
  std::lock_guard<std::mutex> guard(registry_lock);
  missing_wording = std::move(missing);
  fallback_wording = std::move(fallback);
}

std::tuple<std::vector<std::string>, std::vector<int64_t>, std::vector<int64_t>> operator_uses() {
  std::vector<std::string> names;
  std::vector<int64_t> calls;
  std::vector<int64_t> verdicts;
  std::lock_guard<std::mutex> guard(registry_lock);
  for (const auto& [schema, op] : registry()) {
    if (op->calls > 0) {
      names.push_back(op->reported_as);
      calls.push_back(op->calls);
      verdicts.push_back(static_cast<int64_t>(op->verdict));
    }
  }
  return {names, calls, verdicts};
}

bool limits_on() {
  return limits_enabled;
}

bool set_limits_on(bool on) {
  const bool before = limits_enabled;
  limits_enabled = on;
  return before;
}

} // namespace ferry
