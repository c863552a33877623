#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "common/time/clock.h"
#include "server/issue/refusal.h"
#include "server/issue/request.h"

namespace firn {

// A listener for every refusal that an issuer returns. Several threads may call it at once. Must
// not block or throw.
class RejectionHandler {
 public:
  virtual ~RejectionHandler() = default;

  virtual void OnRefusal(const Request& request, const Refusal& refusal) = 0;
};

// The default handler. Logs at most kLinesPerWindow refusals per reason and window. The first line
// of the next window contains the number of omitted lines.
class LoggingRejectionHandler final : public RejectionHandler {
 public:
  static constexpr int kLinesPerWindow = 3;
  static constexpr Milliseconds kWindow{10'000};

  // `log` receives one line without its newline, and the request and refusal that it describes.
  // Called without a lock. `clock` must outlive this.
  using LogLine = std::function<void(const std::string&, const Request&, const Refusal&)>;
  LoggingRejectionHandler(const Clock& clock, LogLine log);

  void OnRefusal(const Request& request, const Refusal& refusal) override;

 private:
  struct Window {
    BootMs begin;
    int lines = 0;
    uint64_t left_out = 0;
  };

  const Clock& clock_;
  const LogLine log_;
  std::mutex mutex_;
  std::array<Window, kReasons> windows_;  // under mutex_
};

}  // namespace firn
