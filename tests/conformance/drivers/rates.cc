// Measures ids per second of the C++ client and of a bare stub; see ../rates.py.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include "client/client.h"
#include "client/local_ranges.h"
#include "common/json/json.h"
#include "thrift/gen/IdService.h"

namespace firn {
namespace {

constexpr int kBatch = 100;
constexpr int kBunch = 50;

using Calling = std::function<void()>;
using SteadyClock = std::chrono::steady_clock;

void Must(bool holds, const Status& status) {
  if (holds) return;
  std::cerr << status.message() << "\n";
  std::exit(1);
}

class Rates {
 public:
  Rates(std::string address, double seconds, int threads)
      : address_(std::move(address)), seconds_(seconds), threads_(threads) {}

  double BareSingle() const {
    return Measured([this] { return [stub = Stub()] { stub->getId("default"); }; });
  }

  double BareBatch() const {
    const auto make = [this] {
      return [stub = Stub(), ids = std::vector<int64_t>()]() mutable {
        stub->getIds(ids, "default", kBatch);
      };
    };
    return kBatch * Measured(make);
  }

  double Single(const std::string& tag, std::vector<LocalTag> local = {}) const {
    const auto client = Made(std::move(local));
    const auto call = [&] {
      const Result<int64_t> id = client->GetId(tag);
      Must(id.ok(), id.status());
    };
    return Measured([&] { return call; });
  }

  // Runs chains of calls. Each answer starts the next call of its chain.
  double SingleAsync() const {
    double rate = 0;
    for (const double length : {seconds_ / 4, seconds_}) {
      const auto until = SteadyClock::now() + std::chrono::duration<double>(length);
      std::atomic<int64_t> count = 0;
      std::latch ended(threads_);
      std::function<void()> call;
      const auto client = Made({});  // destroyed first: its callbacks use the variables
      call = [&] {
        if (SteadyClock::now() >= until) return ended.count_down();
        client->GetId("default", [&](const Result<int64_t>& id) {
          Must(id.ok(), id.status());
          ++count;
          call();
        });
      };
      const auto began = SteadyClock::now();
      for (int i = 0; i < threads_; ++i) call();
      ended.wait();
      rate = static_cast<double>(count) /
             std::chrono::duration<double>(SteadyClock::now() - began).count();
    }
    return rate;
  }

  double Batch() const {
    const auto client = Made({});
    const auto call = [&] {
      const Result<std::vector<int64_t>> ids = client->GetIds("default", kBatch);
      Must(ids.ok(), ids.status());
    };
    return kBatch * Measured([&] { return call; });
  }

 private:
  std::shared_ptr<wire::IdServiceClient> Stub() const {
    namespace transport = apache::thrift::transport;
    const size_t mark = address_.find(':');
    const auto frames =
        std::make_shared<transport::TFramedTransport>(std::make_shared<transport::TSocket>(
            address_.substr(0, mark), std::stoi(address_.substr(mark + 1))));
    frames->open();
    return std::make_shared<wire::IdServiceClient>(
        std::make_shared<apache::thrift::protocol::TBinaryProtocol>(frames));
  }

  std::unique_ptr<Client> Made(std::vector<LocalTag> local) const {
    ClientOptions options;
    options.servers = "firn://" + address_;
    options.deadline = Milliseconds(30'000);
    options.attempt_limit = Milliseconds(10'000);
    if (!local.empty()) options.local_ranges = LocalRanges(std::move(local));
    return std::make_unique<Client>(options);
  }

  // Returns calls per second, after a warm-up, of threads that each run a function made by `make`.
  double Measured(const std::function<Calling()>& make) const {
    std::vector<Calling> calls;
    for (int i = 0; i < threads_; ++i) calls.push_back(make());
    Spell(calls, seconds_ / 4);
    return Spell(calls, seconds_);
  }

  static double Spell(const std::vector<Calling>& calls, double length) {
    const auto began = SteadyClock::now();
    const auto passed = [began] {
      return std::chrono::duration<double>(SteadyClock::now() - began).count();
    };
    std::atomic<int64_t> count = 0;
    std::vector<std::thread> threads;
    for (const Calling& call : calls) {
      threads.emplace_back([&] {
        int64_t mine = 0;
        for (; passed() < length; mine += kBunch) {
          for (int i = 0; i < kBunch; ++i) call();
        }
        count += mine;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return static_cast<double>(count) / passed();
  }

  const std::string address_;
  const double seconds_;
  const int threads_;
};

}  // namespace
}  // namespace firn

int main(int, char** words) {
  const firn::Rates rates(words[1], std::stod(words[2]), std::stoi(words[3]));
  const firn::Json told = {
      {"bare single", rates.BareSingle()},
      {"bare batch", rates.BareBatch()},
      {"single", rates.Single("default")},
      {"single async", rates.SingleAsync()},
      {"batch", rates.Batch()},
      {"ahead snowflake", rates.Single("default", {firn::LocalTag::Snowflake("default")})},
      {"ahead segment", rates.Single("count", {firn::LocalTag::Segment("count")})}};
  std::cout << firn::JsonText(told) << "\n";
  return 0;
}
