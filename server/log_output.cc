#include "server/log_output.h"

#include <string_view>
#include <variant>

#include <glog/logging.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/json/json.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"

namespace firn {
namespace {

std::string_view LevelName(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      break;
  }
  return "error";
}

google::LogSeverity GlogSeverity(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return google::GLOG_INFO;
    case Severity::kWarning:
      return google::GLOG_WARNING;
    case Severity::kError:
      break;
  }
  return google::GLOG_ERROR;
}

Severity SeverityOf(google::LogSeverity severity) {
  if (severity == google::GLOG_INFO) return Severity::kInfo;
  return severity == google::GLOG_WARNING ? Severity::kWarning : Severity::kError;
}

void AppendMember(std::string& line, std::string_view name, std::string_view text) {
  AppendJsonText(line, name);
  line += ':';
  AppendJsonText(line, text);
}

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// `source`: file and line of the statement.
std::string JsonOf(const LogEntry& entry, std::string_view source, WallMs now) {
  std::string line = "{";
  AppendMember(line, "time", FormatRfc3339(now));
  line += ',';
  AppendMember(line, "level", LevelName(entry.severity));
  line += ',';
  AppendMember(line, "event", entry.event);
  line += ',';
  AppendMember(line, "message", entry.text);
  line += ",\"fields\":{";
  for (const LogField& field : entry.fields) {
    if (&field != entry.fields.data()) line += ',';
    if (const auto* number = std::get_if<int64_t>(&field.value)) {
      AppendJsonText(line, field.name);
      line += Cat(":", *number);
    } else {
      AppendMember(line, field.name, std::get<std::string>(field.value));
    }
  }
  line += "},";
  AppendMember(line, "source", source);
  return line + "}\n";
}

// Writes once, so that lines of several threads do not mix. A line that cannot be written is lost.
void WriteToStderr(const std::string& line) {
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

// Logs with the statement's file and line, as glog does.
void WriteText(const LogEntry& entry) {
  const int line = static_cast<int>(entry.where.line());
  google::LogMessage(entry.where.file_name(), line, GlogSeverity(entry.severity)).stream()
      << entry.text;
}

void WriteJson(const LogEntry& entry) {
  if (GlogSeverity(entry.severity) < FLAGS_minloglevel) return;
  WriteToStderr(JsonLogLine(entry, SystemClock().Wall()));
}

// Writes lines of linked code, such as a plugin's, as JSON.
class LibraryLines final : public google::LogSink {
 public:
  void send(google::LogSeverity severity, const char* /*path*/, const char* file, int number,
            const tm* /*time*/, const char* message, size_t bytes) override {
    const LogEntry entry{SeverityOf(severity), {}, std::string(message, bytes), "library"};
    WriteToStderr(JsonOf(entry, Cat(file, ":", number), SystemClock().Wall()));
  }
};

}  // namespace

std::string JsonLogLine(const LogEntry& entry, WallMs now) {
  return JsonOf(entry, Cat(FileName(entry.where.file_name()), ":", entry.where.line()), now);
}

void SendLogToStderr(const LogStyle& style, const char* program) {
  FLAGS_minloglevel = GlogSeverity(style.least);
  FLAGS_logtostderr = style.format == LogFormat::kText;
  google::InitGoogleLogging(program);
  if (style.format == LogFormat::kText) return SendLogTo(WriteText);
  for (int severity = 0; severity < google::NUM_SEVERITIES; ++severity) {
    google::SetLogDestination(severity, "");  // no files
  }
  google::SetStderrLogging(google::NUM_SEVERITIES - 1);
  google::AddLogSink(new LibraryLines);  // used until the process ends
  SendLogTo(WriteJson);
}

}  // namespace firn
