#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/id/rack_split.h"
#include "common/id/reason.h"
#include "common/id/server_phase.h"
#include "common/id/urgency.h"
#include "server/front/desk/server_list.h"

namespace firn::front {

struct TagReport {
  std::string tag;
  std::string strategy;
  std::optional<int64_t> high{};            // segment: servers have got all lower numbers
  std::optional<int64_t> supply{};          // segment: numbers that this server holds in memory
  std::optional<int64_t> supply_seconds{};  // segment: how long the supply lasts; empty: no demand
  std::optional<int64_t> step{};            // segment: size of the next range
  std::string trouble{};                    // segment: why no more ranges arrive; empty: they do
  std::string owner{};                      // segment, buffer = owner: its address, if known
  WallMs owner_since{};                     // by the registry's clock; 0: unknown
  // Why an earlier definition is in use; empty: the current one is.
  std::string outdated{};
  // Segment: since when the ledger supplies ranges because the store is unreachable; empty: it does
  // not. The next: how many numbers the ledger has supplied on this server in total.
  std::optional<WallMs> ledger_since{};
  int64_t ledger_numbers = 0;
  bool as_issued = false;  // clients get the strategy's ids unchanged
};

// A tag whose calls are refused.
struct RefusedTagReport {
  std::string tag;
  std::string state;  // one word, as server/node/STATES.md lists them
  Reason reason = Reason::kInternal;
  std::string why;
};

// The server's relation to its registry; not shown to clients.
struct RegistryReport {
  std::string claim;                 // state of the machine id's claim, one word
  std::string trouble;               // why it does not issue, or will soon stop; empty: no trouble
  Urgency urgency = Urgency::kNote;  // of `trouble`
  bool exists = true;                // false: an operator has assigned the machine id by hand
  bool connected = false;
  Milliseconds session_age{0};
  uint64_t renewals = 0, renewals_failed = 0;
  std::string clock_trouble{};   // why the registry's clock is not trusted; empty: it is
  Milliseconds clock_off{0};     // how far it is ahead of the trusted time
  Milliseconds clock_behind{0};  // how far the wall clock is behind the time of new ids
  uint64_t clock_steps_forward = 0, clock_steps_back = 0;
};

// One of the machine ids that the server holds or tries to claim.
struct MachineReport {
  std::string claim;                   // its state, one word
  std::optional<MachineId> machine{};  // empty: it is not held
  WallMs bound{};                      // ids are of earlier times, until it is renewed
  Milliseconds bound_left{0};          // until the bound, by the clock of ids
  std::string trouble{};               // why it does not issue, or will soon stop
};

// The state of the server, for operators and clients.
struct ServerReport {
  std::string cluster_uuid;
  std::string cluster_name;
  std::string application;
  std::string address;  // at which clients reach this server
  ServerPhase phase = ServerPhase::kNotReady;
  std::optional<MachineId> machine{};        // the first that it holds
  std::vector<MachineReport> machines{};     // all that it holds or tries to claim
  std::optional<WallMs> bound{};             // ids are of earlier times, until it is renewed
  std::optional<Milliseconds> bound_left{};  // until the bound, by the clock of ids
  std::optional<Milliseconds> clock_skew{};  // the server's clock minus the registry's
  WallMs wall;                               // the server's clock now
  WallMs started;
  RegistryReport registry{};
  bool overloaded = false;        // it has refused over 1 % of its last calls as OVERLOADED
  bool frozen = false;            // the cluster is frozen, until an operator runs firn restore
  std::string sequencer;          // of snowflake ids: atomic, mutex or spin
  std::vector<TagReport> tags{};  // at most kTagsMax
  std::vector<RefusedTagReport> refused_tags{};  // at most kTagsMax
  size_t refused_tags_count = 0;                 // including unlisted ones
  std::string root_trouble{};  // why the tags in the registry are ignored; empty: they are used
  std::string version;
  std::string build;

  static constexpr size_t kTagsMax = 1000;
};

// The front end's view of its server. Thread-safe; never blocks.
class ServerView {
 public:
  virtual ~ServerView() = default;

  virtual ServerReport Report() const = 0;
  // Changes whenever Report() changes, except for clocks, ages and counts. Cheap.
  virtual uint64_t version() const = 0;
  virtual ServerPhase phase() const = 0;
  // Why clients should use another server; empty if they need not, or if the phase says why.
  virtual std::string why_not_ready() const { return {}; }
  // Why no tag counts as ready, even one that could issue ids; empty: such a tag is ready.
  virtual std::string why_no_tag_is_ready() const { return {}; }
  virtual std::optional<MachineId> machine() const = 0;

  // The cluster's layout, which never changes while the server runs.
  virtual const Layout& layout() const = 0;
  virtual RackSplit rack_split() const = 0;
  // When the first of its tags runs out of ids: at the layout's end, or earlier.
  virtual WallMs ids_end() const { return layout().end(); }

  virtual WallMs wall() const = 0;

  // The servers of the cluster; none if this server does not read the list.
  virtual ShownServers servers() const { return {}; }

  // Everything that it knows of its cluster, as a document for `firn restore --from`.
  virtual std::string knowledge() const { return {}; }
};

// Changes that an operator can make through the admin port. Thread-safe; must not block.
class ServerControl {
 public:
  virtual ~ServerControl() = default;

  // GoOffline makes clients use other servers; GoOnline makes them return. kUnavailable while the
  // server is stopping or the registry cannot be written.
  virtual Status GoOffline() = 0;
  virtual Status GoOnline() = 0;
};

}  // namespace firn::front
