#include "common/log/log.h"

#include <atomic>
#include <locale>

namespace firn {
namespace {

std::atomic<LogSink> the_sink{nullptr};

}  // namespace

void SendLogTo(LogSink sink) { the_sink = sink; }

LogLine::LogLine(Severity severity, std::string_view event, std::source_location where)
    : sink_(the_sink), entry_{severity, where, {}} {
  if (sink_ == nullptr) return;
  entry_.event = event;
  text_.emplace().imbue(std::locale::classic());  // the program's locale may write 1.000 for 1000
}

LogLine::~LogLine() {
  if (!text_) return;
  try {
    entry_.text = text_->str();
    sink_(entry_);
  } catch (...) {  // loses the line, but does not end the program whose sink throws
  }
}

LogLine& LogLine::With(std::string_view name, std::string_view value) {
  if (text_ && !value.empty()) {
    entry_.fields.push_back({std::string(name), std::string(value)});
  }
  return *this;
}

void LogLine::AddNumber(std::string_view name, int64_t value) {
  if (text_) entry_.fields.push_back({std::string(name), value});
}

}  // namespace firn
