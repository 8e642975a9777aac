// Graphs: work that is captured instead of run, and run again as often as one likes.
#include "stream.h"

#include "../profiling/recording.h"

#include <atomic>

namespace {

using Handle = std::shared_ptr<cann::Graph>;

std::atomic<uint32_t> made{0};

Handle& graph_of(aclmdlRI handle) {
  return *static_cast<Handle*>(handle);
}

void begin(cann::Stream& stream) {
  if (stream.graph) {
    throw cann::Failure(ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured already");
  }
  stream.graph = std::make_shared<cann::Graph>();
  stream.graph->id = made++;
  stream.graph->streams.push_back(&stream);
}

Handle end(cann::Stream& stream) {
  if (!stream.graph) {
    throw cann::Failure(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "the stream is not being captured");
  }
  Handle graph = stream.graph;
  for (cann::Stream* captured : graph->streams) {
    captured->graph.reset();
  }
  return graph;
}

} // namespace

using cann::guarded;
using cann::stream_of;

extern "C" {

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode) {
  return guarded([&] { begin(stream_of(stream)); });
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* graph) {
  return guarded([&] { *graph = new Handle(end(stream_of(stream))); });
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status, aclmdlRI* graph) {
  return guarded([&] {
    const bool captured = stream_of(stream).graph != nullptr;
    *status = captured ? ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE : ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    if (graph != nullptr) {
      *graph = captured ? &stream_of(stream).graph : nullptr;
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
  delete static_cast<Handle*>(graph);
  return ACL_SUCCESS;
}

aclError aclmdlRIGetId(aclmdlRI graph, uint32_t* id) {
  return guarded([&] { *id = graph_of(graph)->id; });
}

aclError aclmdlRIDebugPrint(aclmdlRI graph) {
  return guarded([&] { printf("graph %u: %zu tasks\n", graph_of(graph)->id, graph_of(graph)->works.size()); });
}

} // extern "C"
