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

// How the registry that a text names is to be used.
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
// kInvalid with a sentence when the text is none of these; what DirCoordinator::Open says of a
// directory; ZooKeeper is not contacted yet. `clock` and `entropy` must outlive the coordinator.
Result<std::unique_ptr<Coordinator>> OpenCoordinator(const std::string& text,
                                                     const OpenOptions& options, const Clock& clock,
                                                     Entropy& entropy);

// OpenCoordinator, or what takes its place in a simulation.
using RegistryOpener = std::function<Result<std::unique_ptr<Coordinator>>(
    const std::string& text, const OpenOptions& options, const Clock& clock, Entropy& entropy)>;

// The part after "zk://": hosts, each with a port, and root. kInvalid with a sentence.
Result<ZkOptions> ParseZkPlace(std::string_view place);

// The part after "dir://". kInvalid with a sentence.
Result<DirOptions> ParseDirPlace(std::string_view place);

// "user:password" from the content of a credentials file: its first line. kInvalid when it has no
// colon; the message does not show the content.
Result<std::string> ParseCredentials(std::string_view content);

}  // namespace firn
