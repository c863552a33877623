#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "server/issue/segment/range_source.h"
#include "server/store/control_thread.h"
#include "server/store/ledger.h"
#include "server/store/redis/tiered_hash.h"
#include "server/store/store_thread.h"
#include "server/store/waste.h"

namespace firn {

// Numbers from Redis, in segments from a durable source. They rise across all servers, at the speed
// of Redis. TieredHash skips numbers that Redis has lost or could repeat. So a tag's numbers never
// fall, neither when the tag returns to a tiered store nor when Redis fails back to an old primary.
//
//   control thread    reads the ledger and its cluster: once per tag, after Distrust, and for each
//                     new connection to Redis
//   store's thread    clears a hash that ends below the ledger (TieredHash::Fence)
//   store's thread    takes a few numbers from the hash; when it runs low, one server
//   durable source    ... takes a segment, below 2^53 and already covered by the ledger
//   store's thread    ... and stores it in the hash
//
// A segment's size changes like a range's: it is doubled if the segment lasts less than the tag's
// hold time, and halved if it lasts more than twice that.
//
// After Distrust, the hash is cleared, and no numbers are taken from it until the tag's ledger has
// been read. So a stopped tag waits for `firn restore` here, too.
//
// Thread-safe; answers are delivered on the control thread. As with LedgeredSource, call Stop
// before the control thread ends.
class TieredSource final : public RangeSource {
 public:
  static constexpr int kTriesMax = 4;  // requests to the hash per Take

  // Receives a sentence if a hash was restored to a state below numbers that this server has
  // issued.
  using Alarm = std::function<void(const std::string&)>;

  // Reads a tag's ledger (Ledger::WhereNow). Called on the control thread, and answers there.
  using AskLedger = std::function<void(const TagDefinition& tag, Ledger::PlaceDone done)>;

  // `durable` answers on the thread that `control` posts to. That thread must outlive this.
  TieredSource(std::string name, std::unique_ptr<TieredHash> hash,
               std::unique_ptr<RangeSource> durable, AskLedger ledger, PostToControl control,
               Alarm alarm);
  ~TieredSource() override;  // stops

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override;

  // Always refused, because numbers of other servers may follow.
  void GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) override;
  void Distrust(const std::string& tag) override;
  bool permits_no_buffer() const override { return true; }

  // Waits for the current call. Later requests are refused with kUnavailable.
  void Stop() { thread_.Stop(); }

  // Numbers that the ledger covers and that will not be issued, as far as this server knows, and
  // numbers that the durable source has lost.
  int64_t wasted(const std::string& tag) const override {
    return waste_.Of(tag) + durable_->wasted(tag);
  }

 private:
  using StatusDone = std::function<void(Status)>;

  struct Errand;  // one Take in progress

  // This server's state of a tag.
  struct Known {
    std::string cluster{};    // uuid of the cluster whose ledger covers the hash
    uint64_t connection = 0;  // the connection on which the hash was fenced; 0: not fenced
    bool clear = false;       // the hash must be cleared first
    uint64_t distrusts = 0;   // counts Distrust; older errands fail
    int64_t end = 0;          // end of the numbers taken last
    int64_t unfilled = 0;     // numbers above `end` that never reached the hash
  };

  void Begin(const std::shared_ptr<Errand>& errand);
  void Fence(const std::shared_ptr<Errand>& errand);
  void OnPlace(const std::shared_ptr<Errand>& errand, const LedgerPlace& place);
  void OnFenced(const std::shared_ptr<Errand>& errand, const TieredHash::Fenced& fenced,
                int64_t least);
  void AskHash(const std::shared_ptr<Errand>& errand);
  void OnTaken(const std::shared_ptr<Errand>& errand, const TieredHash::Taken& taken);
  void FenceAgain(const std::shared_ptr<Errand>& errand, const TieredHash::Taken& taken);
  // Takes a segment, stores it in the hash, and passes the outcome to `done`.
  void Bring(const std::shared_ptr<Errand>& errand, int64_t size, StatusDone done);
  void Fill(const std::shared_ptr<Errand>& errand, Range segment, int64_t ledger,
            const StatusDone& done);
  void OnFilled(const std::string& tag, Range segment, int64_t ledger,
                const Result<TieredHash::Filled>& filled);
  bool Distrusted(const Errand& errand);
  Status Busy() const;
  Status Stopped() const;

  const std::string name_;
  const std::unique_ptr<TieredHash> hash_;  // used on the store's thread
  const std::unique_ptr<RangeSource> durable_;
  const AskLedger ledger_;
  const PostToControl control_;
  const Alarm alarm_;
  std::map<std::string, Known> known_;  // by tag; used on the control thread
  Waste waste_;
  StoreThread thread_;  // destroyed before the members that it uses
};

// Returns the size of the next segment if one of `step` numbers lasted for `lasts`.
int64_t NextSegmentSize(const TagDefinition& tag, int64_t step, Milliseconds lasts);

}  // namespace firn
