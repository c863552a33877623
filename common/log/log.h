#pragma once

#include <optional>
#include <source_location>
#include <sstream>
#include <string>

namespace firn {

enum class Severity { kInfo, kWarning, kError };

struct LogEntry {
  Severity severity;
  std::source_location where;
  std::string text;  // a line, without a line feed
};

// Sets the sink of Firn's log. Without a sink lines are dropped, because a library must not write
// to its program's stderr. Several threads may call `sink` at once; it must not throw.
using LogSink = void (*)(const LogEntry&);
void SendLogTo(LogSink sink);

// A log line, which is written at the end of its statement:
//
//     LogWarning() << "tag " << tag << ": no more numbers come";
//
// Formats the line only if there is a sink.
class LogLine {
 public:
  LogLine(Severity severity, std::source_location where);
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  template <typename Value>
  LogLine& operator<<(const Value& value) {
    if (text_) *text_ << value;
    return *this;
  }

 private:
  const LogSink sink_;
  const Severity severity_;
  const std::source_location where_;
  std::optional<std::ostringstream> text_{};  // set if there is a sink
};

class LogInfo final : public LogLine {
 public:
  explicit LogInfo(std::source_location where = std::source_location::current())
      : LogLine(Severity::kInfo, where) {}
};

class LogWarning final : public LogLine {
 public:
  explicit LogWarning(std::source_location where = std::source_location::current())
      : LogLine(Severity::kWarning, where) {}
};

class LogError final : public LogLine {
 public:
  explicit LogError(std::source_location where = std::source_location::current())
      : LogLine(Severity::kError, where) {}
};

}  // namespace firn
