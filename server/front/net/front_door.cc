#include "server/front/net/front_door.h"

#include <atomic>
#include <thread>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "common/base/cat.h"
#include "server/front/net/io_loop.h"
#include "server/front/net/tls.h"

namespace firn::front {

class FrontDoor::Impl {
 public:
  Impl(FrontDoorOptions options, const Clock& clock, MakeProtocols make_protocols)
      : options_(std::move(options)),
        clock_(clock),
        make_protocols_(std::move(make_protocols)),
        wrap_(MakePlainWire) {
    if (!options_.tls) return;
    tls_.emplace(*options_.tls);
    wrap_ = [this](TcpSocket socket) { return tls_->Wrap(std::move(socket)); };
  }

  Status Start();
  void Shutdown(Milliseconds patience);
  Status ReloadTls() { return tls_ ? tls_->Load() : Status(); }

  uint16_t port() const { return endpoint_.port(); }
  const std::vector<std::unique_ptr<IoLoop>>& loops() const { return loops_; }

 private:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  Status Open();
  std::unique_ptr<IoLoop> MakeLoop();

  const FrontDoorOptions options_;
  const Clock& clock_;
  const MakeProtocols make_protocols_;
  std::optional<Tls> tls_;
  WrapSocket wrap_;
  std::atomic<size_t> connections_{0};
  Endpoint endpoint_;
  std::vector<std::unique_ptr<IoLoop>> loops_;
  std::vector<std::thread> threads_;
};

std::unique_ptr<IoLoop> FrontDoor::Impl::MakeLoop() {
  const LoopSetting setting{options_.limits, clock_, wrap_, connections_};
  return std::make_unique<IoLoop>(setting, make_protocols_());
}

Status FrontDoor::Impl::Open() {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(options_.host, error);
  if (error) return Invalid("not an IP address: " + options_.host);
  endpoint_ = Endpoint(address, options_.port);
  const bool share = options_.io_threads > 1;
  // A socket that does not share finds anyone who is there already.
  if (share) FIRN_TRY(IoLoop::Probe(endpoint_));
  for (int i = 0; i < options_.io_threads; ++i) {
    loops_.push_back(MakeLoop());
    FIRN_TRY(loops_.back()->Listen(endpoint_, share));
  }
  return {};
}

Status FrontDoor::Impl::Start() {
  if (options_.io_threads < 1 || options_.io_threads > 64) {
    return Invalid("io_threads must be 1 to 64");
  }
  FIRN_TRY(ReloadTls());
  if (Status opened = Open(); !opened.ok()) {
    loops_.clear();
    return std::move(opened).WithContext(Cat(options_.host, ":", options_.port));
  }
  for (auto& loop : loops_) threads_.emplace_back([&loop] { loop->Run(); });
  return {};
}

void FrontDoor::Impl::Shutdown(Milliseconds patience) {
  for (auto& loop : loops_) loop->Drain(patience.count());
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

FrontDoor::FrontDoor(FrontDoorOptions options, const Clock& clock, MakeProtocols make_protocols)
    : impl_(std::make_unique<Impl>(std::move(options), clock, std::move(make_protocols))) {}

FrontDoor::~FrontDoor() { impl_->Shutdown(Milliseconds(0)); }

Status FrontDoor::Start() { return impl_->Start(); }
uint16_t FrontDoor::port() const { return impl_->port(); }
void FrontDoor::Shutdown(Milliseconds patience) { impl_->Shutdown(patience); }

Status FrontDoor::ReloadTls() { return impl_->ReloadTls(); }

void FrontDoor::WakeParked() {
  for (const auto& loop : impl_->loops()) loop->WakeParked();
}

Totals FrontDoor::totals() const {
  Totals totals;
  for (const auto& loop : impl_->loops()) totals.Add(loop->counted());
  return totals;
}

}  // namespace firn::front
