// Holds machine ids in a registry and issues ids under them, for drills:
//
//   drill_claimant --registry=zk://... --state_dir=DIR --journal=PREFIX [--members=N] ...
//
// Member I writes every run of ids to PREFIX-I.runs before it uses it, and the status of its claim
// to PREFIX-I.status. On SIGTERM it releases the machine ids and exits with 0. If it cannot start,
// it exits with 1 and a message.

#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gflags/gflags.h>
#include <unistd.h>

#include "common/log/log.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/open/open_coordinator.h"
#include "registry/state/hint.h"
#include "registry/state/owner.h"
#include "registry/state/posix_state_folder.h"
#include "server/node/issuing_node.h"
#include "tests/drill/claimant/journal.h"

DEFINE_string(registry, "", "zk://... or dir://...");
DEFINE_string(state_dir, "", "folder of the hint");
DEFINE_string(grant_dir, "/dev/shm", "memory, in which the grant is kept");
DEFINE_string(journal, "", "where the files of members begin");
DEFINE_int32(members, 1, "how many claims are held; on ports from --port on");
DEFINE_int32(port, 7609, "part of the name in the registry; nothing listens");
DEFINE_int64(session_ms, 2'000, "session time-out");
DEFINE_int64(window_ms, 600'000, "how far a bound is moved ahead");
DEFINE_int64(probation_ms, 0, "from a claim to its first id");
DEFINE_int64(pause_us, 2'000, "between two rounds of calls");

namespace firn {
namespace {

volatile std::sig_atomic_t stop_asked = 0;

// A file to which each record is appended with one write, so that a kill cannot tear a line.
class AppendFile {
 public:
  explicit AppendFile(const std::string& path)
      : path_(path), file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (file_ < 0) Die("cannot open " + path_);
  }
  ~AppendFile() { close(file_); }
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void Append(const std::string& line) {
    if (write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      Die("cannot write " + path_);
    }
  }

 private:
  const std::string path_;
  const int file_;
};

// One claim and the ids that it issues.
class Member {
 public:
  Member(const std::string& journal, std::unique_ptr<IssuingNode> node)
      : runs_(journal + ".runs"), status_(journal + ".status"), node_(std::move(node)) {}

  // Makes a call, or a part of it, without waiting.
  void Round() {
    if (!begun_) {
      const auto tag = node_->issuer().Resolve("default");
      answer_ = tag == nullptr ? "UNKNOWN_TAG" : answer_;
      if (tag == nullptr) return;
      call_.Begin(*tag, request());
      begun_ = true;
    }
    const Verdict verdict = node_->issuer().Issue(call_);
    if (verdict == Verdict::kWait) return;
    if (verdict == Verdict::kIssued) {
      for (const IdRun& run : call_.runs().runs()) {
        runs_.Append(FormatRun({SystemClock().Boot(), run}));
      }
      answer_ = "issued";
    } else {
      answer_ = std::string(ReasonName(call_.refusal().reason)) + ": " + call_.refusal().message;
    }
    begun_ = false;
  }

  // Writes the status of the claim, if its kind has changed.
  void ShowStatus() {
    const ClaimStatus claim = node_->status().claim;
    const StatusLine line{.at = SystemClock().Boot(),
                          .state = std::string(ClaimStateName(claim.state)),
                          .machine = claim.machine,
                          .bound = claim.bound,
                          .connected = claim.connected,
                          .session = claim.session,
                          .answer = answer_,
                          .reason = claim.reason};
    StatusLine timeless = line;
    timeless.at = BootMs();
    if (FormatStatus(timeless) == shown_) return;
    shown_ = FormatStatus(timeless);
    status_.Append(FormatStatus(line));
  }

  void Stop() {
    node_->Stop();
    ShowStatus();
  }

 private:
  static Request request() { return {.tag = "default", .count = 8}; }

  AppendFile runs_;
  AppendFile status_;
  const std::unique_ptr<IssuingNode> node_;
  IssueCall call_;
  bool begun_ = false;
  std::string answer_ = "none";
  std::string shown_;
};

Result<std::unique_ptr<Member>> MakeMember(int number) {
  const auto port = static_cast<uint16_t>(FLAGS_port + number);
  FIRN_ASSIGN(const OwnerName owner, OwnerName::Make("drill", port, "127.0.0.1"));
  FIRN_ASSIGN(auto folder, PosixStateFolder::Open({.folder = FLAGS_state_dir,
                                                   .stem = owner.file_stem(),
                                                   .grant_dir = FLAGS_grant_dir}));
  FIRN_ASSIGN(auto coordinator,
              OpenCoordinator(FLAGS_registry, {.session_time = Milliseconds(FLAGS_session_ms)},
                              SystemClock(), SystemEntropy()));
  IssuingNodeOptions options;
  options.claim.identity = {.owner = owner.text(),
                            .endpoint = "127.0.0.1:" + std::to_string(port),
                            .host = "drill",
                            .pid = getpid(),
                            .build = "drill"};
  options.claim.session_timeout = Milliseconds(FLAGS_session_ms);
  options.claim.window = Milliseconds(FLAGS_window_ms);
  options.claim.probation = Milliseconds(FLAGS_probation_ms);
  options.claim.skew_max = Milliseconds(10'000);
  if (const auto text = folder->ReadHint(); text.ok()) {
    if (const auto hint = ParseHint(*text); hint.ok()) options.cluster_uuid = hint->uuid;
  }
  auto kept = std::make_unique<KeptTags>(FLAGS_state_dir + "/" + owner.file_stem());
  auto node = std::make_unique<IssuingNode>(options,
                                            IssuingNodeParts{.coordinator = std::move(coordinator),
                                                             .folder = std::move(folder),
                                                             .kept = std::move(kept)},
                                            SystemClock(), SystemEntropy());
  FIRN_TRY(node->Start());
  return std::make_unique<Member>(FLAGS_journal + "-" + std::to_string(number), std::move(node));
}

Status HoldAndIssue() {
  std::vector<std::unique_ptr<Member>> members;
  for (int i = 0; i < FLAGS_members; ++i) {
    FIRN_ASSIGN(auto member, MakeMember(i));
    members.push_back(std::move(member));
  }
  while (stop_asked == 0) {
    for (const auto& member : members) {
      member->Round();
      member->ShowStatus();
    }
    SleepFor(std::chrono::microseconds(FLAGS_pause_us));
  }
  std::vector<std::thread> stops;
  for (const auto& member : members) stops.emplace_back([&member] { member->Stop(); });
  for (std::thread& stop : stops) stop.join();
  return {};
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  firn::SendLogTo([](const firn::LogEntry& entry) { std::cerr << entry.text + "\n"; });
  std::signal(SIGTERM, [](int) { firn::stop_asked = 1; });
  const firn::Status status = firn::HoldAndIssue();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
