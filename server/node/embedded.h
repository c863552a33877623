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
  // static:<id> for a machine id that nobody else has, which is then the caller's promise.
  std::string registry;
  bool static_first_start = false;  // of static: the machine id was never used before
  bool static_clock_ok = false;  // of static: the wall clock is right, however far from the last id
  bool static_adopt = false;  // of static: the state folder was moved, and no copy of it is in use
  // The program's own folder, where it remembers its machine id. Never shared, never copied.
  std::string state_dir;
  // Memory, a tmpfs, in which the permission to go on after a crash is kept.
  std::string grant_dir = "/dev/shm";
  // Tells this program from others in audits; `instance` tells its copies on one host apart.
  std::string application = "embedded";
  uint16_t instance = 1;
  std::string layout{};                // empty: the cluster's, or `firn` where one is made
  std::string default_strategy{};      // of undefined tags, where a cluster is made: `snowflake`
  std::string registry_credentials{};  // user:password, for ZooKeeper
  Milliseconds session_timeout{10'000};
  Milliseconds claim_window{600'000};  // how long it may go on without its registry, at most
  bool offline_start = true;           // go on inside the last claim while the registry is away
  Milliseconds ready_within{10'000};   // how long Open waits for a machine id
  Milliseconds issue_wait{50};         // how long a call waits for the next tick or range
  uint32_t rack = 0;                   // rack part of the machine id
  std::optional<uint32_t> worker{};    // its worker part: this one or none; empty: any
  bool strict_clock = false;           // no ids while the wall clock is behind that of the last one
  std::string key_dir{};               // of the keys of tags with the plugin `obfuscate`
  // Where tags with the plugin `history` are recorded; empty: nowhere, and such tags are refused.
  std::string history_file{};
  int64_t history_file_bytes_max = 64 << 20;  // before it is turned over
  int history_files_max = 8;                  // that are kept
  // The program's own strategies, plugins, stores and handler of refusals.
  Extensions extensions{};
};

// Ids without a server: this program holds a machine id of its own.
//
//     auto ids = firn::Embedded::Open({.registry = "dir:///var/lib/shop/ids",
//                                      .state_dir = "/var/lib/shop/state"});
//     if (!ids.ok()) return Fail(ids.status());
//     firn::Result<int64_t> id = (*ids)->Next("order");
//
// A directory that holds no cluster yet becomes one; a ZooKeeper needs `firn init` first. A cluster
// is made with the tag `default`; others are made with `firn tags create`.
//
// It writes nothing on the program's stderr: SendLogTo (common/log/log.h) says where the log goes.
//
// Thread-safe. After fork() the child gets no ids: what it inherits is closed; open another one.
class Embedded {
 public:
  // kConflict: another process has the state folder or writes the history, or an extension has a
  // name that is taken. kUnavailable: no machine id in time, or no history can be written.
  static Result<std::unique_ptr<Embedded>> Open(const EmbeddedOptions& options);

  // Gives the machine id back, as Close does.
  virtual ~Embedded() = default;

  // One id. kNotFound: no such tag. kUnavailable: not now, try again. kDenied: a plugin said no.
  virtual Result<int64_t> Next(std::string_view tag = "default") = 0;

  // Exactly `count` ids, in runs, or none. kInvalid: more than one call may have.
  virtual Result<std::vector<IdRun>> NextRuns(std::string_view tag, int64_t count) = 0;

  // One id as the tag's definition writes it: `text`, or decimal. As Next otherwise.
  virtual Result<std::string> NextText(std::string_view tag) = 0;

  // The machine id that ids carry at the moment; kUnavailable while there is none, and why.
  virtual Result<MachineId> machine() const = 0;

  virtual const Layout& layout() const = 0;

  // From now on nothing is issued; the machine id goes back to the registry. Idempotent.
  virtual void Close() = 0;
};

}  // namespace firn
