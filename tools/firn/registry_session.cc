#include "tools/firn/registry_session.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/base/secret_file.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/open/open_coordinator.h"
#include "tools/firn/flag_words.h"

DEFINE_string(registry, "dir://./firn-state/registry",
              "Registry of the cluster: zk://host:port,.../firn/<cluster> or dir:///path. If not "
              "given: the environment's FIRN_REGISTRY.");
DEFINE_string(registry_auth_file, "", "File with `user:password` for ZooKeeper.");
DEFINE_int32(timeout_ms, 5000, "Maximum time to wait for the registry, in milliseconds.");

namespace firn {

namespace {

// Returns $FIRN_REGISTRY, or "" if it is not set.
std::string RegistryOfEnvironment() {
  const char* const found = std::getenv("FIRN_REGISTRY");
  return found == nullptr ? "" : found;
}

std::string SourceOfRegistry() {
  const bool by_environment = !IsFlagSet("registry") && !RegistryOfEnvironment().empty();
  return by_environment ? "FIRN_REGISTRY" : SourceOf("registry");
}

// Returns false if `place` is a directory registry that does not exist. Returns true for any other
// registry, because only a connection shows whether it exists.
bool DirectoryExists(const std::string& place) {
  constexpr std::string_view kDir = "dir://";
  if (!place.starts_with("dir:///")) return true;
  const std::string path = place.substr(kDir.size(), place.find('?') - kDir.size());
  std::error_code error;
  return std::filesystem::exists(path + "/.firn", error) || error;
}

}  // namespace

bool RegistryIsNamed() {
  return !RegistryOfEnvironment().empty() || SourceOf("registry") != "the default";
}

std::string ChosenRegistry() {
  const std::string here = RegistryOfEnvironment();
  const std::string& text = IsFlagSet("registry") || here.empty() ? FLAGS_registry : here;
  constexpr std::string_view kDir = "dir://";
  constexpr std::string_view kHere = "dir://./";
  if (!text.starts_with(kHere)) return text;
  const auto path = std::filesystem::absolute(text.substr(kDir.size()));
  return std::string(kDir) + path.lexically_normal().string();
}

std::string ChosenCredentialsFile() {
  const std::string& path = FLAGS_registry_auth_file;
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

Result<std::string> ChosenCredentials() {
  const std::string& path = FLAGS_registry_auth_file;
  if (path.empty()) return std::string();
  FIRN_ASSIGN(const std::string content, ReadSecretFile(path));
  Result<std::string> credentials = ParseCredentials(content);
  if (!credentials.ok()) return credentials.status().WithContext(path);
  return credentials;
}

RegistrySession::RegistrySession(std::unique_ptr<Coordinator> coordinator)
    : coordinator_(std::move(coordinator)),
      blocking_(std::make_unique<BlockingCoordinator>(*coordinator_, SystemClock())) {}

Result<RegistrySession> RegistrySession::Open() {
  const std::string place = ChosenRegistry();
  if (!DirectoryExists(place)) {
    const std::string source = SourceOfRegistry();
    return NotFound(Cat("there is no registry at ", place, " (named by ", source,
                        "); name the cluster's with --registry, or create one with ",
                        PrintCommand(PrintedCommand::kInit)));
  }
  return Connect(place);
}

Result<RegistrySession> RegistrySession::OpenOrCreate() { return Connect(ChosenRegistry()); }

Result<RegistrySession> RegistrySession::OpenEnsemble() { return Connect(ChosenRegistry(), true); }

Result<RegistrySession> RegistrySession::Connect(const std::string& place, bool ensemble) {
  FIRN_ASSIGN(const std::string auth, ChosenCredentials());
  const Milliseconds patience(FLAGS_timeout_ms);
  const OpenOptions options{.auth = auth, .time_limit = patience};
  auto coordinator = ensemble ? ::firn::OpenEnsemble(place, options, SystemClock())
                              : OpenCoordinator(place, options, SystemClock(), SystemEntropy());
  if (!coordinator.ok()) return coordinator.status().WithContext(place);
  RegistrySession session(*std::move(coordinator));
  FIRN_TRY(session.registry().Connect(patience).WithContext(place));
  return session;
}

}  // namespace firn
