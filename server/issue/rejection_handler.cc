#include "server/issue/rejection_handler.h"

#include <locale>
#include <sstream>
#include <utility>

#include "common/base/quote.h"

namespace firn {

LoggingRejectionHandler::LoggingRejectionHandler(const Clock& clock, LogLine log)
    : clock_(clock), log_(std::move(log)) {}

void LoggingRejectionHandler::OnRefusal(const Request& request, const Refusal& refusal) {
  uint64_t left_out = 0;
  {
    const BootMs now = clock_.Boot();
    const std::lock_guard lock(mutex_);
    Window& window = windows_[static_cast<size_t>(refusal.reason)];
    if (window.lines == 0 || now - window.begin >= kWindow) {
      left_out = std::exchange(window, Window{now}).left_out;
    }
    if (window.lines == kLinesPerWindow) {
      ++window.left_out;
      return;
    }
    ++window.lines;
  }
  std::ostringstream line;
  line.imbue(std::locale::classic());
  line << "refused " << request.count << " of tag " << Quoted(request.tag) << ": " << refusal;
  if (!request.trace_id.empty()) line << " (trace " << request.trace_id << ")";
  if (left_out > 0) line << " (and " << left_out << " like it before)";
  log_(line.str(), request, refusal);
}

}  // namespace firn
