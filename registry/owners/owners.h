#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
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
  bool tls = false;     // connections to this address use TLS
  Milliseconds window = Beat::kWindow;
};

// The owner of a partition as this server knows it.
struct Holding {
  // kLapsed: this server, whose window is over. The term may continue.
  enum class Kind { kUnknown, kNobody, kOther, kHere, kLapsed };

  Kind kind = Kind::kUnknown;
  int64_t version = 0;  // of the partition's node: a later answer has a higher one
  WallMs since{};  // kOther, kHere: when the owner took it, by the registry's clock; 0: unknown
  std::string address{};      // kOther
  Nonce secret{};             // kOther: of its tenure; zero until its beat has been read
  std::optional<bool> tls{};  // kOther: see Beat
  uint64_t term = 0;          // kHere
  BootMs until{};             // kHere: end of the term, unless it is extended

  friend bool operator==(const Holding&, const Holding&) = default;
};

// Decides, with the other servers of a cluster, which of them owns each partition: at any real time
// at most one server takes numbers of a partition. README.md has the argument.
//
//  1. A tenure begins when this server creates its beat. Each third of the window a renewal sets
//     the beat at its known version. The same multi checks the root node, the era, the node
//     `alive`, and for every owned partition the node of its last change.
//  2. A term is valid until the boot time at which the last acknowledged renewal was sent, plus the
//     window.
//  3. After an unknown outcome this server reads its beat back. If the beat has the old word, a
//     renewal with another word is sent. If it has a word that this server sent, this server adopts
//     the version and renews at once, and the unknown renewal extends no term. Any other word was
//     written by another process, a copy of this one or a server that ended the tenure: the tenure
//     ends. Each attempt has a new word, so after a copy only one of the two is acknowledged. A
//     refused multi also ends the tenure, unless only the root node has changed, with the same uuid
//     and era and without a freeze.
//  4. After its window a tenure continues only in the session of its last acknowledgement. In a new
//     session it ends, and another one begins.
//  5. A partition may be taken if it is free, if its owner's beat has ended, or if that beat was
//     seen in one version for 1.25 of its windows, without a break, in one session. If the
//     partition or the beat is missing, 1.25 of the longest windows are required. The multi sets
//     the owner's beat to ended at the version that was seen, or checks that an ended tenure has no
//     node `alive`; checks this server's beat; sets the partition at its version; erases the node
//     of the partition's last change; and creates that of this change. Each attempt draws a new
//     name for its change.
//  6. A term begins when the partition is read with the last change that this tenure attempted. It
//     ends with the tenure, or when this server gives the partition up. The tenure ends if a read
//     shows an owned partition with another change, or if the change's node is missing at a
//     renewal.
//  7. To give a partition up, this server ends the term, calls `ended`, and then sets the partition
//     to free, unless another process has written its beat. A server that leaves sets `leaving` in
//     its beat, and reads all beats once this is acknowledged. Until it stops, it keeps its
//     partitions, and takes those of others, while no other server may take them: each one
//     leaves, too, or is `young` (its session is new), or has not renewed its beat since that read.
//     Of two servers that leave, at least one sees `leaving` in the other's beat. This one takes a
//     partition that was given up for it.
//  8. A server that ends its own tenure sets its beat to ended, at the version that it knows, so
//     that others need not wait. A beat that no partition names is erased: if it has ended, after
//     two windows, in which every partition is read; otherwise after 1.25 of its windows without
//     a change.
//  9. A beat lists the addresses that its server cannot reach. If most of the other beats list this
//     server for two windows in which it owns partitions, and it reaches their servers, it gives
//     its partitions up. For kAvoided it then waits for a window longer before it takes a
//     partition that another server may take.
//
// Reads and writes nothing before Want(). Owned by the control thread, except the terms.
class Owners {
 public:
  // Delays of later candidates, for each rank: for a partition with an owner, and for a free one.
  static constexpr Milliseconds kRankDelay{300}, kFreeRankDelay{20};
  static constexpr size_t kRankMax = 10;
  static constexpr Milliseconds kAvoided{600'000};

  // Called when a term of this partition has ended. When it returns, no range of that term may be
  // issued, and no answer to an earlier request used. Must not call this object.
  using Ended = std::function<void(size_t partition)>;

  // References must outlive it.
  Owners(Coordinator& coordinator, Entropy& entropy, OwnersOptions options, Ended ended);

  // Does everything that is due. Call it about every 10 ms. Read `now` after the coordinator's
  // Dispatch has returned: then every answer arrived before `now`, and every request leaves after.
  void Tick(BootMs now);

  // Starts to read the registry and to take partitions. Call it when the first tag that needs an
  // owner is loaded: in a new cluster its first use would wait for 3.75 s.
  void Want() { wanted_ = true; }
  // Permits this server to take partitions, once other servers can reach it. Default: not
  // permitted.
  void Permit(bool permitted) { permitted_ = permitted; }

  // Sets the addresses that this server cannot reach, separated by commas.
  void Report(std::string unreachable) {
    unreachable_ = std::move(unreachable);
    unreachable_.resize(std::min(unreachable_.size(), Beat::kUnreachableBytesMax));
  }
  // Returns the addresses of servers that cannot reach this one.
  const std::vector<std::string>& listed_by() const { return listed_by_; }
  // Returns whether the server at the address uses TLS, as its beat says.
  std::optional<bool> TlsOf(const std::string& address) const;

  // Ends all terms and frees their partitions: if it waits, once another server that stays may
  // take them, otherwise at once.
  void HandOver(bool waits = true) {
    if (waits && !leaving_) renew_at_ = BootMs();
    leaving_ = true;
    waits_ = waits;
    look_at_ = BootMs();
  }
  // After HandOver: no partition names this server.
  bool handed_over() const { return leaving_ && !tenure_ && !past_ && !write_.busy(); }
  // Returns whether another server that stays may soon take the partitions of this one; true before
  // HandOver.
  bool awaits_successor() const;

  // Returns whether all partitions and the beats of their owners have been read since Want().
  bool has_looked() const { return has_looked_; }
  Holding At(size_t partition) const;
  const OwnedTerm& term(size_t partition) const { return shares_[partition].term; }

  // Returns the secret of this server's tenure, which others send with their requests; zero: none.
  Nonce secret() const { return tenure_ ? tenure_->beat.secret : Nonce(); }
  // Returns why this server owns no partitions; empty: it may own some.
  std::string trouble() const {
    if (!trouble_.empty()) return trouble_;
    if (tenure_ && has_lapsed()) return "the registry does not acknowledge this server's renewals";
    const bool owns = std::ranges::any_of(shares_, &Share::here);
    const bool waits = tenure_ && !owns && registry_.session() != 0 && is_young();
    if (waits) return "this server's session is too new to take partitions";
    return is_avoided() ? "most other servers cannot reach this one" : "";
  }

 private:
  // The cluster's root node, as last read.
  struct Root {
    int64_t version;
    std::string uuid;
    Nonce era;
  };

  // This server's tenure.
  struct Tenure {
    Nonce name;
    Beat beat;                   // at `version`
    int64_t version = 0;         // of the beat
    int64_t session = 0;         // of the last acknowledgement
    BootMs until{};              // rule 2
    std::vector<Nonce> words{};  // of renewals at `version` that were sent, and not refused
    bool unsure = false;         // a renewal with an unknown outcome may still be applied
  };

  // One partition.
  struct Share {
    bool stale = true;     // must be read
    bool changed = false;  // it may have changed since the last read was sent
    Sighting sighting{};
    Result<PartitionOwner> owner = Unavailable("not read yet");
    WallMs modified{};
    std::string left{};             // address of the latest owner, which may have given it up
    std::optional<Nonce> change{};  // last attempt of this tenure to take it; empty once given up
    bool here = false;              // a term runs, which began with that change
    OwnedTerm term{};
    BootMs try_at{};  // no takeover before
  };

  // The beat of another tenure.
  struct OtherBeat {
    Sighting sighting{};
    Result<Beat> beat = Unavailable("not read yet");
    std::optional<Sighting::State> when_leaving{};  // in the first read after this server's beat
                                                    // said `leaving`
  };

  // --- owners.cc: partitions ---------------------------------------------------------------------
  std::optional<Task<>> NextWrite();
  bool IsNamed(const Share& share) const;
  bool MayBeNamed(const Nonce& tenure) const;
  bool IsRenewed(const OtherBeat& other) const;
  bool Stays(const OtherBeat& other) const;
  bool HasCompany() const;
  bool Leaves() const;
  bool MayTake(const OtherBeat& other) const;
  std::vector<std::string> Candidates() const;
  std::vector<std::string> Successors(const std::string& left) const;
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
  std::vector<Write> RenewalOf(const Beat& beat, size_t* set) const;
  void JudgeRefusal(const Written& answer, size_t set);
  void Acknowledge(BootMs sent, int64_t session, int64_t version);
  void EndTenure(const std::string& why);
  void RenewSoon() { renew_at_ = registry_.now() + options_.window / 12; }
  bool has_lapsed() const { return registry_.now() >= tenure_->until; }

  // --- owners_look.cc: other servers -------------------------------------------------------------
  Task<> Look();
  Task<bool> ReadPartitions();
  void See(size_t partition, const Result<Node>& node);
  void JudgeReach();
  std::vector<Nonce> OthersTenures() const;
  void AddListed(const std::vector<std::string>& names, std::vector<Nonce>& tenures) const;

  // Returns how long a beat must be seen unchanged before its tenure counts as over. The rate of
  // each server's clock may be off by a tenth: a window on one may last 1.22 windows on the other.
  static constexpr Milliseconds Margin(Milliseconds window) { return window + window / 4; }

  bool is_avoided() const { return registry_.now() < avoided_until_; }
  // Returns when this server may first take a partition in this session (rule 6 of README.md).
  BootMs takes_from() const { return synced_at_ + Margin(options_.window); }
  bool is_young() const {
    return registry_.session() != synced_session_ || registry_.now() < takes_from();
  }

  // Rule 9. Added to the time before this server takes a partition.
  Milliseconds Avoidance() const;

  Milliseconds look_every() const { return options_.window / (leaving_ ? 8 : 4); }
  Milliseconds gap_max() const { return 2 * options_.window; }

  AsyncRegistry registry_;  // outlives the tasks
  Entropy& entropy_;
  const OwnersOptions options_;
  const Ended ended_;
  bool wanted_ = false, permitted_ = false, leaving_ = false, waits_ = true;
  bool knows_leavers_ = false;  // has read the beats since its own beat says `leaving`

  std::optional<Root> root_;
  std::optional<Tenure> tenure_;
  std::optional<Tenure> past_;  // ended here, but its beat is not set to ended yet
  std::array<Share, kPartitions> shares_;
  std::map<Nonce, OtherBeat> beats_;  // of other tenures: all listed, and all owners of partitions
  uint64_t terms_ = 0;                // number of terms so far
  std::string trouble_;
  std::string unreachable_;  // for the next renewal
  std::vector<std::string> listed_by_;
  std::optional<BootMs> listed_since_{};  // when most of the other beats began to list this server
  bool gives_up_ = false;                 // rule 9
  BootMs avoided_until_;
  BootMs renew_at_, look_at_, list_at_, sweep_at_;
  bool has_looked_ = false;
  size_t next_partition_ = 0;   // read in the next look, even without a notification
  int64_t synced_session_ = 0;  // session of the last sync before a look
  BootMs synced_at_;
  CallbackGuard guard_;
  Task<> write_, look_;
};

}  // namespace firn
