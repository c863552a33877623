#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/owners/owners.h"
#include "registry/seam/coordinator.h"
#include "server/issue/peer_take.h"
#include "server/issue/segment/owner_source.h"

namespace firn {

// The means with which a program can own tags.
struct OwnersSetup {
  std::string
      address{};     // this server's address for other servers; empty: this program cannot own tags
  bool tls = false;  // connections to this address use TLS
  // Sends a take to the server at `address`; `count` and `done` as in OwnerLink::Take.
  std::function<void(const std::string& address, PeerTake take, OwnerLink::Count count,
                     RangeSource::TakeDone done)>
      ask{};
  // Returns the addresses that `ask` could not reach in the last seconds, separated by commas.
  std::function<std::string()> unreachable{};
  // Ends all calls of `ask`; no `done` is called afterwards.
  std::function<void()> stop{};
};

// The owner of a tag's numbers. It is unknown if this server cannot reach it, or if it has not
// confirmed its tenure lately: the registry's node names an owner also while none may take numbers.
struct TagOwner {
  std::string address{};  // empty: unknown
  WallMs since{};         // by the registry's clock; 0: unknown
};

// A report on the owners of tags, for people.
struct OwnersReport {
  std::map<std::string, std::string> tags{};  // address of each tag's owner; empty: unknown
  uint64_t owned = 0;                         // number of partitions that this server owns now
  uint64_t taken_over = 0;                    // number of partitions taken over since the start
  uint64_t asked = 0;                         // number of takes sent to owners
  uint64_t answered = 0;                      // number of answered takes of other servers
};

// The tags with buffer = owner on one server: their owners, their numbers in this server's memory,
// and takes between servers. A server never forwards a take.
//
// Add, Tick, EndStart, HandOver: control thread. The others: any thread.
class TagOwners final : public OwnerLink {
 public:
  // References must outlive the object.
  TagOwners(Coordinator& coordinator, Entropy& entropy, const Clock& clock, OwnersSetup setup);

  // Fails if this program cannot own tags.
  Status Check() const;
  const OwnedTerm& TermOf(const std::string& tag) const { return owners_.term(PartitionOf(tag)); }
  // Adds a tag, or replaces its numbers: `own` has the tag's numbers from now on.
  void Add(const TagDefinition& tag, const std::shared_ptr<OwnedNumbers>& own);

  void Tick(BootMs now);

  // Returns whether this server has a tag that needs an owner. Any thread.
  bool has_tags() const;
  // Ends Starts(): this server has begun to serve calls. The first tag that is added later has
  // calls that wait for its owner.
  void EndStart() { is_serving_ = true; }

  // Hands the partitions over to other servers, from which this server takes numbers afterwards.
  void HandOver(bool waits = true) { owners_.HandOver(waits); }
  // After HandOver: returns whether no partition names this server any more. Any thread.
  bool handed_over() const { return !wanted_ || handed_over_; }
  // Returns whether another server may soon take the partitions; true before HandOver. Any thread.
  bool awaits_successor() const { return wanted_ && awaits_; }

  void Take(const TagDefinition& tag, Count count, RangeSource::TakeDone done) override;
  int64_t ChangeOf(const std::string& tag) const override;
  bool Starts() const override { return wanted_ && !has_looked_ && !is_serving_; }
  bool Knows(const std::string& tag) const override { return !OwnerOf(tag).address.empty(); }
  std::string Trouble(const std::string& tag) const override;

  // Ends the takes that have been sent to other servers. Call once no strategy issues numbers any
  // more.
  void Stop() const {
    if (setup_.stop) setup_.stop();
  }

  // Answers another server's take, as OwnerLink::Take. A take without a tag asks which partitions
  // this server's tenure owns now. The answer is a Confirmation; an empty range if it has no term,
  // perhaps not yet; or an error once its window is over.
  Result<Range> TakeFor(const PeerTake& take);

  TagOwner OwnerOf(const std::string& tag) const;
  OwnersReport report() const;

  // Maximum time for which Starts() is true: calls wait no longer for an owner.
  static constexpr Milliseconds kFirstLook = OwnerSource::kHold;
  // Not numbers of a tag: `begin` has a bit for each partition. Servers of an earlier version
  // answer 0, which does not say which.
  static Range Confirmation(int64_t partitions) { return {partitions, partitions + 1}; }
  static bool Confirms(Range answer, size_t partition) {
    return answer.begin == 0 || (answer.begin >> partition & 1) != 0;
  }
  // Time for which a confirmation counts. Owners are asked once a window.
  static constexpr Milliseconds kConfirmedFor = 2 * Beat::kWindow;

 private:
  // What the owner of a partition has answered.
  struct Tenant {
    enum class Said { kNothing, kValid, kOver };

    Tenant(const Holding& owner, BootMs valid_until)
        : secret(owner.secret), version(owner.version), until(valid_until) {}

    const Nonce secret;                       // of its tenure
    const int64_t version;                    // of the partition's node
    std::atomic<Said> said = Said::kNothing;  // since the last Tick; set on any thread
    BootMs until;  // counts as valid until then, unless it is unreachable
  };

  struct Served {
    std::string form;
    std::weak_ptr<OwnedNumbers> own;
  };

  void Ended(size_t partition);
  void Probe();
  TagOwner OwnerLocked(const std::string& tag) const;
  bool IsConfirmedLocked(size_t partition, BootMs now, bool starts);
  int64_t Owned() const;
  // Returns whether this server owns a partition, even if its window is over.
  bool HasTerm() const;

  const Clock& clock_;
  const OwnersSetup setup_;
  Owners owners_;
  std::atomic<bool> wanted_ = false, has_looked_ = false, is_serving_ = false;
  std::atomic<bool> handed_over_ = false, awaits_ = true;
  std::optional<BootMs> look_until_{};  // set at the first Tick after the first Add
  BootMs probe_at_;

  mutable std::mutex mutex_;              // guards the members below
  std::map<std::string, Served> served_;  // by tag
  std::array<Holding, kPartitions> holdings_{};
  std::array<bool, kPartitions> known_{};  // see TagOwner
  std::array<std::shared_ptr<Tenant>, kPartitions> tenants_{};
  std::string unreachable_;  // addresses, at the last Tick
  Nonce secret_;             // of this server's tenure
  std::string trouble_;
  OwnersReport counts_;
};

}  // namespace firn
