#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/sequence/owned_term.h"
#include "common/time/entropy.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/records.h"
#include "registry/owners/candidates.h"
#include "registry/owners/owner_records.h"
#include "registry/owners/sighting.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/callback_guard.h"
#include "registry/seam/coordinator.h"

namespace firn {

struct OwnersOptions {
  std::string address;  // of this server, for the others
  Milliseconds window = Beat::kWindow;
};

// The owner of a partition as this server knows it.
struct Holding {
  enum class Kind { kUnknown, kNobody, kOther, kHere };

  Kind kind = Kind::kUnknown;
  int64_t version = 0;    // of the partition's node: of two answers, the later one has the higher
  std::string address{};  // kOther
  Nonce secret{};         // kOther: of its tenure; zero until its beat has been read
  uint64_t term = 0;      // kHere
  BootMs until{};         // kHere: unless it is extended, the term is over then

  friend bool operator==(const Holding&, const Holding&) = default;
};

// Decides, with the other servers of a cluster, which of them owns each partition: at any real time
// at most one server may take numbers of a partition. README.md has the argument.
//
//  1. A tenure begins with the creation of a beat, and is renewed each third of its window by a set
//     at the known version. The same multi checks the root node, the era, that the tenure has not
//     ended, and the last change of every partition that this server owns.
//  2. Terms are valid until (boot clock when the last acknowledged renewal was sent) + window.
//  3. After an unknown outcome the beat is read back. The old word: the same bytes are sent again.
//     The word that was sent: its version is adopted, the next renewal is due, and nothing is
//     counted. Any other: another process writes this beat (a copy of this one, or one that ended
//     the tenure), so the tenure ends. So it does if a multi is refused, except because of a root
//     node that still has the same uuid and era and is not frozen.
//  4. After its window a tenure continues only in the session of its last acknowledgement. If that
//     has ended, so does the tenure, and another one begins.
//  5. A partition without an owner is taken. One with an owner is taken once the owner's beat has
//     ended, or has been seen in one version for 1.25 of its windows without a break in one
//     session; one whose node or beat is missing, after 1.25 of the longest windows. The multi ends
//     the beat at the version that was seen, checks the beat of this server, sets the partition at
//     its version, and exchanges the node of its change. The name of a change is drawn for each
//     attempt.
//  6. A term begins when the partition is read with the change that this tenure attempted last. It
//     ends with the tenure, or when it is given up. The tenure ends when a partition that it owns
//     is read with another change, or when a renewal is refused because the change's node is
//     missing.
//  7. Hand over: the term ends, `ended` returns, and only then is the partition set to nobody.
//  8. A tenure that ends here ends its beat, at the version that it knows, so that others need not
//     wait. A beat that no partition names is erased once it has not changed for 1.25 of the
//     longest windows; one that has ended, after two windows, in which every partition is read.
//
// Nothing is read or written before Want(). Owned by the control thread, except the terms.
class Owners {
 public:
  // Delays of later candidates: after a time without a sign of life, and for a free partition.
  static constexpr Milliseconds kRankDelay{300}, kFreeRankDelay{20};
  static constexpr size_t kRankMax = 10;

  // Called when a term of this partition has ended: what was taken for it must not be issued any
  // more when it returns, and what is still requested must not be used. Must not call back.
  using Ended = std::function<void(size_t partition)>;

  // References must outlive it.
  Owners(Coordinator& coordinator, Entropy& entropy, OwnersOptions options, Ended ended);

  // Does everything that is due. Call it about every 10 ms. `now` must be read after the
  // coordinator's Dispatch has returned: what an answer shows was so before `now`, and what is sent
  // here is sent after it.
  void Tick(BootMs now);

  // Some tag needs an owner: from now on the registry is read and partitions are taken. Call it
  // when such a tag is loaded, not at its first use, which would wait for 3.75 s in a new cluster.
  void Want() { wanted_ = true; }
  // Whether other servers can reach this one, so that it may take partitions. At first it may not.
  void Permit(bool permitted) { permitted_ = permitted; }

  // Ends all terms and leaves their partitions to others. Takes none any more.
  void HandOver() { leaving_ = true; }
  // After HandOver: no partition names this server.
  bool handed_over() const { return leaving_ && !tenure_ && !past_ && !write_.busy(); }

  Holding At(size_t partition) const;
  const OwnedTerm& term(size_t partition) const { return shares_[partition].term; }

  // Returns the check that a write belongs to this term; empty if it has ended.
  std::optional<Write> GuardOf(size_t partition, uint64_t term) const;

  // The secret of this server's tenure, which others send with their requests; zero: none.
  Nonce secret() const { return tenure_ ? tenure_->beat.secret : Nonce(); }
  // Why the last tenure ended, or none could begin; empty: it has one.
  const std::string& trouble() const { return trouble_; }

 private:
  // The root node of the cluster as it was read.
  struct Root {
    int64_t version;
    std::string uuid;
    Nonce era;
  };

  // This server's tenure.
  struct Tenure {
    Nonce name;
    Beat beat;                    // at `version`
    int64_t version = 0;          // of the beat
    int64_t session = 0;          // of the last acknowledgement
    BootMs until{};               // rule 2
    std::optional<Nonce> next{};  // the word of the next version, once it has been sent
    bool unsure = false;          // a set of it may have been applied, or may still be
  };

  // One partition.
  struct Share {
    bool stale = true;  // must be read
    Sighting sighting{};
    Result<PartitionOwner> owner = Unavailable("not read yet");
    std::optional<Nonce> change{};  // that this tenure attempted last, until it is given up
    bool here = false;              // a term runs, which began with that change
    OwnedTerm term{};
    BootMs try_at{};  // no takeover before
  };

  // The beat of another tenure.
  struct OtherBeat {
    Sighting sighting{};
    Result<Beat> beat = Unavailable("not read yet");
  };

  // --- owners.cc: partitions ---------------------------------------------------------------------
  std::optional<Task<>> NextWrite();
  bool IsNamed(const Share& share) const;
  bool MayBeNamed(const Nonce& tenure) const;
  std::vector<std::string> Candidates() const;
  std::optional<std::vector<Write>> TakingOf(size_t partition,
                                             const std::vector<std::string>& candidates);
  void AddChange(std::vector<Write>& writes, size_t partition, PartitionOwner owner) const;
  Write ChangeCheck(size_t partition) const;
  bool AddEnd(std::vector<Write>& writes, size_t partition, Milliseconds late) const;
  Task<> TakeOver(size_t partition, std::vector<Write> writes);
  Task<> GiveUp(size_t partition);
  void BeginTerm(Share& share);
  void EndTerm(size_t partition);
  void ReadSoon(size_t partition);

  // --- owners_beat.cc: the tenure ----------------------------------------------------------------
  Task<> BeginTenure();
  Task<> MakeFolders();
  Task<> Renew();
  Task<> EndBeat();
  Task<> EraseBeat(std::vector<Write> writes);
  std::optional<Task<>> Sweep(const std::vector<std::string>& candidates);
  Task<bool> ReadBack();
  Task<bool> ReadRoot();
  std::vector<Write> RenewalOf(const Nonce& word, size_t* set) const;
  void JudgeRefusal(const Written& answer, size_t set);
  void Acknowledge(BootMs sent, int64_t session, int64_t version);
  void EndTenure(const std::string& why);
  void RenewSoon() { renew_at_ = registry_.now() + options_.window / 12; }
  bool has_lapsed() const { return registry_.now() >= tenure_->until; }

  // --- owners_look.cc: what others do ------------------------------------------------------------
  Task<> Look();
  Task<bool> ReadPartition(size_t partition);
  void See(size_t partition, const Result<Node>& node);
  std::vector<Nonce> OthersTenures() const;
  void AddListed(const std::vector<std::string>& names, std::vector<Nonce>& tenures) const;

  // How long a beat is seen unchanged before its tenure counts as over. The clocks of two servers
  // may run at rates that are each off by a tenth: then the window of the one may last 1.22 of the
  // other's.
  static constexpr Milliseconds Margin(Milliseconds window) { return window + window / 4; }

  Milliseconds look_every() const { return options_.window / 4; }
  Milliseconds gap_max() const { return 2 * options_.window; }

  AsyncRegistry registry_;  // outlives the tasks
  Entropy& entropy_;
  const OwnersOptions options_;
  const Ended ended_;
  bool wanted_ = false, permitted_ = false, leaving_ = false;

  std::optional<Root> root_;
  std::optional<Tenure> tenure_;
  std::optional<Tenure> past_;  // it has ended here, and its beat has not been ended yet
  std::array<Share, kPartitions> shares_;
  std::map<Nonce, OtherBeat> beats_;  // of other tenures: all, and those that partitions name
  uint64_t terms_ = 0;                // ever
  std::string trouble_;
  BootMs renew_at_, look_at_, list_at_, sweep_at_;
  size_t next_partition_ = 0;   // is read in the next look
  int64_t synced_session_ = 0;  // the session in which the registry was synced before a look
  BootMs synced_at_;
  CallbackGuard guard_;
  Task<> write_, look_;
};

}  // namespace firn
