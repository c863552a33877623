#include "common/log/log.h"

#include <atomic>

namespace firn {
namespace {

std::atomic<LogSink> the_sink{nullptr};

}  // namespace

void SendLogTo(LogSink sink) { the_sink = sink; }

LogLine::LogLine(Severity severity, std::source_location where)
    : sink_(the_sink), severity_(severity), where_(where) {}

LogLine::~LogLine() {
  if (sink_ != nullptr) sink_({severity_, where_, text_.str()});
}

}  // namespace firn
