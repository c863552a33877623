#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/time/entropy.h"
#include "registry/owners/owners.h"
#include "registry/seam/coordinator.h"
#include "server/issue/peer_take.h"
#include "server/issue/segment/owner_source.h"

namespace firn {

// How a program takes part in owning tags.
struct OwnersSetup {
  std::string address{};  // of this server, for the others; empty: it takes no part
  // Sends a take to the server at `address`; `done` as that of OwnerLink::Take.
  std::function<void(const std::string& address, PeerTake take, RangeSource::TakeDone done)> ask{};
  // Ends what `ask` has begun; no `done` is called afterwards.
  std::function<void()> stop{};
};

// What this server knows of the owners of tags, for people.
struct OwnersReport {
  std::map<std::string, std::string> tags{};  // address of each tag's owner; empty: none is known
  uint64_t owned = 0;                         // partitions that this server owns
  uint64_t taken_over = 0;                    // partitions, since the start
  uint64_t asked = 0;                         // takes that were sent to owners
  uint64_t answered = 0;                      // takes of other servers
};

// The tags with buffer = owner of one server: which server owns each of them, their numbers in
// memory here, and takes from one server to another. A take is never sent on.
//
// Add, Tick, HandOver: control thread. The others: any thread.
class TagOwners final : public OwnerLink {
 public:
  // References must outlive it.
  TagOwners(Coordinator& coordinator, Entropy& entropy, OwnersSetup setup);

  // Fails if this program takes no part.
  Status Check() const;
  const OwnedTerm& TermOf(const std::string& tag) const { return owners_.term(PartitionOf(tag)); }
  // `own` has the tag's numbers from now on.
  void Add(const TagDefinition& tag, const std::shared_ptr<OwnedNumbers>& own);

  void Tick(BootMs now);

  // Leaves the partitions to other servers, whose numbers it serves from then on.
  void HandOver() { owners_.HandOver(); }
  // After HandOver: no partition names this server. Any thread.
  bool handed_over() const { return !wanted_ || handed_over_; }

  void Take(const TagDefinition& tag, int64_t count, RangeSource::TakeDone done) override;
  bool Knows(const std::string& tag) const override { return !OwnerOf(tag).empty(); }

  // Ends the takes that have been sent to other servers. Once no strategy issues any more.
  void Stop() const {
    if (setup_.stop) setup_.stop();
  }

  // Answers another server's take. An empty range: it must ask again, perhaps another server.
  Result<Range> TakeFor(const PeerTake& take);

  // The address of the tag's owner; empty: none is known.
  std::string OwnerOf(const std::string& tag) const;
  OwnersReport report() const;

 private:
  struct Served {
    std::string form;
    std::weak_ptr<OwnedNumbers> own;
  };

  void Ended(size_t partition);
  std::string OwnerLocked(const std::string& tag) const;

  const OwnersSetup setup_;
  Owners owners_;
  std::atomic<bool> wanted_ = false, handed_over_ = false;

  mutable std::mutex mutex_;              // guards the members below
  std::map<std::string, Served> served_;  // by tag
  std::array<Holding, kPartitions> holdings_{};
  Nonce secret_;
  OwnersReport counts_;
};

}  // namespace firn
