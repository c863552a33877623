#pragma once

#include <functional>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include "client/call/pipeline.h"
#include "client/fleet/fleet.h"
#include "common/net/name_lookup.h"
#include "common/time/clock.h"

namespace firn::client {

// What nobody's call should have to wait for: servers that rest are asked for their status when
// their time has come, and names are looked up. Used by one IO thread.
class Upkeep {
 public:
  static constexpr Micros kInterval{100'000};

  // `probe` connects to a server, checks its status, tells what came of it, and keeps the
  // connection if it is good.
  using Probe = std::function<void(const ServerPtr&, Pipeline::Checked)>;

  Upkeep(boost::asio::io_context& io, Fleet& fleet, const Clock& clock, Probe probe)
      : fleet_(fleet),
        clock_(clock),
        probe_(std::move(probe)),
        timer_(io.get_executor()),
        names_([&fleet](const std::string& name, const std::vector<Address>& found) {
          fleet.Resolved(name, found);
        }) {}

  // Does what is due, and goes on doing so.
  void Run();
  void Stop();

 private:
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        boost::asio::io_context::executor_type>;

  Fleet& fleet_;
  const Clock& clock_;
  const Probe probe_;
  Timer timer_;
  NameLookup names_;
  bool stopped_ = false;
};

}  // namespace firn::client
