#pragma once

#include <string>

#include "common/base/units.h"
#include "common/log/log.h"
#include "server/flags/options.h"

namespace firn {

// Writes Firn's log lines, and lines that linked code writes through glog, to stderr in this style.
// Call once, at the start of the program.
void SendLogToStderr(const LogStyle& style, const char* program);

// Returns the line as a JSON object and a line feed, as tools/package/LOGS.md describes it.
std::string JsonLogLine(const LogEntry& entry, WallMs now);

}  // namespace firn
