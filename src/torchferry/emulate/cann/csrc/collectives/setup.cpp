// The functions of HCCL that make, describe and end communicators.
#include "entries.h"
#include "errors.h"
#include "meeting.h"

#include "../runtime/stream.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

namespace collectives {
namespace {

struct Open {
  std::mutex mutex;
  std::map<HcclComm, Handle> communicators;
  std::map<std::string, std::unique_ptr<Door>> doors; // of the root infos of this process that nobody has used yet
};

Open& all_open() {
  static auto* all = new Open; // threads use it until the very end
  return *all;
}

// What HcclRootInfo holds here.
struct RootInfo {
  char token[32];
  char name[128];
};
static_assert(sizeof(RootInfo) <= sizeof(HcclRootInfo));

// The beginning of HcclCommConfig; `size` says how much of it the caller's release knows.
struct Config {
  size_t size;
  uint32_t magic;
  uint32_t version;
  uint64_t reserved;
  uint32_t buffer_size;
  uint32_t deterministic;
  char name[128];
  char user_information[128];
  uint32_t expansion;
  uint32_t traffic_class;
  uint32_t service_level;
  uint32_t world_rank;
  uint64_t job;
  uint8_t zero_copy;
  int32_t seconds_to_run;
};
static_assert(offsetof(Config, name) == offsetof(HcclCommConfig, hcclCommName));

const Config* config_of(const HcclCommConfig* given, const std::string& function) {
  if (given == nullptr) {
    throw null_pointer(function, "config");
  }
  const auto* config = reinterpret_cast<const Config*>(given);
  if (config->magic != HCCL_COMM_CONFIG_MAGIC_WORD) {
    throw bad_argument(HCCL_E_PARA, function, std::to_string(config->magic), "config", "what HcclCommConfigInit has initialized");
  }
  return config;
}

#define TF_HAS(config, field) ((config)->size >= offsetof(Config, field) + sizeof((config)->field))

int seconds_to_run(const Config* config) {
  if (config != nullptr && TF_HAS(config, seconds_to_run) && config->seconds_to_run >= 0) {
    return config->seconds_to_run;
  }
  const char* text = std::getenv("HCCL_EXEC_TIMEOUT");
  if (text == nullptr || *text == 0) {
    return 1836; // the documented default
  }
  char* end = nullptr;
  const double seconds = std::strtod(text, &end); // some modes take fractions
  if (*end != 0 || seconds < 0 || seconds > 2147483647) {
    throw bad_variable(
        text, "HCCL_EXEC_TIMEOUT", "a number greater than or equal to 0s and less than or equal to 2147483647s");
  }
  return seconds > 0 && seconds < 1 ? 1 : static_cast<int>(seconds);
}

std::string named(const Config* config, const std::string& otherwise) {
  if (config == nullptr || !TF_HAS(config, name) || config->name[0] == 0) {
    return otherwise;
  }
  return {config->name, strnlen(config->name, sizeof(config->name))};
}

// As HCCL names its communicators: address, interface, port, device, time.
std::string default_name() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return "127.0.0.1%lo_60000_" + std::to_string(cann::current_device()) + "_" +
      std::to_string(now.tv_sec * 1000000LL + now.tv_nsec / 1000);
}

// What all ways to make a communicator have in common.
struct Plan {
  Invitation invitation;
  Settings settings;
  std::unique_ptr<Door> door; // of the host
  bool is_open = false; // the door, before the others come
};

Handle create(const Plan& plan) {
  const Invitation& invitation = plan.invitation;
  Handle made;
  const auto enter = [&](const std::shared_ptr<SharedMemory>& memory) {
    made = std::make_shared<Communicator>(memory, invitation.rank, invitation.ranks, plan.settings);
  };
  if (invitation.ranks == 1) {
    enter(SharedMemory::create(invitation.name, bytes_to_share(1)));
  } else if (plan.door != nullptr) {
    host(*plan.door, invitation, bytes_to_share(invitation.ranks), enter);
  } else {
    join(invitation, plan.is_open, enter);
  }
  return made;
}

// At once, or at the end of the group that the thread has begun.
void create_for(HcclComm* out, Plan plan) {
  const auto shared = std::make_shared<Plan>(std::move(plan));
  const auto creation = [out, shared] { *out = publish(create(*shared)); };
  if (in_group()) {
    defer_creation(creation);
  } else {
    creation();
  }
}

void expect_ranks(const std::string& function, uint32_t ranks, uint32_t rank) {
  if (ranks == 0 || ranks > kMostRanks) {
    throw bad_argument(HCCL_E_PARA, function, std::to_string(ranks), "nRanks", "1 to " + std::to_string(kMostRanks));
  }
  if (rank >= ranks) {
    throw bad_argument(HCCL_E_PARA, function, std::to_string(rank), "rank", "less than nRanks " + std::to_string(ranks));
  }
}

template <typename Pointer>
void expect_pointer(Pointer pointer, const std::string& function, const char* parameter) {
  if (pointer == nullptr) {
    throw null_pointer(function, parameter);
  }
}

void make_root_info(HcclRootInfo* out) {
  expect_pointer(out, "HcclGetRootInfo", "rootInfo");
  const std::string token = random_name();
  auto door = std::make_unique<Door>(token);
  RootInfo info{};
  std::strncpy(info.token, token.c_str(), sizeof(info.token) - 1);
  std::strncpy(info.name, default_name().c_str(), sizeof(info.name) - 1);
  std::memset(out, 0, sizeof(*out));
  std::memcpy(out, &info, sizeof(info));
  Open& all = all_open();
  const std::lock_guard lock(all.mutex);
  all.doors[token] = std::move(door);
}

std::unique_ptr<Door> take_door(const std::string& token) {
  Open& all = all_open();
  const std::lock_guard lock(all.mutex);
  const auto found = all.doors.find(token);
  if (found == all.doors.end()) {
    return nullptr;
  }
  auto door = std::move(found->second);
  all.doors.erase(found);
  return door;
}

void init_by_root_info(
    const std::string& function, uint32_t ranks, const HcclRootInfo* root, uint32_t rank, const Config* config, HcclComm* out) {
  expect_pointer(root, function, "rootInfo");
  expect_pointer(out, function, "comm");
  expect_ranks(function, ranks, rank);
  RootInfo info{};
  std::memcpy(&info, root, sizeof(info));
  const std::string token(info.token, strnlen(info.token, sizeof(info.token)));
  Plan plan;
  plan.invitation = {token, ranks, rank, seconds_to_connect()};
  plan.settings = {named(config, info.name), token, seconds_to_run(config), cann::current_device()};
  plan.door = take_door(token);
  plan.is_open = true;
  create_for(out, std::move(plan));
}

std::string hex(size_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "%zx", value);
  return text;
}

// Ranks that all know the name of their meeting: the first opens the door.
Plan plan_by_name(const std::string& name, uint32_t ranks, uint32_t rank, const Settings& settings) {
  Plan plan;
  plan.invitation = {name, ranks, rank, seconds_to_connect()};
  plan.settings = settings;
  plan.settings.token = name;
  if (rank == 0 && ranks > 1) {
    plan.door = std::make_unique<Door>(name);
  }
  return plan;
}

std::string read_table(const char* file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) {
    throw bad_rank_table(file, "The rankTable file path does not exist, the permission is insufficient, or the JSON format is incorrect.");
  }
  return text.str();
}

uint32_t ranks_of_table(const char* file, const std::string& text) {
  static const std::regex pattern("\"rank_id\"\\s*:\\s*\"?(\\d+)\"?");
  std::set<uint32_t> ranks;
  for (auto found = std::sregex_iterator(text.begin(), text.end(), pattern); found != std::sregex_iterator(); ++found) {
    if (!ranks.insert(static_cast<uint32_t>(std::stoul((*found)[1]))).second) {
      throw bad_rank_table(file, "rank_id " + (*found)[1].str() + " is there twice.");
    }
  }
  if (ranks.empty() || *ranks.rbegin() + 1 != ranks.size()) {
    throw bad_rank_table(file, "The rank_id of its devices are not 0, 1, 2, ... without a gap.");
  }
  return static_cast<uint32_t>(ranks.size());
}

void init_by_table(const std::string& function, const char* file, uint32_t rank, const Config* config, HcclComm* out) {
  expect_pointer(file, function, "clusterInfo");
  expect_pointer(out, function, "comm");
  const std::string text = read_table(file);
  const uint32_t ranks = ranks_of_table(file, text);
  expect_ranks(function, ranks, rank);
  const std::string name = named(config, "hccl_world_group");
  create_for(
      out,
      plan_by_name(
          "table-" + hex(std::hash<std::string>{}(text)) + hex(std::hash<std::string>{}(name)),
          ranks,
          rank,
          {name, "", seconds_to_run(config), cann::current_device()}));
}

void split(HcclComm* whole, uint32_t ranks, const uint32_t* members, uint64_t id, uint32_t rank, const Config* config, HcclComm* out) {
  const std::string function = "HcclCreateSubCommConfig";
  expect_pointer(whole, function, "comm");
  expect_pointer(out, function, "subComm");
  if (members == nullptr && id == 0xFFFFFFFF) { // the documented way to say: not this rank
    *out = nullptr;
    return;
  }
  expect_pointer(members, function, "rankIds");
  const Handle parent = open(*whole, function);
  expect_ranks(function, ranks, rank);
  std::string list;
  for (uint32_t index = 0; index < ranks; ++index) {
    list += std::to_string(members[index]) + ",";
  }
  if (members[rank] != parent->rank()) {
    throw bad_argument(
        HCCL_E_PARA, function, std::to_string(rank), "subCommRankId", "the index of rank " + std::to_string(parent->rank()) + " in rankIds [" + list + "]");
  }
  const std::string name = named(config, parent->settings().name + "_sub_" + std::to_string(id));
  create_for(
      out,
      plan_by_name(
          "sub-" + parent->settings().token.substr(0, 40) + "-" + hex(std::hash<std::string>{}(name + "/" + list)),
          ranks,
          rank,
          {name, "", parent->settings().seconds_to_run, parent->settings().device}));
}

void init_all(uint32_t count, const int32_t* devices, HcclComm* out) {
  const std::string function = "HcclCommInitAll";
  expect_pointer(devices, function, "devices");
  expect_pointer(out, function, "comms");
  expect_ranks(function, count, 0);
  if (std::set<int32_t>(devices, devices + count).size() != count) {
    throw bad_argument(HCCL_E_PARA, function, "a device twice", "devices", "devices that differ");
  }
  const std::string token = random_name();
  const auto memory = SharedMemory::create(token, bytes_to_share(count));
  const std::string name = default_name();
  for (uint32_t rank = 0; rank < count; ++rank) {
    out[rank] = publish(
        std::make_shared<Communicator>(memory, rank, count, Settings{name, token, seconds_to_run(nullptr), devices[rank]}));
  }
}

int32_t deterministic = 0;

} // namespace

Handle open(HcclComm handle, const std::string& function) {
  if (handle == nullptr) {
    throw null_pointer(function, "comm");
  }
  Open& all = all_open();
  const std::lock_guard lock(all.mutex);
  const auto found = all.communicators.find(handle);
  if (found == all.communicators.end()) {
    throw bad_argument(HCCL_E_PARA, function, "of a communicator that does not exist (any more)", "comm", "an initialized communicator");
  }
  return found->second;
}

HcclComm publish(const Handle& made) {
  Open& all = all_open();
  const std::lock_guard lock(all.mutex);
  all.communicators[made.get()] = made;
  return made.get();
}

Handle withdraw(HcclComm handle) {
  Open& all = all_open();
  const std::lock_guard lock(all.mutex);
  const auto found = all.communicators.find(handle);
  if (found == all.communicators.end()) {
    return nullptr;
  }
  Handle last = found->second;
  all.communicators.erase(found);
  return last;
}

void expect_usable(const Communicator& communicator) {
  if (communicator.is_suspended()) {
    throw Refusal(HCCL_E_SUSPENDING, "communicator " + communicator.settings().name + " is suspended");
  }
}

} // namespace collectives

using namespace collectives;

extern "C" {

HcclResult HcclGetRootInfo(HcclRootInfo* out) {
  return guarded([&] { make_root_info(out); });
}

HcclResult HcclGetRootInfoScalable(HcclRootInfo* out) {
  return HcclGetRootInfo(out);
}

HcclResult HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo* root, uint32_t rank, HcclComm* out) {
  return guarded([&] { init_by_root_info("HcclCommInitRootInfo", ranks, root, rank, nullptr, out); });
}

HcclResult HcclCommInitRootInfoConfig(
    uint32_t ranks, const HcclRootInfo* root, uint32_t rank, const HcclCommConfig* config, HcclComm* out) {
  return guarded([&] {
    const std::string function = "HcclCommInitRootInfoConfig";
    init_by_root_info(function, ranks, root, rank, config_of(config, function), out);
  });
}

// Several roots share the load of large clusters; here the first one is enough.
HcclResult HcclCommInitRootInfoScalable(
    uint32_t ranks, uint32_t roots, const HcclRootInfo* list, uint32_t rank, uint32_t further, const HcclCommConfig* config, HcclComm* out) {
  return guarded([&] {
    const std::string function = "HcclCommInitRootInfoScalable";
    if (roots == 0 || further != 0) {
      throw bad_argument(HCCL_E_PARA, function, std::to_string(roots) + ", " + std::to_string(further), "nRoot, nExtRoot", "at least 1, 0");
    }
    init_by_root_info(function, ranks, list, rank, config_of(config, function), out);
  });
}

HcclResult HcclCommInitClusterInfo(const char* file, uint32_t rank, HcclComm* out) {
  return guarded([&] { init_by_table("HcclCommInitClusterInfo", file, rank, nullptr, out); });
}

HcclResult HcclCommInitClusterInfoConfig(const char* file, uint32_t rank, HcclCommConfig* config, HcclComm* out) {
  return guarded([&] {
    const std::string function = "HcclCommInitClusterInfoConfig";
    init_by_table(function, file, rank, config_of(config, function), out);
  });
}

HcclResult HcclCommInitAll(uint32_t count, int32_t* devices, HcclComm* out) {
  return guarded([&] { init_all(count, devices, out); });
}

HcclResult HcclCreateSubCommConfig(
    HcclComm* whole, uint32_t ranks, uint32_t* members, uint64_t id, uint32_t rank, HcclCommConfig* config, HcclComm* out) {
  return guarded([&] {
    split(whole, ranks, members, id, rank, members == nullptr ? nullptr : config_of(config, "HcclCreateSubCommConfig"), out);
  });
}

HcclResult HcclCommDestroy(HcclComm comm) {
  return guarded([&] {
    const Handle last = withdraw(comm);
    if (last == nullptr) {
      open(comm, "HcclCommDestroy"); // says what is wrong
    }
    last->let_go();
  });
}

HcclResult HcclGetRankSize(HcclComm comm, uint32_t* size) {
  return guarded([&] {
    expect_pointer(size, "HcclGetRankSize", "rankSize");
    *size = open(comm, "HcclGetRankSize")->ranks();
  });
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  return guarded([&] {
    expect_pointer(rank, "HcclGetRankId", "rank");
    *rank = open(comm, "HcclGetRankId")->rank();
  });
}

HcclResult HcclGetCommName(HcclComm comm, char* name) {
  return guarded([&] {
    expect_pointer(name, "HcclGetCommName", "commName");
    std::snprintf(name, COMM_NAME_MAX_LENGTH, "%s", open(comm, "HcclGetCommName")->settings().name.c_str());
  });
}

HcclResult HcclCommGetHandleWithName(const char* name, HcclComm* out) {
  return guarded([&] {
    expect_pointer(name, "HcclCommGetHandleWithName", "commName");
    expect_pointer(out, "HcclCommGetHandleWithName", "comm");
    Open& all = all_open();
    const std::lock_guard lock(all.mutex);
    for (const auto& [handle, communicator] : all.communicators) {
      if (communicator->settings().name == name) {
        *out = handle;
        return;
      }
    }
    throw bad_argument(HCCL_E_NOT_FOUND, "HcclCommGetHandleWithName", name, "commName", "the name of a communicator of this process");
  });
}

// 21 is the one error that the documentation names; callers then ask for the text on the same thread.
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* error) {
  return guarded([&] {
    expect_pointer(error, "HcclGetCommAsyncError", "asyncError");
    const Handle communicator = open(comm, "HcclGetCommAsyncError");
    *error = communicator->has_failed() ? HCCL_E_REMOTE : HCCL_SUCCESS;
    if (*error != HCCL_SUCCESS) {
      cann::set_error(communicator->reason());
    }
  });
}

uint32_t HcclGetCommConfigCapability() {
  return HCCL_COMM_CONFIG_RESERVED;
}

// Sums have one order here: deterministic or not.
HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue value) {
  return guarded([&] {
    if (config != HCCL_DETERMINISTIC) {
      throw not_emulated("HcclSetConfig(" + std::to_string(config) + ")");
    }
    deterministic = value.value;
  });
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* value) {
  return guarded([&] {
    expect_pointer(value, "HcclGetConfig", "configValue");
    if (config != HCCL_DETERMINISTIC) {
      throw not_emulated("HcclGetConfig(" + std::to_string(config) + ")");
    }
    value->value = deterministic;
  });
}

HcclResult HcclCommSuspend(HcclComm comm) {
  return guarded([&] { open(comm, "HcclCommSuspend")->suspend(true); });
}

HcclResult HcclCommResume(HcclComm comm) {
  return guarded([&] { open(comm, "HcclCommResume")->suspend(false); });
}

} // extern "C"
