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
  bool static_first_start = false;  // of static: the machine id was never used before
  bool static_clock_ok = false;  // of static: the wall clock is right, however far from the last id
  bool static_adopt = false;  // of static: the state folder was moved, and no copy of it is in use
  // The program's own folder, which stores its machine id. Never shared, never copied.
  std::string state_dir;
  // A folder in memory (a tmpfs), for the permission to continue after a crash.
  std::string grant_dir = "/dev/shm";
  // Identifies this program in audits; `instance` distinguishes its copies on one host.
  std::string application = "embedded";
  uint16_t instance = 1;
  std::string layout{};                // empty: the cluster's, or `firn` for a new one
  std::string default_strategy{};      // of undefined tags, for a new cluster: `snowflake`
  std::string registry_credentials{};  // user:password, for ZooKeeper
  Milliseconds session_timeout{10'000};
  Milliseconds claim_window{600'000};  // maximum time of issuing without the registry
  bool offline_start = true;           // resume the last claim while the registry is unreachable
  Milliseconds ready_within{10'000};   // how long Open waits for a machine id
  Milliseconds issue_wait{50};         // how long a call waits for the next tick or range; at least
                                       // 1 s if this program does not know its tag yet
  uint32_t rack = 0;                   // rack part of the machine id
  std::optional<uint32_t> worker{};    // its worker part: this one or none; empty: any
  bool strict_clock = false;           // no ids while the wall clock is behind that of the last one
  std::string key_dir{};               // keys of tags with the plugin `obfuscate`
  // Where tags with the plugin `history` are recorded; empty: nowhere, and such tags are refused.
  std::string history_file{};
  int64_t history_file_bytes_max = 64 << 20;  // size at which it is rotated
  int history_files_max = 8;                  // number of files that are kept
  // The program's own strategies, plugins, stores and handler of refusals.
  Extensions extensions{};
};

// Issues ids without a server: this program holds a machine id of its own.
//
//     auto ids = firn::Embedded::Open({.registry = "dir:///var/lib/shop/ids",
//                                      .state_dir = "/var/lib/shop/state"});
//     if (!ids.ok()) return Fail(ids.status());
//     firn::Result<int64_t> id = (*ids)->Next("order");
//
// A directory without a cluster gets one; a ZooKeeper needs `firn init` first. A new cluster has
// the tag `default`; `firn tags create` creates others.
//
// It writes nothing to the program's stderr: SendLogTo (common/log/log.h) sets where the log goes.
//
// Thread-safe. After fork() the child gets no ids: what it inherits is closed; open another one.
class Embedded {
 public:
  // kConflict: another process has the state folder or writes the history, or an extension has a
  // name that is taken. kUnavailable: no machine id in time, or no history can be written.
  static Result<std::unique_ptr<Embedded>> Open(const EmbeddedOptions& options);

  // Releases the machine id, as Close does.
  virtual ~Embedded() = default;

  // Returns one id. kNotFound: no such tag. kUnavailable: try again. kDenied: a plugin refused.
  virtual Result<int64_t> Next(std::string_view tag = "default") = 0;

  // Returns exactly `count` ids, in runs, or none. kInvalid: more than one call may request.
  virtual Result<std::vector<IdRun>> NextRuns(std::string_view tag, int64_t count) = 0;

  // Returns one id in the form of the tag's definition: `text`, or decimal. Otherwise as Next.
  virtual Result<std::string> NextText(std::string_view tag) = 0;

  // The machine id that ids contain now; kUnavailable while there is none, with the reason.
  virtual Result<MachineId> machine() const = 0;

  virtual const Layout& layout() const = 0;

  // Stops issuing and returns the machine id to the registry. Idempotent.
  virtual void Close() = 0;
};

}  // namespace firn
