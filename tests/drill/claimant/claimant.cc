#include "tests/drill/claimant/claimant.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "common/base/status.h"

namespace firn {
namespace {

// The loader replaces $LIB by the folder of this architecture.
constexpr const char* kFakeTime = "/usr/$LIB/faketime/libfaketimeMT.so.1";

// Returns the environment of the process. Fakes only the wall clock, from a file that is re-read at
// each use.
std::map<std::string, std::string> Environment(const ClaimantOptions& options,
                                               const std::string& journal) {
  if (!options.wall_clock_offset) return {};
  const std::string file = journal + ".offset";
  std::ofstream(file) << *options.wall_clock_offset << "\n";
  return {
      {"LD_PRELOAD", kFakeTime},
      {"FAKETIME_TIMESTAMP_FILE", file},
      {"FAKETIME_NO_CACHE", "1"},
      {"FAKETIME_DONT_FAKE_MONOTONIC", "1"},
      {"NO_FAKE_STAT", "1"},  // real creation times, by which the server recognises its own files
      {"ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0"}};
}

}  // namespace

void Claimant::Member::Refresh() {
  for (const std::string& line : run_lines_.Next()) runs_.push_back(ParseRun(line).value());
  for (const std::string& line : status_lines_.Next()) {
    statuses_.push_back(ParseStatus(line).value());
  }
}

StatusLine Claimant::Member::status() const {
  if (!statuses_.empty()) return statuses_.back();
  StatusLine none;
  none.state = "none";
  return none;
}

Claimant::Claimant(std::string name, const ClaimantOptions& options, int port,
                   const std::string& folder)
    : name_(std::move(name)),
      journal_(folder + "/" + name_),
      launched_(TestNow()),
      process_(Command(options, port, journal_),
               {.environment = Environment(options, journal_), .output_file = journal_ + ".log"}) {
  for (int i = 0; i < options.members; ++i) {
    members_.emplace_back(journal_ + "-" + std::to_string(i));
  }
}

std::vector<std::string> Claimant::Command(const ClaimantOptions& options, int port,
                                           const std::string& journal) {
  return {BuiltProgram("drill_claimant"),
          "--registry=" + options.registry,
          "--state_dir=" + options.state_dir,
          "--grant_dir=" + options.grant_dir,
          "--journal=" + journal,
          "--port=" + std::to_string(port),
          "--members=" + std::to_string(options.members),
          "--session_ms=" + std::to_string(options.session.count()),
          "--window_ms=" + std::to_string(options.window.count()),
          "--probation_ms=" + std::to_string(options.probation.count()),
          "--pause_us=" + std::to_string(std::chrono::microseconds(options.pause).count())};
}

Claimant::Member& Claimant::member(int i) {
  Member& found = members_.at(static_cast<size_t>(i));
  found.Refresh();
  return found;
}

int Claimant::serving_members() {
  int serving = 0;
  for (int i = 0; i < members(); ++i) serving += member(i).serving() ? 1 : 0;
  return serving;
}

std::optional<IssuedRun> Claimant::first_run() {
  const auto& runs = member().runs();
  if (runs.empty()) return std::nullopt;
  return runs.front();
}

Milliseconds Claimant::LongestStallSince(BootMs from) {
  Milliseconds longest{0};
  BootMs last = from;
  for (const IssuedRun& issued : member().runs()) {
    if (issued.at < from) continue;
    longest = std::max(longest, issued.at - last);
    last = issued.at;
  }
  return longest;
}

bool Claimant::RefusedSince(BootMs from) {
  const auto& statuses = member().statuses();
  return std::any_of(statuses.begin(), statuses.end(), [&](const StatusLine& status) {
    return status.at >= from && status.answer != "issued";
  });
}

std::string Claimant::Log() const {
  std::ifstream file(journal_ + ".log", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace firn
