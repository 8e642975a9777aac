// What is to be read of a device's memory, and the launches that read it.

#pragma once

#include "python_objects.h"

#include <cstdint>
#include <vector>

namespace torchferry {

// Numbers of a tensor in a table for the kernels: address, bytes, first program, programs, numbers, kind.
constexpr int kEntry = 6;
constexpr int kWord = 8;  // bytes
constexpr int kKinds = 32;  // of elements, at most

// Of one device. What one operator was given or has answered with is read by one launch.
class ReadingQueue {
 public:
  // `owner`: FusedFigures of Python's, which has the kernels and takes what was read over.
  explicit ReadingQueue(PyObject* owner);

  // Whether memory that begins there can be read as it is.
  bool takes(const void* start) const { return reinterpret_cast<uintptr_t>(start) % kWord == 0; }

  // Have so many bytes read at the next launch, and what is found put into the row some time later.
  void put(const void* start, int kind, int64_t numbers, int64_t nbytes, void* row);

  // Read all that was put: now it is there, and nobody has written to it.
  void launch();

  // What was put and is not read may not be there any more.
  void drop();

  // The batch is on its way: a new one begins.
  void clear();

  // Whether what is asked of the device's current stream may become part of a graph: Python can tell.
  bool may_be_captured() const;

  void set_function(int kind, int64_t function, int threads, int shared);
  bool can_launch(int kind) const { return functions[kind].handle != nullptr; }

  std::vector<int64_t> entries, rows;  // of the tensors of this batch
  int64_t read = 0, written = 0;  // so many of them have been read, and added up
  int64_t used = 0;  // of the places that programs leave their results in
  int64_t programs[kKinds] = {};  // of what is not read yet: the most that a tensor has

  int64_t count() const { return static_cast<int64_t>(rows.size()); }

 private:
  struct Function {
    void* handle = nullptr;
    unsigned threads = 0, shared = 0;
  };

  bool follow();
  bool launch_each();
  void launch_one(const int64_t* entry, int64_t table);

  PyObject* owner_;  // it has us
  int64_t tile_, most_programs_, most_partials_, most_tensors_, beyond_, device_;
  int64_t left_;  // the address of what programs leave
  Ref current_stream_, current_device_, is_capturing_;
  int64_t stream_ = -1;
  int pending_kinds_ = 0;
  Function functions[kKinds];
};

// The queue in an object of Python's; none in anything else.
ReadingQueue* reading_queue_of(PyObject* object);

bool add_reading_queue(PyObject* module);

}  // namespace torchferry
