#include "session.h"

#include "../runtime/devices.h"

#include <acl/acl.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

namespace cann {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSecond = 1000000000;

uint64_t time_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
}

std::ofstream opened(const fs::path& path) {
  std::ofstream file;
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file.open(path, std::ios::trunc);
  return file;
}

// Names that users give must not look like the end of a field.
std::string one_field(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::string of_length(uint64_t number, size_t length) {
  const std::string digits = std::to_string(number);
  return std::string(length - std::min(length, digits.size()), '0') + digits;
}

// PROF_000001_20261118203000123_ABCDEFGHIJKLMNOP
std::string folder_name(const Instant& instant) {
  static std::atomic<uint32_t> made = 0;
  const std::time_t seconds = static_cast<std::time_t>(instant.real / kSecond);
  std::tm local{};
  localtime_r(&seconds, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &local);
  std::random_device random;
  std::string letters(16, 'A');
  for (char& letter : letters) {
    letter = static_cast<char>('A' + random() % 26);
  }
  return "PROF_" + of_length(++made, 6) + "_" + stamp + of_length(instant.real / 1000000 % 1000, 3) + "_" + letters;
}

// start_info and end_info: the same instant by the clock of the records and by that of the day (microseconds).
void write_instant(const fs::path& path, const char* begins_or_ends, const Instant& instant) {
  opened(path) << "{\"collectionTime" << begins_or_ends << "\": \"" << instant.real / 1000 << "." << of_length(instant.real % 1000, 3)
               << "\", \"clockMonotonicRaw\": \"" << instant.monotonic << "\"}\n";
}

void write_clocks(const fs::path& path, const Instant& instant) {
  opened(path) << "[Host]\nclock_realtime: " << instant.real << "\nclock_monotonic_raw: " << instant.monotonic
               << "\ncntvct: " << instant.monotonic << "\ncntvct_diff: 0\n";
}

void write_information(const fs::path& path, const ProfileConfig& config) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  std::string devices;
  for (const int device : config.devices) {
    devices += (devices.empty() ? "" : ",") + std::to_string(device);
  }
  opened(path) << "{\"emulated\": \"TorchFerry\", \"hostname\": \"" << host << "\", \"pid\": \"" << getpid() << "\", \"devices\": \"" << devices
               << "\", \"chip\": \"" << aclrtGetSocName() << "\", \"dataTypeConfig\": " << config.data_types
               << ", \"CPU\": [{\"Id\": 0, \"Frequency\": \"1000.000000\"}]}\n"; // the records' clock counts nanoseconds
}

void write_task(std::ostream& file, const TaskRecord& task) {
  file << task.connection << '\t' << task.kind << '\t' << one_field(task.name) << '\t' << task.stream << '\t' << task.thread << '\t'
       << task.called << '\t' << task.call_ended << '\t' << task.started << '\t' << task.ended << '\t' << task.waited << '\t'
       << one_field(task.details) << '\n';
}

} // namespace

uint64_t now() {
  return time_of(CLOCK_MONOTONIC_RAW);
}

Instant instant() {
  return {time_of(CLOCK_REALTIME), time_of(CLOCK_MONOTONIC_RAW)};
}

Session::Session(ProfileConfig config) : config_(std::move(config)), began_(instant()) {}

bool Session::has_device(int device) const {
  return std::find(config_.devices.begin(), config_.devices.end(), device) != config_.devices.end();
}

uint32_t Session::next_connection() {
  const std::lock_guard lock(mutex_);
  return ++connections_;
}

void Session::add(TaskRecord task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
}

void Session::add(const CallRecord& call) {
  const std::lock_guard lock(mutex_);
  calls_.push_back(call);
}

void Session::add(const MemoryRecord& memory) {
  const std::lock_guard lock(mutex_);
  memory_.push_back(memory);
}

void Session::write(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  const fs::path place = fs::path(folder) / folder_name(began_);
  const fs::path host = place / "host";
  fs::create_directories(host / "data");
  write_information(host / "info.json", config_);
  write_instant(host / "start_info", "Begin", began_);
  write_instant(host / "end_info", "End", instant());
  write_clocks(host / "host_start.log", began_);
  auto calls = opened(host / "data" / "calls.tsv");
  for (const CallRecord& call : calls_) {
    calls << call.name << '\t' << call.thread << '\t' << call.started << '\t' << call.ended << '\n';
  }
  for (const int device : config_.devices) {
    const fs::path data = place / ("device_" + std::to_string(device)) / "data";
    fs::create_directories(data);
    auto tasks = opened(data / "tasks.tsv");
    for (const TaskRecord& task : tasks_) {
      if (task.device == device) {
        write_task(tasks, task);
      }
    }
    auto memory = opened(data / "memory.tsv");
    for (const MemoryRecord& one : memory_) {
      if (one.device == device) {
        memory << one.time << '\t' << one.bytes << '\n';
      }
    }
  }
}

} // namespace cann
