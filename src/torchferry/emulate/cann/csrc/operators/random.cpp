#include "random.h"

#include "builtins.h"
#include "native.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GeneratorImpl.h>

#include <atomic>
#include <limits>
#include <map>
#include <mutex>

namespace {

using at::Tensor;

std::atomic<bool> is_shared{false};

// Neighbours in the sequence of a seed must not be neighbours in what is drawn.
uint64_t mixed(uint64_t seed, uint64_t offset) {
  uint64_t bits = seed + 0x9e3779b97f4a7c15ULL * (offset + 1);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

// The sequence that a generator of the device with this seed has on the CPU. It goes on from draw to draw: how far the
// plugin counts the offset says nothing about it, but that a new one begins.
at::Generator sequence_of(uint64_t seed, uint64_t offset) {
  static auto* mutex = new std::mutex;
  static auto* sequences = new std::map<uint64_t, at::Generator>;
  const std::lock_guard lock(*mutex);
  at::Generator& sequence = (*sequences)[seed];
  if (offset == 0 || !sequence.defined()) {
    sequence = at::detail::createCPUGenerator(seed);
  }
  return sequence;
}

// A program seeds all its default generators alike: then they are one, the CPU's. So they are where it seeds nothing.
at::Generator shared_generator(uint64_t seed, uint64_t offset) {
  const at::Generator& of_program = at::detail::getDefaultCPUGenerator();
  const bool is_default = seed == of_program.current_seed() || seed == c10::default_rng_seed_val;
  return is_default ? of_program : sequence_of(seed, offset);
}

// The plugin asks for all numbers of a dtype by its greatest, as an end that is not in: the CPU has that one as well.
bool are_all_numbers(const Tensor& tensor, int64_t from, int64_t to) {
  switch (from == 0 ? tensor.scalar_type() : at::ScalarType::Undefined) {
    case at::kByte:
      return to == std::numeric_limits<uint8_t>::max();
    case at::kChar:
      return to == std::numeric_limits<int8_t>::max();
    case at::kShort:
      return to == std::numeric_limits<int16_t>::max();
    case at::kInt:
      return to == std::numeric_limits<int32_t>::max();
    case at::kLong:
      return to == std::numeric_limits<int64_t>::max();
    case at::kBool:
      return to == 1;
    default:
      return false;
  }
}

void draw_whole(const Tensor& tensor, int64_t from, int64_t to, const at::Generator& generator) {
  if (cann::shares_randomness() && are_all_numbers(tensor, from, to)) {
    tensor.random_(generator);
  } else {
    tensor.random_(from, to, generator);
  }
}

int64_t whole(const c10::IValue& tensor) {
  return tensor.toTensor().item().toLong();
}

} // namespace

namespace cann {

bool shares_randomness() {
  return is_shared;
}

IValue builtins::generator(const IValue& seed, const IValue& offset) {
  const auto own_seed = static_cast<uint64_t>(seed.toInt());
  const auto place = static_cast<uint64_t>(offset.toInt());
  return is_shared ? shared_generator(own_seed, place) : at::detail::createCPUGenerator(mixed(own_seed, place));
}

} // namespace cann

OPERATOR(aclnnInplaceRandom) {
  draw_whole(a[0].toTensor(), a[1].toInt(), a[2].toInt(), cann::builtins::generator(a[3], a[4]).toGenerator());
}

OPERATOR(aclnnInplaceRandomTensor) {
  const at::Generator generator = cann::builtins::generator(whole(a[3]), whole(a[4]) + a[5].toInt()).toGenerator();
  draw_whole(a[0].toTensor(), a[1].toInt(), a[2].toInt(), generator);
}

// Whether operators draw from the CPU's default generator, in the order of the program.
extern "C" void torchferry_share_randomness(int shared) {
  is_shared = shared != 0;
}
