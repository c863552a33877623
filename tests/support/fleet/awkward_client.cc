#include "tests/support/fleet/awkward_client.h"

#include <algorithm>
#include <utility>

#include "common/time/clock.h"
#include "tests/support/process.h"

namespace firn {
namespace {

constexpr Milliseconds kWithoutProgressMax{60'000};
constexpr Milliseconds kBeforeTheNextServer{5};
constexpr Milliseconds kBetweenLooks{20};
constexpr size_t kFaultsMax = 10;

}  // namespace

const std::vector<Manner>& AwkwardManners() {
  static const std::vector<Manner> manners{
      {.name = "pauses",
       .in_flight = 100,
       .window_bytes = 4096,
       .segment_bytes = 536,
       .pause_each_bytes = 200'000,
       .pause = Milliseconds(100)},
      {.name = "reads slowly",
       .in_flight = 64,
       .count = 300,
       .read_bytes = 3'000,
       .window_bytes = 16 * 1024,
       .segment_bytes = 1'000,
       .pause_each_bytes = 3'000,
       .pause = Milliseconds(1)},
      {.name = "has a small window", .in_flight = 64, .window_bytes = 2048, .segment_bytes = 536},
      {.name = "comes in bursts",
       .in_flight = 50,
       .window_bytes = 8192,
       .pause_each_bytes = 100'000,
       .pause = Milliseconds(20),
       .bursts = true},
      {.name = "shuts its side",
       .in_flight = 1'000,
       .window_bytes = 8192,
       .finishes_sending = true},
      {.name = "sends byte for byte",
       .in_flight = 8,
       .count = 500,
       .send_bytes = 1,
       .read_bytes = 1'000},
  };
  return manners;
}

Manner Modest(Manner manner) {
  manner.count = std::min(manner.count, 300);
  manner.in_flight = std::min(manner.in_flight, 100);
  manner.pause_each_bytes = 8'000;
  manner.pause = Milliseconds(100);
  return manner;
}

// One connection, from its first call to its last answer.
class AwkwardClient::Conversation {
 public:
  Conversation(AwkwardClient& client, Channel& channel)
      : client_(client),
        options_(client.options_),
        manner_(options_.manner),
        channel_(channel),
        tongue_(MakeTongue(options_.tongue)),
        moved_at_(TestNow()) {}

  // Returns false if the conversation ended early.
  bool Hold() {
    while (answered_ < options_.calls) {
      if (client_.stop_) return false;
      Ask();
      const bool sent = SendSome(), got = ReceiveSome();
      if (ended_) return false;
      if (sent || got) {
        moved_at_ = TestNow();
      } else if (TestNow() - moved_at_ > kWithoutProgressMax) {
        client_.Blame("nothing came for a minute");
        return false;
      } else {
        Rest();
      }
    }
    return true;
  }

 private:
  int32_t CountOf(int number) const { return manner_.count + number % 7; }

  void Ask() {
    if (manner_.bursts && asked_ != answered_) return;
    while (asked_ < options_.calls && asked_ - answered_ < manner_.in_flight) {
      to_send_ += tongue_->Call(options_.tag, asked_, CountOf(asked_));
      ++asked_;
    }
  }

  bool SendSome() {
    const auto n = channel_.Send(std::string_view(to_send_).substr(0, manner_.send_bytes));
    if (!n) ended_ = true;
    if (!n || *n == 0) return false;
    to_send_.erase(0, *n);
    if (manner_.finishes_sending && to_send_.empty() && asked_ == options_.calls) {
      channel_.FinishSending();
    }
    return true;
  }

  bool ReceiveSome() {
    if (TestNow() < paused_until_ || !MayRead()) return false;
    const size_t before = received_.size();
    received_.resize(before + manner_.read_bytes);
    const auto n = channel_.Receive(received_.data() + before, manner_.read_bytes);
    received_.resize(before + n.value_or(0));
    if (!n) ended_ = true;
    if (!n || *n == 0) return false;
    Pause(*n);
    TakeAnswers();
    return true;
  }

  bool MayRead() {
    if (reads_ || !options_.may_read) return true;
    reads_ = options_.may_read();
    if (!reads_) paused_until_ = TestNow() + kBetweenLooks;
    return reads_;
  }

  void Pause(size_t read) {
    since_pause_ += read;
    if (manner_.pause_each_bytes == 0 || since_pause_ < manner_.pause_each_bytes) return;
    since_pause_ = 0;
    paused_until_ = TestNow() + manner_.pause;
  }

  void TakeAnswers() {
    size_t taken = 0;
    while (answered_ < options_.calls && !ended_) {
      const TongueAnswer answer =
          tongue_->Answer(std::string_view(received_).substr(taken), answered_, CountOf(answered_));
      if (answer.bytes == 0) break;
      taken += answer.bytes;
      Take(answer);
    }
    received_.erase(0, taken);
    if (answered_ == asked_ && !received_.empty()) Fail("bytes without a call");
  }

  void Take(const TongueAnswer& answer) {
    if (!answer.fault.empty()) return Fail(answer.fault);
    ++answered_;
    if (answer.refused) {
      ++client_.refused_;
      return;
    }
    client_.ids_.insert(client_.ids_.end(), answer.ids.begin(), answer.ids.end());
    ++client_.answered_;
  }

  void Fail(const std::string& what) {
    client_.Blame("after " + std::to_string(answered_) + " answers: " + what);
    ended_ = true;
  }

  void Rest() {
    if (TestNow() < paused_until_) return SleepFor(Milliseconds(1));
    channel_.Await(!to_send_.empty());
  }

  AwkwardClient& client_;
  const Options& options_;
  const Manner& manner_;
  Channel& channel_;
  const std::unique_ptr<Tongue> tongue_;
  std::string to_send_, received_;
  int asked_ = 0, answered_ = 0;
  size_t since_pause_ = 0;
  BootMs paused_until_{0}, moved_at_;
  bool reads_ = false;  // once it may
  bool ended_ = false;
};

AwkwardClient::AwkwardClient(Options options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

AwkwardClient::~AwkwardClient() { Stop(); }

void AwkwardClient::Stop() {
  stop_ = true;
  Join();
}

void AwkwardClient::Join() {
  if (thread_.joinable()) thread_.join();
}

std::string AwkwardClient::name() const {
  return std::string(TextOf(options_.tongue)) + (options_.tls_ca.empty() ? "" : " over TLS") +
         ", who " + options_.manner.name;
}

void AwkwardClient::Blame(const std::string& fault) {
  if (faults_.size() < kFaultsMax) faults_.push_back(name() + ": " + fault);
}

void AwkwardClient::Run() {
  size_t at = options_.first;
  int held = 0;
  while (!stop_ && (options_.conversations == 0 || held < options_.conversations)) {
    const auto channel = Channel::Open({.port = options_.ports[at % options_.ports.size()],
                                        .window_bytes = options_.manner.window_bytes,
                                        .segment_bytes = options_.manner.segment_bytes,
                                        .tls_ca = options_.tls_ca});
    if (channel != nullptr && Conversation(*this, *channel).Hold()) {
      ++held;
      continue;
    }
    if (stop_) return;
    ++lost_;
    ++at;
    if (options_.conversations != 0) return;  // if they are counted, none may be lost
    SleepFor(kBeforeTheNextServer);
  }
}

}  // namespace firn
