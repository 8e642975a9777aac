// Graphs: work that is captured instead of run, and run again as often as one likes.
#include "stream.h"

#include "../profiling/recording.h"

#include <atomic>
#include <unordered_map>

namespace {

std::atomic<uint32_t> made{0};

// What the caller's handles, addresses of graphs, keep alive: from the beginning of a capture until it is destroyed.
struct Graphs {
  std::mutex mutex;
  std::unordered_map<void*, std::shared_ptr<cann::Graph>> alive;
};

Graphs& graphs() {
  static auto* all = new Graphs;
  return *all;
}

std::shared_ptr<cann::Graph> graph_of(aclmdlRI handle) {
  const std::lock_guard lock(graphs().mutex);
  const auto found = graphs().alive.find(handle);
  if (found == graphs().alive.end()) {
    throw cann::Failure(ACL_ERROR_RT_INVALID_HANDLE, "there is no such graph");
  }
  return found->second;
}

void begin(cann::Stream& stream) {
  if (stream.graph) {
    throw cann::Failure(ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured already");
  }
  stream.graph = std::make_shared<cann::Graph>();
  stream.graph->id = made++;
  stream.graph->streams.push_back(&stream);
  const std::lock_guard lock(graphs().mutex);
  graphs().alive[stream.graph.get()] = stream.graph;
}

aclmdlRI end(cann::Stream& stream) {
  if (!stream.graph) {
    throw cann::Failure(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "the stream is not being captured");
  }
  const std::shared_ptr<cann::Graph> graph = stream.graph;
  for (cann::Stream* captured : graph->streams) {
    captured->graph.reset();
  }
  return graph.get();
}

} // namespace

using cann::guarded;
using cann::stream_of;

extern "C" {

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode) {
  return guarded([&] { begin(stream_of(stream)); });
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* graph) {
  return guarded([&] { *graph = end(stream_of(stream)); });
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status, aclmdlRI* graph) {
  return guarded([&] {
    const auto& captured = stream_of(stream).graph;
    *status = captured ? ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE : ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    if (graph != nullptr) {
      *graph = captured.get();
    }
  });
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode*) {
  return ACL_SUCCESS;
}

aclError aclmdlRIExecuteAsync(aclmdlRI graph, aclrtStream stream) {
  return guarded([&] {
    const cann::Call call("aclmdlRIExecuteAsync");
    cann::Stream& own = stream_of(stream);
    const auto describe = [] { return cann::Task{"MODEL_EXECUTE", "", ""}; };
    own.push(cann::told_to_profiler(own, describe, [held = graph_of(graph)] {
      for (const cann::Work& work : held->works) {
        work();
      }
    }));
  });
}

aclError aclmdlRIDestroy(aclmdlRI graph) {
  const std::lock_guard lock(graphs().mutex);
  graphs().alive.erase(graph);
  return ACL_SUCCESS;
}

aclError aclmdlRIGetId(aclmdlRI graph, uint32_t* id) {
  return guarded([&] { *id = graph_of(graph)->id; });
}

aclError aclmdlRIDebugPrint(aclmdlRI graph) {
  return guarded([&] { printf("graph %u: %zu tasks\n", graph_of(graph)->id, graph_of(graph)->works.size()); });
}

} // extern "C"
