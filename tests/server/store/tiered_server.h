#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/store/redis/tiered_source.h"
#include "tests/support/process.h"

namespace firn {

// Replaces the ledgers of a registry. Shared by all servers of a test; thread-safe.
class FakeLedgers {
 public:
  virtual ~FakeLedgers() = default;
  virtual Result<LedgerPlace> Where(const std::string& tag) const = 0;
  virtual Result<Range> Extend(const std::string& tag, int64_t size) = 0;
};

// A server's control thread and its tiered source, which takes its segments from fake ledgers.
class TieredServer {
 public:
  // `alarm` is called on the control thread.
  TieredServer(int redis_port, FakeLedgers& ledgers, Milliseconds time_limit,
               std::function<void(const std::string&)> alarm) {
    const PostToControl control = [this](std::function<void()> task) {
      static_cast<void>(control_.Post(std::move(task)));
    };
    TieredHash::Options options{
        .place = {.address = {"127.0.0.1", static_cast<uint16_t>(redis_port)},
                  .time_limit = time_limit},
        .backoff = {Milliseconds(1), Milliseconds(10)}};
    source_ = std::make_unique<TieredSource>(
        "fast", std::make_unique<TieredHash>(std::move(options), SystemClock(), SystemEntropy()),
        std::make_unique<Segments>(ledgers, control),
        [&ledgers](const TagDefinition& tag, const Ledger::PlaceDone& done) {
          done(ledgers.Where(tag.name));
        },
        control, std::move(alarm));
  }
  ~TieredServer() {
    source_->Stop();
    control_.Stop();
  }

  Result<Range> Take(const TagDefinition& tag, int64_t size) {
    std::promise<Result<Range>> told;
    source_->Take(tag, size, [&](Result<Range> range) { told.set_value(std::move(range)); });
    return told.get_future().get();
  }
  TieredSource& source() { return *source_; }
  StoreThread& control() { return control_; }

 private:
  class Segments final : public RangeSource {
   public:
    Segments(FakeLedgers& ledgers, PostToControl control)
        : ledgers_(ledgers), control_(std::move(control)) {}

    void Take(const TagDefinition& tag, int64_t size, TakeDone done) override {
      control_([this, name = tag.name, size, done = std::move(done)] {
        done(ledgers_.Extend(name, size));
      });
    }
    void GiveBack(const TagDefinition&, Range, GiveBackDone done) override {
      done(Invalid("not here"));
    }
    bool permits_no_buffer() const override { return true; }

   private:
    FakeLedgers& ledgers_;
    const PostToControl control_;
  };

  StoreThread control_;
  std::unique_ptr<TieredSource> source_;
};

}  // namespace firn
