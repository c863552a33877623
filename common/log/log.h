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
  std::string text;  // a line, without its end
};

// Where Firn's log goes, for the whole program; to nowhere until that is said, since a library has
// no business on its host's stderr. Any thread may call `sink`, many at once; it must not throw.
using LogSink = void (*)(const LogEntry&);
void SendLogTo(LogSink sink);

// A line of the log, written where its statement ends:
//
//     LogWarning() << "tag " << tag << ": no more numbers come";
//
// What a line costs is spent only where somebody listens.
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
  std::optional<std::ostringstream> text_{};  // where somebody listens
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
