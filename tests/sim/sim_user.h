#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/id/id_clock.h"
#include "common/sequence/tick_source.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/claim/claim_keeper.h"
#include "registry/claim/claim_user.h"
#include "server/issue/snowflake/snowflake.h"
#include "server/node/readiness.h"
#include "tests/sim/mutants.h"

namespace firn {

struct SimShared;

// The issuing side of a simulated process: the product's id clock, tick source, snowflake strategy
// and readiness, connected as in IssuingNode, with a mutant's error between them and the keeper.
// Owned by one thread.
class SimUser final : public ClaimUser {
 public:
  // References must outlive the object. `seed` varies the starts of sequences.
  SimUser(SimShared& shared, const Clock& clock, const Layout& layout, SequencerOptions options,
          uint64_t seed);

  void Adopt(std::shared_ptr<Claim> claim) override;
  WallMs SetIdClock(WallMs time, Now now) override;
  Tick Last() const override { return Told(*snowflake_.Last()); }
  Tick Close() override;

  bool has_claim() const { return !closed_; }
  const Claim& claim() const { return *claim_; }
  Strategy& strategy() { return snowflake_; }
  // Number of the claim, over all processes.
  int64_t number() const { return number_; }
  // Sets the number of the claim, because a copy has the number of the original.
  void CountAs(int64_t number) { number_ = number; }

  // Time reads both clocks and returns the id clock; time returns it without reading them.
  WallMs Time() { return id_clock_.Advance(clock_.Read()); }
  WallMs time() const { return id_clock_.Last(); }
  IdClock& id_clock() { return id_clock_; }

  // Requests ids with the present time, or with clock readings from before a pause. Ids in runs()
  // count as issued for every verdict.
  Verdict Take(uint64_t want);
  Verdict TakeAt(const Now& then, uint64_t want);
  const Runs& runs() const { return call_.runs(); }

  // Updates the readiness that a server would report. why_not_ready returns the reason.
  void NoteReadiness(const ClaimKeeper& keeper, const KeeperTime& now);
  const std::optional<std::string>& why_not_ready() const { return readiness_.why_not(); }

 private:
  // The machine's clocks, or fixed readings for a thread that was paused after it had read them.
  class ReadClock final : public Clock {
   public:
    explicit ReadClock(const Clock& clock) : clock_(clock) {}
    WallMs Wall() const override { return read ? read->wall : clock_.Wall(); }
    BootMs Boot() const override { return read ? read->boot : clock_.Boot(); }

    std::optional<Now> read{};

   private:
    const Clock& clock_;
  };

  Tick Told(Tick last) const;

  SimShared& shared_;
  ReadClock clock_;
  IdClock id_clock_;
  TickSource ticks_;
  SeededEntropy entropy_;
  Snowflake snowflake_;
  Readiness readiness_;
  IssueCall call_;
  std::shared_ptr<Claim> claim_;
  bool closed_ = true;
  int64_t number_ = 0;
};

}  // namespace firn
