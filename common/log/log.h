#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <source_location>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace firn {

enum class Severity { kInfo, kWarning, kError };

struct LogField {
  std::string name;
  std::variant<int64_t, std::string> value;
};

struct LogEntry {
  Severity severity;
  std::source_location where;
  std::string text;                // a line, without a line feed
  std::string event{};             // a stable name of the kind of event
  std::vector<LogField> fields{};  // values that the text contains, too
};

// Sets the sink of Firn's log. Without a sink lines are dropped, because a library must not write
// to its program's stderr. Several threads may call `sink` at once; it must not throw.
using LogSink = void (*)(const LogEntry&);
void SendLogTo(LogSink sink);

// A log line, which is written at the end of its statement:
//
//     LogWarning("store_failed").With("tag", tag) << "tag " << tag << ": no more numbers come";
//
// The event and the names of fields are stable: programs search for them. People read the text,
// which may change. tools/package/LOGS.md lists the events. Formats the line only if there is a
// sink.
class LogLine {
 public:
  LogLine(Severity severity, std::string_view event,
          std::source_location where = std::source_location::current());
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  // Adds a field. An empty text adds none.
  LogLine& With(std::string_view name, std::string_view value);
  template <std::integral Number>
  LogLine& With(std::string_view name, Number value) {
    AddNumber(name, static_cast<int64_t>(value));
    return *this;
  }

  template <typename Value>
  LogLine& operator<<(const Value& value) {
    if (text_) *text_ << value;
    return *this;
  }

 private:
  void AddNumber(std::string_view name, int64_t value);

  const LogSink sink_;
  LogEntry entry_;
  std::optional<std::ostringstream> text_{};  // set if there is a sink
};

class LogInfo final : public LogLine {
 public:
  explicit LogInfo(std::string_view event,
                   std::source_location where = std::source_location::current())
      : LogLine(Severity::kInfo, event, where) {}
};

class LogWarning final : public LogLine {
 public:
  explicit LogWarning(std::string_view event,
                      std::source_location where = std::source_location::current())
      : LogLine(Severity::kWarning, event, where) {}
};

class LogError final : public LogLine {
 public:
  explicit LogError(std::string_view event,
                    std::source_location where = std::source_location::current())
      : LogLine(Severity::kError, event, where) {}
};

}  // namespace firn
