#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/dir/dir_tree.h"
#include "registry/seam/coordinator.h"
#include "registry/zk/zk_coordinator.h"

namespace firn {

// Options for opening a registry.
struct OpenOptions {
  std::string auth{};  // "user:password" for ZooKeeper; empty: none
  Milliseconds session_time{10'000};
  Milliseconds time_limit{5'000};
};

// The coordinator of a registry:
//
//   zk://host:port,host:port/firn/<cluster>   ZooKeeper; without a port 2181
//   dir:///path                               a directory of this host
//   dir:///path?adopt                         the same, moved there on purpose
//
// kInvalid with a sentence for any other text. A directory fails like DirCoordinator::Open;
// ZooKeeper is not contacted yet. `clock` and `entropy` must outlive the coordinator.
Result<std::unique_ptr<Coordinator>> OpenCoordinator(const std::string& text,
                                                     const OpenOptions& options, const Clock& clock,
                                                     Entropy& entropy);

// The coordinator of a ZooKeeper registry's whole ensemble: "/" is ZooKeeper's own root, so other
// programs find the nodes that are created there, and every client may write its persistent nodes.
// It has a separate session. kInvalid if `text` does not begin with zk://. `clock` must outlive the
// coordinator.
Result<std::unique_ptr<Coordinator>> OpenEnsemble(const std::string& text,
                                                  const OpenOptions& options, const Clock& clock);

// OpenCoordinator, or its replacement in a simulation.
using RegistryOpener = std::function<Result<std::unique_ptr<Coordinator>>(
    const std::string& text, const OpenOptions& options, const Clock& clock, Entropy& entropy)>;

// The part after "zk://": hosts, each with a port, and root. kInvalid with a sentence.
Result<ZkOptions> ParseZkPlace(std::string_view place);

// The part after "dir://". kInvalid with a sentence.
Result<DirOptions> ParseDirPlace(std::string_view place);

// Returns "user:password" from the content of a credentials file: its first line. kInvalid if it
// has no colon; the message does not contain the content.
Result<std::string> ParseCredentials(std::string_view content);

}  // namespace firn
