#include "server/front/net/front_door.h"

#include <algorithm>

#include <boost/asio/ip/address.hpp>

#include "common/base/cat.h"
#include "server/front/net/io_loop.h"
#include "server/front/net/tls.h"

namespace firn::front {

FrontDoor::FrontDoor(FrontDoorOptions options, const Clock& clock, MakeProtocols make_protocols)
    : options_(std::move(options)),
      clock_(clock),
      make_protocols_(std::move(make_protocols)),
      tls_(options_.tls ? std::make_unique<Tls>(*options_.tls) : nullptr) {}

FrontDoor::~FrontDoor() { Shutdown(Milliseconds(0)); }

std::unique_ptr<IoLoop> FrontDoor::MakeLoop() {
  const auto wrap = [tls = tls_.get()](StreamSocket socket) {
    return tls != nullptr ? tls->Wrap(std::move(socket)) : MakePlainWire(std::move(socket));
  };
  const Limits& limits = options_.limits;
  const size_t buffer_bytes_max =
      limits.output_total_bytes_max / static_cast<size_t>(options_.io_threads);
  const LoopSetting setting{limits, clock_, wrap, places_, buffer_bytes_max, options_.log};
  return std::make_unique<IoLoop>(setting, make_protocols_());
}

Status FrontDoor::Open() {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(options_.host, error);
  if (error) return Invalid("not an IP address: " + options_.host);
  boost::asio::ip::tcp::endpoint endpoint(address, options_.port);
  const bool share = options_.io_threads > 1;
  // Binding without SO_REUSEPORT fails if another socket listens.
  if (share) FIRN_TRY(IoLoop::Probe(endpoint));
  for (int i = 0; i < options_.io_threads; ++i) {
    loops_.push_back(MakeLoop());
    FIRN_TRY(loops_.back()->Listen(endpoint, share));
  }
  port_ = endpoint.port();
  return {};
}

Status FrontDoor::OpenUnix() {
  if (options_.unix_path.empty()) return {};
  FIRN_ASSIGN(unix_, UnixSocket::Listen(options_.unix_path, options_.unix_mode));
  for (auto& loop : loops_) FIRN_TRY(loop->ListenUnix(unix_->fd()));
  return {};
}

Status FrontDoor::Start() {
  if (options_.io_threads < 1 || options_.io_threads > 64) {
    return Invalid("io_threads must be 1 to 64");
  }
  if (tls_) FIRN_TRY(tls_->Load());
  if (Status opened = Open(); !opened.ok()) {
    loops_.clear();
    return std::move(opened).WithContext(Cat(options_.host, ":", options_.port));
  }
  if (Status opened = OpenUnix(); !opened.ok()) {
    loops_.clear();
    unix_.reset();
    return std::move(opened).WithContext("Unix socket " + options_.unix_path);
  }
  for (auto& loop : loops_) threads_.emplace_back([&loop] { loop->Run(); });
  return {};
}

void FrontDoor::Shutdown(Milliseconds patience) {
  unix_.reset();  // a client that finds no file fails over at once
  for (auto& loop : loops_) loop->Drain(patience.count());
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

Status FrontDoor::ReloadTls() { return tls_ ? tls_->Reload() : Status(); }

std::optional<TlsExpiry> FrontDoor::tls_expiry() const {
  return tls_ ? std::optional(tls_->expiry()) : std::nullopt;
}

void FrontDoor::WakeParked(const void* what) {
  for (const auto& loop : loops_) loop->WakeParked(what);
}

BootMs FrontDoor::OldestTurn(BootMs now) const {
  BootMs oldest = now;
  if (threads_.empty()) return oldest;
  for (const auto& loop : loops_) {
    const auto turned = static_cast<int64_t>(loop->counted().turned_ms.Get());
    if (turned > 0) oldest = std::min(oldest, BootMs(turned));
  }
  return oldest;
}

Totals FrontDoor::totals() const {
  Totals totals;
  for (const auto& loop : loops_) totals.Add(loop->counted());
  return totals;
}

}  // namespace firn::front
