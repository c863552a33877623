#include "client/call_report.h"

#include <array>
#include <cstdio>

#include "client/client_events.h"
#include "client/client_view.h"
#include "common/base/cat.h"

namespace firn {
namespace {

template <size_t N, typename Enum>
std::string_view NameOf(const std::array<std::string_view, N>& names, Enum value) {
  const auto index = static_cast<size_t>(value);
  return index < N ? names[index] : "?";
}

}  // namespace

std::string_view AttemptEndName(AttemptEnd end) {
  static constexpr std::array<std::string_view, 9> kNames = {
      "answered",      "unreachable",    "connection timed out",
      "closed",        "did not answer", "broke the protocol",
      "wrong service", "refused",        "abandoned"};
  return NameOf(kNames, end);
}

std::string_view EventName(ClientEvent::Kind kind) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "list",     "unhealthy", "healthy", "quarantined",
      "draining", "no server", "forked",  "not prefetched"};
  return NameOf(kNames, kind);
}

std::string_view HealthName(ServerHealth health) {
  static constexpr std::array<std::string_view, 6> kNames = {"healthy",  "failing",  "ejected",
                                                             "disabled", "draining", "quarantined"};
  return NameOf(kNames, health);
}

std::string CallAttempt::ToString() const {
  std::string text = Cat(server, " ", AttemptEndName(end));
  if (refusal) text += Cat(" (", ReasonName(*refusal), ")");
  char after[32];
  std::snprintf(after, sizeof after, " after %.1f ms", static_cast<double>(took.count()) / 1000.0);
  text += after;
  if (!detail.empty()) text += ": " + detail;
  return text;
}

}  // namespace firn
