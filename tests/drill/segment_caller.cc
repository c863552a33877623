#include "tests/drill/segment_caller.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include "common/clock.h"
#include "tests/support/process.h"
#include "thrift/gen/IdService.h"

namespace firn {
namespace {

using apache::thrift::TException;
using apache::thrift::protocol::TBinaryProtocol;
using apache::thrift::transport::TFramedTransport;
using apache::thrift::transport::TSocket;

constexpr int kConnectMs = 5'000;
constexpr int kAnswerMs = 60'000;
constexpr Milliseconds kAfterTrouble{5};

}  // namespace

CallCounts& CallCounts::operator+=(const CallCounts& more) {
  answered += more.answered;
  refused += more.refused;
  broken += more.broken;
  longest = std::max(longest, more.longest);
  if (!more.last_trouble.empty()) last_trouble = more.last_trouble;
  return *this;
}

class SegmentCaller::Connection {
 public:
  explicit Connection(int port) : socket_(std::make_shared<TSocket>("127.0.0.1", port)) {
    socket_->setConnTimeout(kConnectMs);
    socket_->setRecvTimeout(kAnswerMs);
    socket_->open();
    client_.emplace(std::make_shared<TBinaryProtocol>(std::make_shared<TFramedTransport>(socket_)));
  }

  std::vector<wire::IdRun> Take(const std::string& tag, int64_t count) {
    std::vector<wire::IdRun> runs;
    client_->getRuns(runs, tag, count);
    return runs;
  }

 private:
  std::shared_ptr<TSocket> socket_;
  std::optional<wire::IdServiceClient> client_;
};

SegmentCaller::SegmentCaller(Options options, TakingsByTag takings)
    : options_(options), takings_(std::move(takings)), thread_([this] { Run(); }) {}

SegmentCaller::~SegmentCaller() { Stop(); }

void SegmentCaller::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

std::map<std::string, CallCounts> SegmentCaller::TakeCounts() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(counts_, {});
}

void SegmentCaller::Run() {
  while (!stop_) {
    for (const auto& [tag, takings] : takings_) {
      if (stop_) return;
      Call(tag, *takings);
      if (options_.pause.count() > 0) SleepFor(options_.pause);
    }
  }
}

void SegmentCaller::Call(const std::string& tag, Takings& takings) {
  const int64_t before = takings.highest();
  const BootMs begin = TestNow();
  try {
    if (!connection_) connection_ = std::make_unique<Connection>(options_.port);
    const std::vector<wire::IdRun> runs = connection_->Take(tag, options_.count);
    const Milliseconds lasted = TestNow() - begin;
    for (const wire::IdRun& run : runs) takings.Add({run.first, run.count}, before);
    return Note(tag, [&](CallCounts& counts) {
      ++counts.answered;
      counts.longest = std::max(counts.longest, lasted);
    });
  } catch (const wire::Refusal& refusal) {
    Note(tag, [&](CallCounts& counts) {
      ++counts.refused;
      counts.last_trouble = refusal.message;
    });
  } catch (const TException& e) {
    connection_.reset();
    Note(tag, [&](CallCounts& counts) {
      ++counts.broken;
      counts.last_trouble = e.what();
    });
  }
  SleepFor(kAfterTrouble);
}

void SegmentCaller::Note(const std::string& tag, const std::function<void(CallCounts&)>& change) {
  const std::scoped_lock lock(mutex_);
  change(counts_[tag]);
}

}  // namespace firn
