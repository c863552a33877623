#include "tools/firn/admin_ports.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/cat.h"
#include "common/base/no_signals.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/net/blocking_socket.h"
#include "common/net/ip_address.h"
#include "common/time/clock.h"
#include "common/tls/tls_pump.h"
#include "registry/operate/audit_server.h"
#include "tools/firn/client_session.h"

namespace firn {
namespace {

constexpr Milliseconds kTimeLimit{2'000};
constexpr size_t kTogetherMax = 32;

struct AdminPort {
  Endpoint address;
  bool tls = false;
};

// Parses http://host:port/ or https://host:port/.
Result<AdminPort> ParseAdminUrl(std::string_view url) {
  constexpr std::string_view kPlain = "http://", kTls = "https://";
  const bool tls = url.starts_with(kTls);
  if (!tls && !url.starts_with(kPlain)) return Invalid("its admin URL is invalid: " + Quoted(url));
  url.remove_prefix(tls ? kTls.size() : kPlain.size());
  if (url.ends_with('/')) url.remove_suffix(1);
  FIRN_ASSIGN(Endpoint address, Endpoint::Parse(url));
  return AdminPort{std::move(address), tls};
}

// A request on a new connection.
class Exchange {
 public:
  explicit Exchange(const AdminPort& port) : port_(port) {}

  // Returns the response body. Fails unless the status is 200.
  Result<std::string> Get(std::string_view path) {
    FIRN_ASSIGN(BlockingSocket socket, BlockingSocket::Connect(port_.address, kTimeLimit));
    socket_.emplace(std::move(socket));
    if (port_.tls) FIRN_TRY(Agree());
    FIRN_TRY(Send(Cat("GET ", path, " HTTP/1.1\r\nHost: ", port_.address.ToString(),
                      "\r\nConnection: close\r\n\r\n")));
    std::string text;
    std::optional<size_t> whole;
    while (!whole || text.size() < *whole) {
      FIRN_TRY(ReceiveMore(text));
      if (text.size() > kStatusBytesMax) return Corrupt("the answer is too long");
      if (whole) continue;
      FIRN_ASSIGN(whole, LengthOf(text));
    }
    if (!text.starts_with("HTTP/1.1 200 ")) {
      return Denied("it answered " + Quoted(text.substr(0, text.find("\r\n"))));
    }
    return text.substr(text.find(kEndOfHead) + kEndOfHead.size());
  }

 private:
  static constexpr std::string_view kEndOfHead = "\r\n\r\n";

  // Returns the length of the whole response, or nullopt until its head is complete.
  static Result<std::optional<size_t>> LengthOf(std::string_view text) {
    constexpr std::string_view kName = "\r\nContent-Length: ";
    const size_t head = text.find(kEndOfHead);
    if (head == text.npos) return std::optional<size_t>();
    const std::string_view fields = text.substr(0, head + 2);
    const size_t at = fields.find(kName);
    if (at == fields.npos) return Corrupt("its answer has no length");
    const std::string_view rest = fields.substr(at + kName.size());
    const auto length =
        ParseNumberWithin<size_t>(rest.substr(0, rest.find("\r\n")), 0, kStatusBytesMax);
    if (!length) return Corrupt("its answer has an invalid length");
    return std::optional(head + kEndOfHead.size() + *length);
  }

  Status Agree() {
    const std::optional<TlsOptions> chosen = ChosenTls();
    if (!chosen || chosen->ca.empty()) {
      return Invalid("its admin port uses TLS; name its authorities with --tls_ca");
    }
    FIRN_ASSIGN(tls_,
                TlsPump::Begin({.ca_file = chosen->ca,
                                .name = chosen->name.empty() ? port_.address.host : chosen->name,
                                .cert_file = chosen->cert,
                                .key_file = chosen->key}));
    while (tls_->state() == TlsPump::State::kAgreeing) {
      FIRN_TRY(Flush());
      FIRN_TRY(Feed());
    }
    FIRN_TRY(Flush());
    return Agreed();
  }
  Status Agreed() const {
    const bool failed = tls_->state() == TlsPump::State::kFailed;
    return failed ? Denied("TLS failed: " + tls_->why()) : Status();
  }
  Status Flush() { return socket_->Send(std::exchange(tls_->sealed(), {})); }
  // Limits the total time: a server that sends one byte at a time must not block the command.
  Result<size_t> Receive() {
    if (clock_.Boot() > end_) return Unavailable("timed out");
    return socket_->Receive(buffer_.data(), buffer_.size());
  }
  Status Feed() {
    FIRN_ASSIGN(const size_t size, Receive());
    tls_->Feed({buffer_.data(), size});
    return {};
  }

  Status Send(std::string_view bytes) {
    if (tls_ == nullptr) return socket_->Send(bytes);
    tls_->Seal(bytes);
    return Flush();
  }

  Status ReceiveMore(std::string& text) {
    if (tls_ == nullptr) {
      FIRN_ASSIGN(const size_t size, Receive());
      text.append(buffer_.data(), size);
      return {};
    }
    std::array<char, 16'384> plain;
    size_t size = tls_->Read(plain.data(), plain.size());
    for (; size == 0; size = tls_->Read(plain.data(), plain.size())) {
      FIRN_TRY(Agreed());
      FIRN_TRY(Flush());
      FIRN_TRY(Feed());
    }
    text.append(plain.data(), size);
    return {};
  }

  const AdminPort& port_;
  const Clock& clock_ = SystemClock();
  const BootMs end_ = clock_.Boot() + kTimeLimit;
  std::optional<BlockingSocket> socket_;
  std::unique_ptr<TlsPump> tls_;  // null: no TLS
  std::array<char, 16'384> buffer_;
};

Result<std::string> Ask(const ProviderReport& report) {
  if (report.admin.empty()) return NotFound("its version does not publish its admin port");
  FIRN_ASSIGN(const AdminPort port, ParseAdminUrl(report.admin));
  Result<std::string> answer = Exchange(port).Get("/v1/status");
  if (answer.ok()) return answer;
  const char* const where =
      IsLoopback(port.address.host) ? "; only its own host can reach this address" : "";
  return Status(answer.code(), Cat(report.admin, ": ", answer.status().message(), where));
}

}  // namespace

std::vector<Result<std::string>> AskAdminPorts(const std::vector<AuditedProvider>& servers) {
  std::vector<Result<std::string>> answers(servers.size(), Unavailable("not asked"));
  for (size_t begin = 0; begin < servers.size(); begin += kTogetherMax) {
    std::vector<std::thread> threads;
    for (size_t i = begin; i < std::min(begin + kTogetherMax, servers.size()); ++i) {
      threads.push_back(ThreadWithoutSignals(
          [&server = servers[i], &answer = answers[i]] { answer = Ask(server.report); }));
    }
    for (std::thread& thread : threads) thread.join();
  }
  return answers;
}

std::string AskedText(const Audit& audit) {
  if (audit.asked.empty()) return {};
  const auto answered = std::ranges::count_if(
      audit.asked, [](const AskedServer& server) { return server.heard.ok(); });
  const auto all = static_cast<std::ptrdiff_t>(audit.asked.size());
  std::string text = Cat("asked directly: ", answered, " of ", all, " servers answered\n");
  if (answered == all) return text;
  for (const AskedServer& server : audit.asked) {
    if (!server.heard.ok()) text += Cat("  ", server.address, ": ", server.heard.message(), "\n");
  }
  return text + "  " + kUnknownWithoutStatus + "\n";
}

}  // namespace firn
