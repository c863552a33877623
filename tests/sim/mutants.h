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

// Errors of earlier drafts of the protocol. Each one is injected at a seam of the keeper (registry,
// files, user, random numbers) or in the operator, so the product contains no switch for any of
// them.
enum class Mutant {
  kNone,
  kNoVersionCheck,         // registry: sets a record without checking its version
  kTimeoutIsSuccess,       // registry: an unknown outcome is reported as ok
  kSetAgainOverForeign,    // registry: after a version conflict, sets the record at its new version
  kCopiedGrantTrusted,     // files: accepts a grant in any file, without checking its inode
  kNoncePerProcess,        // random numbers: all nonces of a process are equal
  kFloorWithoutMetaCheck,  // registry: drops the check of the root node from every multi
  kGrantWithoutMeta,       // files: accepts a grant for any version of the root node
  kLimitLowered,           // files: writes a lower L
  kReleaseBeforeVoid,      // files: voiding does nothing
  kReleaseToLast,          // user: reports one tick less as used
  kGrantSurvivesReboot,    // files: the grant is on the disk, and is accepted in any boot
  kInodeNumberOnly,        // files: accepts any creation time of the grant's file
  kLossNotVoided,          // files: voiding does nothing, except before a release
  kNumbersAreEnough,       // registry: assumes an unchanged record if V and Z are unchanged
  kBlindRenewal,           // registry: a surviving session does not report its new connection
  kFreezesAgain,           // registry: a holder sees no floor
  kQuietRecord,            // operator: a deleted record is re-created without a restore
  kNoEraCheck,             // registry: drops the check of the era from every multi
  kGrantOnDisk,         // files: the grant is on the disk, which may be rolled back within a boot
  kEarlyClockKept,      // user: the id clock stays at its first reading
  kInheritAtWallsWord,  // user: the id clock follows the wall clock and ignores the grant
  kOwnClockAsked,       // registry: its clock shows the caller's time
  kTwinUnnoticed,       // registry: treats a record with its own nonce as its own write
  kCopiesDrawAlike,     // random numbers: a copied process draws the same ones as the original
  kReadyByClaim,        // user: the holder of a claim reports that it is ready
  kRegistryClockRules,  // registry: renewals set their bound by any time that its clock shows
  kRestoredIsForeign,   // registry: a record that a restore re-created shows a foreign claim
  kLooksLate,           // registry: a loss of data is noticed only after two session timeouts
  kTagsWithoutRoot,     // registry: tags are followed without reading the root node
  kOfflineUnnamed,      // files: the grant forgets processes that started without the registry
  kCopyUnseen,          // files: a copied machine does not detect that it is a copy
  kOvertakenUnnamed,    // registry: omits the name of a process that lost its claim to a copy
  kHintWithoutClaim,    // files: the hint forgets its slot's claim and version
  kWriterForgotten,     // registry: records lack the id time of their writers
  kPlainVersions,       // registry: a version that has wrapped counts as older
  kDocumentsIgnored,    // operator: a restore ignores the backups
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
    {Mutant::kDocumentsIgnored, "documents-ignored"},
    {Mutant::kRegistryClockRules, "registry-clock-rules"},
    {Mutant::kRestoredIsForeign, "restored-is-foreign"},
    {Mutant::kLooksLate, "looks-late"},
    {Mutant::kTagsWithoutRoot, "tags-without-root"},
    {Mutant::kOfflineUnnamed, "offline-unnamed"},
};

// Changes a world so that it exposes the error soon.
void Favour(Mutant mutant, SimSizes& sizes);

// The version numbers that a write to a slot checks.
struct SlotNumbers {
  std::string path;
  int64_t meta_version = 0;
  int64_t version = 0;
};

// Sits between the keeper and the code that injects connection faults, and injects the mutants'
// errors of the registry. A process can die just before or after it sends a write, or be paused
// before it.
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

  // Checks an alarm that the process has raised. An alarm may report duplicate ids only if a
  // restore that the process has seen permits another claim to issue the same ids.
  void JudgeAlarm(const std::string& text) const;

  // Makes the process die at the `multis`-th write from now on, or at its next claim.
  void DieIn(int multis, bool before_it_is_sent) {
    dies_in_ = multis;
    dies_before_ = before_it_is_sent;
  }
  void DieAtClaim(bool before_it_is_sent) {
    dies_at_claim_ = true;
    dies_before_ = before_it_is_sent;
  }

  // Runs `meanwhile` before the next claim or renewal is sent.
  using Meanwhile = std::function<void(const SlotNumbers&)>;
  void StopBeforeNextClaimOrRenewal(Meanwhile meanwhile) { meanwhile_ = std::move(meanwhile); }

  // Sets the function that returns whether the process holds a claim now.
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
  std::map<std::string, int64_t> highest_;  // versions, compared without wrapping
  SlotRecord own_;                          // the record sent last
  SlotRecord renewed_;                      // the claim sent last, with its bound
  std::string own_path_;                    // path of its slot
  std::string own_uuid_;                    // uuid of the cluster in which it has claimed
  std::string shown_uuid_;                  // uuid in the root node, while it can be read
  WallMs shown_floor_;
  std::optional<SlotRecord> shown_record_;  // record of the held slot
  Meanwhile meanwhile_;
  int dies_in_ = 0;  // 0: never
  bool dies_at_claim_ = false;
  bool dies_before_ = false;
};

// Random numbers of a process whose nonces are all equal.
class StuckEntropy final : public Entropy {
 public:
  explicit StuckEntropy(uint64_t value) : value_(value | uint64_t{1} << 63) {}
  uint64_t Next() override { return value_; }

 private:
  const uint64_t value_;
};

}  // namespace firn
