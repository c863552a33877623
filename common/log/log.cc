#include "common/log/log.h"

#include <atomic>
#include <locale>

namespace firn {
namespace {

std::atomic<LogSink> the_sink{nullptr};

}  // namespace

void SendLogTo(LogSink sink) { the_sink = sink; }

LogLine::LogLine(Severity severity, std::source_location where)
    : sink_(the_sink), severity_(severity), where_(where) {
  if (sink_ == nullptr) return;
  text_.emplace().imbue(std::locale::classic());  // the program's locale may write 1.000 for 1000
}

LogLine::~LogLine() {
  if (!text_) return;
  try {
    sink_({severity_, where_, text_->str()});
  } catch (...) {  // loses the line, but does not end the program whose sink throws
  }
}

}  // namespace firn
