#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"
#include "server/issue/runs.h"
#include "server/node/extensions.h"

namespace firn {

struct EmbeddedOptions {
  // dir:///path for the programs of one host, zk://host:port,.../firn/<cluster> for a cluster,
  // static:<id> for a machine id that the caller guarantees to be unused elsewhere.
  std::string registry;
  bool static_first_start = false;  // static: the machine id was never used before
  bool static_clock_ok = false;     // static: trust the wall clock, however far from the last id
  bool static_adopt = false;  // static: the state folder was moved, and no copy of it is in use
  // The program's own folder, which stores its machine id. Must not be shared or copied.
  std::string state_dir;
  // A folder in memory (tmpfs) for the grant, from which the program resumes its claim after a
  // crash.
  std::string grant_dir = "/dev/shm";
  // Identifies this program in audits; `instance` distinguishes its copies on one host.
  std::string application = "embedded";
  uint16_t instance = 1;
  std::string layout{};                // empty: the cluster's layout, or `firn` for a new cluster
  std::string default_strategy{};      // for undefined tags of a new cluster: `snowflake`
  std::string registry_credentials{};  // user:password, for ZooKeeper
  Milliseconds session_timeout{10'000};
  Milliseconds claim_window{600'000};  // how long ids can be issued without the registry
  bool offline_start = true;           // resume the last claim while the registry is unreachable
  Milliseconds ready_within{10'000};   // how long Open waits for a machine id
  Milliseconds issue_wait{50};         // how long a call waits for the next tick or range; at least
                                       // 1 s if this program does not know its tag yet
  uint32_t rack = 0;                   // rack part of the machine id
  std::optional<uint32_t> worker{};    // claims exactly this worker part; empty: any
  bool strict_clock = false;           // issue no ids while the wall clock is behind the last id
  std::string key_dir{};               // keys of tags with the plugin `obfuscate`
  // File that records the ids of tags with the plugin `history`. Empty: such tags are refused.
  std::string history_file{};
  int64_t history_file_bytes_max = 64 << 20;  // size at which the file is rotated
  int history_files_max = 8;                  // number of files kept
  // The program's own strategies, plugins, stores and rejection handler.
  Extensions extensions{};
};

// Issues ids without a server: this program itself holds a machine id.
//
//     auto ids = firn::Embedded::Open({.registry = "dir:///var/lib/shop/ids",
//                                      .state_dir = "/var/lib/shop/state"});
//     if (!ids.ok()) return Fail(ids.status());
//     firn::Result<int64_t> id = (*ids)->Next("order");
//
// Opening an empty directory creates a cluster in it; ZooKeeper requires `firn init` first. A new
// cluster has the tag `default`; `firn tags create` creates others.
//
// Nothing is written to the program's stderr. SendLogTo (common/log/log.h) sets the destination of
// the log.
//
// Thread-safe. After fork() the child's copy is closed and issues no ids; the child must open
// another.
class Embedded {
 public:
  // kConflict: another process uses the state folder or the history file, or an extension's name is
  // in use. kUnavailable: no machine id within `ready_within`, or the history file cannot be
  // written.
  static Result<std::unique_ptr<Embedded>> Open(const EmbeddedOptions& options);

  // Releases the machine id, as Close does.
  virtual ~Embedded() = default;

  // Returns one id. kNotFound: no such tag. kUnavailable: retry. kDenied: a plugin refused the
  // call.
  virtual Result<int64_t> Next(std::string_view tag = "default") = 0;

  // Returns exactly `count` ids as runs, or an error. kInvalid: `count` exceeds the maximum of one
  // call.
  virtual Result<std::vector<IdRun>> NextRuns(std::string_view tag, int64_t count) = 0;

  // Like Next, in the text form of the tag's definition; decimal if it has none.
  virtual Result<std::string> NextText(std::string_view tag) = 0;

  // Returns the machine id of new ids; kUnavailable with the reason if there is none.
  virtual Result<MachineId> machine() const = 0;

  virtual const Layout& layout() const = 0;

  // Stops issuing and returns the machine id to the registry. Idempotent.
  virtual void Close() = 0;
};

}  // namespace firn
