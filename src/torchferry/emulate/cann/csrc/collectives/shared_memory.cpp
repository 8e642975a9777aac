#include "shared_memory.h"

#include "errors.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace collectives {
namespace {

// Where there is no memfd_create: a file of a temporary folder whose name is taken away at once.
int unnamed_file(size_t bytes) {
  const char* chosen = std::getenv("TMPDIR");
  for (const char* folder : {"/dev/shm", chosen, "/tmp"}) {
    if (folder == nullptr) {
      continue;
    }
    std::string name = std::string(folder) + "/torchferry-hccl-XXXXXX";
    const int file = mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) {
      continue;
    }
    unlink(name.c_str());
    if (posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0) { // room now instead of SIGBUS later
      return file;
    }
    close(file);
  }
  return -1;
}

int file_of(size_t bytes) {
  const int file = memfd_create("torchferry-hccl", MFD_CLOEXEC);
  if (file < 0) {
    return unnamed_file(bytes);
  }
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return -1;
  }
  return file;
}

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* time) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, time, nullptr, 0);
}

struct Attached {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<SharedMemory>> memories;
};

Attached& attached() {
  static auto* all = new Attached; // threads use it until the very end
  return *all;
}

} // namespace

SharedMemory::SharedMemory(int file, size_t bytes) : file_(file), bytes_(bytes) {
  data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data_ == MAP_FAILED) {
    close(file);
    throw no_memory("SharedMemory", bytes);
  }
}

std::shared_ptr<SharedMemory> SharedMemory::create(const std::string& name, size_t bytes) {
  const int file = file_of(bytes);
  if (file < 0) {
    throw no_memory("SharedMemory", bytes);
  }
  const std::shared_ptr<SharedMemory> made(new SharedMemory(file, bytes));
  Attached& all = attached();
  const std::lock_guard lock(all.mutex);
  all.memories[name] = made;
  return made;
}

std::shared_ptr<SharedMemory> SharedMemory::attach(const std::string& name, int file) {
  Attached& all = attached();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.memories, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = all.memories[name].lock()) {
    found->further_files_.push_back(file);
    return found;
  }
  struct stat status {};
  if (fstat(file, &status) != 0) {
    close(file);
    throw Refusal(HCCL_E_SYSCALL, std::string("fstat: ") + std::strerror(errno));
  }
  const std::shared_ptr<SharedMemory> made(new SharedMemory(file, static_cast<size_t>(status.st_size)));
  all.memories[name] = made;
  return made;
}

SharedMemory::~SharedMemory() {
  munmap(data_, bytes_);
  for (const int file : further_files_) {
    close(file);
  }
  close(file_);
}

void SharedMemory::sign(uint32_t place) const {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = place;
  lock.l_len = 1;
  if (fcntl(file_, F_SETLK, &lock) != 0) {
    throw Refusal(HCCL_E_SYSCALL, std::string("F_SETLK: ") + std::strerror(errno));
  }
}

bool SharedMemory::is_signed(uint32_t place) const {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = place;
  lock.l_len = 1;
  return fcntl(file_, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void sleep_on(std::atomic<uint32_t>& word, uint32_t seen, int milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000L};
  futex(word, FUTEX_WAIT, seen, &time);
}

void wake(std::atomic<uint32_t>& word) {
  futex(word, FUTEX_WAKE, INT_MAX, nullptr);
}

} // namespace collectives
