#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "server/front/desk/desk_counters.h"
#include "server/front/desk/server_view.h"
#include "server/front/net/counters.h"
#include "server/front/net/tls_expiry.h"
#include "server/lease/lease_desk.h"

namespace firn::front {

// The page /metrics, assembled for one request. Thread-compatible.
class MetricsPage {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  MetricsPage();
  ~MetricsPage();

  // Values of one name are listed together, with the help text of the first. Names are firn_*;
  // counters end in _total.
  void Counter(const std::string& name, const std::string& help, uint64_t value,
               Labels labels = {});
  void Gauge(const std::string& name, const std::string& help, double value, Labels labels = {});
  void Histogram(const std::string& name, const std::string& help, const LatencyCounts::Sums& sums,
                 Labels labels = {});

  // In Prometheus' text format.
  std::string Text() const;

 private:
  struct Families;

  std::unique_ptr<Families> families_;
};

// Counters of a listener, and when its certificates expire; `door` is its name ("public", "admin").
void Describe(const Totals& totals, const std::string& door, std::optional<TlsExpiry> expiry,
              WallMs now, MetricsPage& page);

// Calls, ids by tag, and refusals by reason, of the whole server.
void Describe(const DeskCounters::Sums& sums, MetricsPage& page);

// Leases of machine ids, held and refused.
void Describe(const LeaseCounts& counts, MetricsPage& page);

// State, machine id, milliseconds to the bound, clocks, session and renewals, and the layout's end.
void Describe(const ServerView& view, MetricsPage& page);

}  // namespace firn::front
