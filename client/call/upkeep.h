#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>

#include "client/call/pipeline.h"
#include "client/fleet/fleet.h"
#include "client/socket/name_lookup.h"
#include "common/time/clock.h"

namespace firn::client {

// Who connects to a server on the upkeep's behalf.
class UpkeepUser {
 public:
  // Connects, checks the server's status, tells `checked`, and keeps the connection if it is good.
  virtual void Probe(const ServerPtr& server, Pipeline::Checked checked) = 0;

 protected:
  ~UpkeepUser() = default;
};

// What nobody's call should have to wait for: servers that rest are asked for their status when
// their time has come, names are looked up, connections that were idle for long are closed.
// Used by one IO thread.
class Upkeep {
 public:
  static constexpr Micros kInterval{100'000};

  Upkeep(boost::asio::io_context& io, Fleet& fleet, const Clock& clock, UpkeepUser& user)
      : fleet_(fleet),
        clock_(clock),
        user_(user),
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
  UpkeepUser& user_;
  Timer timer_;
  NameLookup names_;
  bool stopped_ = false;
};

}  // namespace firn::client
