#include "tests/drill/reconnecting_client.h"

#include <algorithm>
#include <memory>
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
constexpr int kAnswerMs = 10'000;
constexpr Milliseconds kBetweenCalls{1};
constexpr size_t kFailuresMax = 10;

}  // namespace

class ReconnectingClient::Connection {
 public:
  explicit Connection(int port) : socket_(std::make_shared<TSocket>("127.0.0.1", port)) {
    socket_->setConnTimeout(kConnectMs);
    socket_->setRecvTimeout(kAnswerMs);
    socket_->open();
    client_.emplace(std::make_shared<TBinaryProtocol>(std::make_shared<TFramedTransport>(socket_)));
  }

  int64_t GetId() { return client_->getId("default"); }

 private:
  std::shared_ptr<TSocket> socket_;
  std::optional<wire::IdServiceClient> client_;
};

ReconnectingClient::ReconnectingClient(std::vector<int> ports, size_t first)
    : ports_(std::move(ports)), at_(first % ports_.size()), thread_([this] { Run(); }) {}

ReconnectingClient::~ReconnectingClient() { Stop(); }

void ReconnectingClient::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void ReconnectingClient::Run() {
  while (!stop_) {
    const BootMs begin = TestNow();
    if (AskAny(begin + kCallPatience)) {
      ++counts_.calls;
    } else {
      ++counts_.failed;
      if (failures_.size() < kFailuresMax) failures_.push_back(last_trouble_);
    }
    counts_.longest_call = std::max(counts_.longest_call, TestNow() - begin);
    calls_ = counts_.calls;
    SleepFor(kBetweenCalls);
  }
}

bool ReconnectingClient::AskAny(BootMs give_up) {
  for (;; at_ = (at_ + 1) % ports_.size()) {
    try {
      if (!connection_) connection_ = std::make_unique<Connection>(ports_[at_]);
      const int64_t id = connection_->GetId();
      runs_.push_back({TestNow(), {.first = id, .count = 1, .stride = 1}});
      return true;
    } catch (const wire::Refusal& refusal) {
      ++counts_.refused;
      last_trouble_ = refusal.message;
    } catch (const TException& e) {
      ++(connection_ ? counts_.lost : counts_.unreachable);
      last_trouble_ = e.what();
    }
    connection_.reset();
    if (TestNow() >= give_up) return false;
    SleepFor(kBetweenCalls);
  }
}

}  // namespace firn
