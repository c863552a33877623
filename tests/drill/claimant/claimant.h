#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/drill/claimant/journal.h"
#include "tests/support/process.h"

namespace firn {

// Options of a claimant. The drill sets empty fields.
struct ClaimantOptions {
  std::string registry{};
  std::string state_dir{};
  std::string grant_dir{};
  std::string as{};  // its name in the registry; empty: the claimant's name
  int members = 1;
  Milliseconds session{2'000};
  Milliseconds window{600'000};
  Milliseconds probation{0};
  Milliseconds pause{2};
  std::optional<std::string> wall_clock_offset{};  // such as "-1h"
};

// One run of drill_claimant: the process, and its output so far. One thread.
class Claimant {
 public:
  // The output of one claim of the process.
  class Member {
   public:
    explicit Member(const std::string& journal)
        : run_lines_(journal + ".runs"), status_lines_(journal + ".status") {}

    void Refresh();

    const std::vector<IssuedRun>& runs() const { return runs_; }
    const std::vector<StatusLine>& statuses() const { return statuses_; }
    // The last status; its state is "none" before the first.
    StatusLine status() const;
    bool serving() const { return status().state == "holding" && status().answer == "issued"; }

   private:
    LineReader run_lines_;
    LineReader status_lines_;
    std::vector<IssuedRun> runs_;
    std::vector<StatusLine> statuses_;
  };

  // `port` is the unique part of its name; `folder` contains its output.
  Claimant(std::string name, const ClaimantOptions& options, int port, const std::string& folder);

  const std::string& name() const { return name_; }
  Process& process() { return process_; }
  BootMs launched() const { return launched_; }

  // These functions read new output first.
  Member& member(int i = 0);
  StatusLine status() { return member().status(); }
  bool serving() { return member().serving(); }
  size_t runs() { return member().runs().size(); }
  std::optional<MachineId> machine() { return status().machine; }
  int members() const { return static_cast<int>(members_.size()); }
  // Returns the number of members that hold a claim and issue ids.
  int serving_members();

  // Returns the first run of ids that it got, or nullopt if there is none yet.
  std::optional<IssuedRun> first_run();
  // Returns the longest time without ids from `from` to the last run.
  Milliseconds LongestStallSince(BootMs from);
  // Returns whether any call for ids was refused since `from`.
  bool RefusedSince(BootMs from);

  // Returns its log, with events and alarms.
  std::string Log() const;

 private:
  static std::vector<std::string> Command(const ClaimantOptions& options, int port,
                                          const std::string& journal);

  const std::string name_;
  const std::string journal_;
  const BootMs launched_;
  Process process_;
  std::vector<Member> members_;
};

}  // namespace firn
