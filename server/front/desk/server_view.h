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
  std::optional<int64_t> high{};            // segment: all below it has been given to servers
  std::optional<int64_t> supply{};          // segment: numbers that this server holds in memory
  std::optional<int64_t> supply_seconds{};  // ... and how long they last; empty: no demand
  std::optional<int64_t> step{};            // segment: how many are asked for next
  std::string trouble{};                    // segment: why no more come; empty: they do
  // Why it is served by an earlier definition; empty: by the present one.
  std::string outdated{};
  // Segment: since when its ledger picks its ranges, the store being away; empty: it does not. And
  // how many numbers it has ever picked here.
  std::optional<WallMs> ledger_since{};
  int64_t ledger_numbers = 0;
  bool as_issued = false;  // nothing that is done around its ids changes them
};

// A tag whose calls are refused.
struct RefusedTagReport {
  std::string tag;
  std::string state;  // one word, as server/node/STATES.md lists them
  Reason reason = Reason::kInternal;
  std::string why;
};

// How the server stands with its registry; nothing of it is for clients.
struct RegistryReport {
  std::string claim;    // state of the machine id, one word
  std::string trouble;  // why it does not issue, or not for long; empty when all is well
  Urgency urgency = Urgency::kNote;  // of `trouble`
  bool exists = true;                // false: an operator has assigned the machine id by hand
  bool connected = false;
  Milliseconds session_age{0};
  uint64_t renewals = 0, renewals_failed = 0;
  std::string clock_trouble{};   // why the registry's clock is not believed; empty: it is
  Milliseconds clock_off{0};     // how far it lies ahead of the time that is believed
  Milliseconds clock_behind{0};  // the wall clock, behind the time that ids are issued under
  uint64_t clock_steps_forward = 0, clock_steps_back = 0;
};

// One of the machine ids that the server has, or looks for.
struct MachineReport {
  std::string claim;                   // its state, one word
  std::optional<MachineId> machine{};  // empty: it is not held
  WallMs bound{};                      // nothing of it is issued at or after, unless renewed
  Milliseconds bound_left{0};          // until then, by the clock of ids
  std::string trouble{};               // why it does not issue, or not for long
};

// Everything that an operator or a client asks first.
struct ServerReport {
  std::string cluster_uuid;
  std::string cluster_name;
  std::string application;
  std::string address;  // at which clients reach this server
  ServerPhase phase = ServerPhase::kNotReady;
  std::optional<MachineId> machine{};        // the first that it holds
  std::vector<MachineReport> machines{};     // all that it has or looks for
  std::optional<WallMs> bound{};             // it issues nothing at or after, unless renewed
  std::optional<Milliseconds> bound_left{};  // until then, by the clock of ids
  std::optional<Milliseconds> clock_skew{};  // its clock ahead of the registry's
  WallMs wall;                               // its clock now
  WallMs started;
  RegistryReport registry{};
  bool frozen = false;            // the cluster is, until an operator runs firn restore
  std::string sequencer;          // of snowflake ids: atomic, mutex or spin
  std::vector<TagReport> tags{};  // at most kTagsMax
  std::vector<RefusedTagReport> refused_tags{};  // at most kTagsMax
  size_t refused_tags_count = 0;                 // all of them
  std::string root_trouble{};  // why the registry's tags do not count; empty: they do
  std::string version;
  std::string build;

  static constexpr size_t kTagsMax = 1000;
};

// What the front door may say of the server that it belongs to. Thread-safe; never blocks.
class ServerView {
 public:
  virtual ~ServerView() = default;

  virtual ServerReport Report() const = 0;
  // Changes with every part of Report() but clocks, ages and counts. Costs little.
  virtual uint64_t version() const = 0;
  virtual ServerPhase phase() const = 0;
  // Why clients should not come, in words; empty when they should, and when an operator says why.
  virtual std::string why_not_ready() const { return {}; }
  // Why not even a tag that can issue ids is ready; empty: such a tag is.
  virtual std::string why_no_tag_is_ready() const { return {}; }
  virtual std::optional<MachineId> machine() const = 0;

  // Of the cluster; the same for the server's whole life.
  virtual const Layout& layout() const = 0;
  virtual RackSplit rack_split() const = 0;
  // When the first of its tags has no more ids: the layout's end, or earlier.
  virtual WallMs ids_end() const { return layout().end(); }

  virtual WallMs wall() const = 0;

  // The servers of the cluster; none are known where they are not read.
  virtual ShownServers servers() const { return {}; }

  // Everything that it knows of its cluster, as a document for `firn restore --from`.
  virtual std::string knowledge() const { return {}; }
};

// What an operator may do to a server through its admin door. Thread-safe; must not block.
class ServerControl {
 public:
  virtual ~ServerControl() = default;

  // Tells clients to use other servers, and to return. kUnavailable while the server is stopping or
  // the registry cannot be written.
  virtual Status GoOffline() = 0;
  virtual Status GoOnline() = 0;
};

}  // namespace firn::front
