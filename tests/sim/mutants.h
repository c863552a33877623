#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/cluster/records.h"
#include "tests/sim/sim_program.h"
#include "tests/sim/sim_sizes.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// Errors that earlier drafts of the protocol made. Each one is injected at one of the keeper's
// seams (registry, files, user, random numbers), so that the product has no switch for any of them;
// one is the operator's.
enum class Mutant {
  kNone,
  kNoVersionCheck,         // registry: sets whatever version is there
  kTimeoutIsSuccess,       // registry: an unknown outcome is reported as ok
  kSetAgainOverForeign,    // registry: a version conflict is answered by setting the new version
  kCopiedGrantTrusted,     // files: any inode that the grant names is accepted
  kNoncePerProcess,        // random numbers: always the same in one process
  kFloorWithoutMetaCheck,  // registry: drops the check of the root node from every multi
  kGrantWithoutMeta,       // files: any root version that the grant names is accepted
  kLimitLowered,           // files: a lower L is written
  kReleaseBeforeVoid,      // files: voiding does nothing
  kReleaseToLast,          // user: reports one tick less as used
  kGrantSurvivesReboot,  // files: the grant is on the disk, and any boot that it names is accepted
  kInodeNumberOnly,      // files: any creation time of the grant's file is accepted
  kLossNotVoided,        // files: voiding does nothing, except before a release
  kNumbersAreEnough,     // registry: if V and Z are as remembered, so is the record
  kBlindRenewal,         // registry: a surviving session does not report its new connection
  kFreezesAgain,         // registry: a holder sees no floor
  kQuietRecord,          // operator: a deleted record is re-created without a restore
  kNoEraCheck,           // registry: drops the check of the era from every multi
  kGrantOnDisk,          // files: the grant is on the disk, which goes back within a boot
  kEarlyClockKept,       // user: the id clock stays at its first reading
  kInheritAtWallsWord,   // user: the id clock follows the wall clock, whatever the grant says
  kOwnClockAsked,        // registry: its clock shows the caller's time
  kTwinUnnoticed,        // registry: a record with one's own nonce has one's own word
  kCopiesDrawAlike,      // random numbers: a copied process draws those of the first
  kReadyByClaim,         // user: the holder of a claim reports that it is ready
  kRegistryClockRules,   // registry: renewals set their bound by any time that its clock shows
  kRestoredIsForeign,    // registry: a record that a restore re-created shows another's claim
  kLooksLate,            // registry: its loss of data is noticed only after two session times
  kTagsWithoutRoot,      // registry: tags are followed without a look at the root node
  kOfflineUnnamed,       // files: the grant forgets processes that started without the registry
  kCopyUnseen,           // files: a copied machine does not see that it is one
  kOvertakenUnnamed,     // registry: a process that lost its claim to a copy is not named
  kHintWithoutClaim,     // files: the hint forgets its slot's claim and version
  kWriterForgotten,      // registry: records do not tell their writers' id time
  kPlainVersions,        // registry: a version that has wrapped reads as an older one
};

inline constexpr MutantRow<Mutant> kMutants[] = {
    {Mutant::kNoVersionCheck, "no-version-check"},
    {Mutant::kTimeoutIsSuccess, "timeout-is-success"},
    {Mutant::kSetAgainOverForeign, "set-again-over-foreign"},
    {Mutant::kCopiedGrantTrusted, "copied-grant-trusted"},
    {Mutant::kNoncePerProcess, "nonce-per-process"},
    {Mutant::kFloorWithoutMetaCheck, "floor-without-meta-check"},
    {Mutant::kGrantWithoutMeta, "grant-without-meta"},
    {Mutant::kLimitLowered, "limit-lowered"},
    {Mutant::kReleaseBeforeVoid, "release-before-void"},
    {Mutant::kReleaseToLast, "release-to-last"},
    {Mutant::kGrantSurvivesReboot, "grant-survives-reboot"},
    {Mutant::kInodeNumberOnly, "inode-number-only"},
    {Mutant::kLossNotVoided, "loss-not-voided"},
    {Mutant::kNumbersAreEnough, "numbers-are-enough"},
    {Mutant::kBlindRenewal, "blind-renewal"},
    {Mutant::kFreezesAgain, "freezes-again"},
    {Mutant::kQuietRecord, "quiet-record"},
    {Mutant::kNoEraCheck, "no-era-check"},
    {Mutant::kGrantOnDisk, "grant-on-disk"},
    {Mutant::kEarlyClockKept, "early-clock-kept"},
    {Mutant::kInheritAtWallsWord, "inherit-at-walls-word"},
    {Mutant::kOwnClockAsked, "own-clock-asked"},
    {Mutant::kTwinUnnoticed, "twin-unnoticed"},
    {Mutant::kCopiesDrawAlike, "copies-draw-alike"},
    {Mutant::kReadyByClaim, "ready-by-claim"},
    {Mutant::kCopyUnseen, "copy-unseen"},
    {Mutant::kOvertakenUnnamed, "overtaken-unnamed"},
    {Mutant::kHintWithoutClaim, "hint-without-claim"},
    {Mutant::kWriterForgotten, "writer-forgotten"},
    {Mutant::kPlainVersions, "plain-versions"},
    {Mutant::kRegistryClockRules, "registry-clock-rules"},
    {Mutant::kRestoredIsForeign, "restored-is-foreign"},
    {Mutant::kLooksLate, "looks-late"},
    {Mutant::kTagsWithoutRoot, "tags-without-root"},
    {Mutant::kOfflineUnnamed, "offline-unnamed"},
};

// Changes a world so that the error can show soon.
void Favour(Mutant mutant, SimSizes& sizes);

// The version numbers that a write to a slot checks.
struct SlotNumbers {
  std::string path;
  int64_t meta_version = 0;
  int64_t version = 0;
};

// Between the keeper and the code that breaks requests: injects the registry's errors. Here a
// process can die just before or after it has sent a write, or be stopped before it.
class SeamCoordinator final : public ForwardingCoordinator {
 public:
  // References must outlive the object.
  SeamCoordinator(Coordinator& inner, const MemoryTree& tree, const Clock& clock, Mutant mutant,
                  const Clock* registry_clock = nullptr)
      : ForwardingCoordinator(inner),
        tree_(tree),
        clock_(clock),
        registry_clock_(registry_clock),
        mutant_(mutant) {}

  // The process has raised this alarm. It may report duplicated ids only if a restore that it was
  // shown leaves another claim room for them.
  void JudgeAlarm(const std::string& text) const;

  // The process dies at the `multis`-th write from now on, or at its next claim.
  void DieIn(int multis, bool before_it_is_sent) {
    dies_in_ = multis;
    dies_before_ = before_it_is_sent;
  }
  void DieAtClaim(bool before_it_is_sent) {
    dies_at_claim_ = true;
    dies_before_ = before_it_is_sent;
  }

  // Runs this before the next claim or renewal is sent.
  using Meanwhile = std::function<void(const SlotNumbers&)>;
  void StopBeforeNextClaimOrRenewal(Meanwhile meanwhile) { meanwhile_ = std::move(meanwhile); }

  // Whether the process holds a claim now.
  void HoldsWhen(std::function<bool()> holds) { holds_ = std::move(holds); }

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;
  void OnSession(std::function<void(SessionEvent)> handler) override;

 private:
  void Send(std::vector<Write> writes, WriteDone done);
  void SendAndRemember(std::vector<Write> writes, WriteDone done);
  void AsRemembered(const std::string& path, Result<Node>& node);
  void NoteShown(const std::string& path, const Result<Node>& node);
  void AsForeign(const std::string& path, Node& node) const;
  void BoundByRegistryClock(Write& set) const;
  void WithOwnWord(Node& node) const;
  void WithPlainVersion(const std::string& path, Node& node);

  const MemoryTree& tree_;
  const Clock& clock_;  // of the process
  const Clock* registry_clock_;
  const Mutant mutant_;
  std::function<bool()> holds_ = [] { return false; };
  std::map<std::string, Node> remembered_;  // slots' records, as last read or set
  std::map<std::string, int64_t> highest_;  // versions, as plain numbers
  SlotRecord own_;                          // as sent last
  SlotRecord renewed_;                      // the claim that was sent last, with its bound
  std::string own_path_;                    // of its slot
  std::string own_uuid_;                    // of the cluster that it claimed in
  std::string shown_uuid_;                  // of the root node, while it can be read
  WallMs shown_floor_;
  std::optional<SlotRecord> shown_record_;  // of the slot that is held
  Meanwhile meanwhile_;
  int dies_in_ = 0;  // 0: not
  bool dies_at_claim_ = false;
  bool dies_before_ = false;
};

// A process that draws its nonce once.
class StuckEntropy final : public Entropy {
 public:
  explicit StuckEntropy(uint64_t value) : value_(value | uint64_t{1} << 63) {}
  uint64_t Next() override { return value_; }

 private:
  const uint64_t value_;
};

}  // namespace firn
