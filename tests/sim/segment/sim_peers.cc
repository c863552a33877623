#include "tests/sim/segment/sim_peers.h"

#include <utility>

namespace firn {

OwnersSetup SimPeers::Setup(const std::string& address) {
  const int64_t process = ++servers_[address].process;
  return {.address = address,
          .ask =
              [this, address, process](const std::string& to, PeerTake take, OwnerLink::Count count,
                                       RangeSource::TakeDone done) {
                messages_.push_back({.from = address,
                                     .process = process,
                                     .to = to,
                                     .take = std::move(take),
                                     .count = std::move(count),
                                     .done = std::move(done),
                                     .due = Soon()});
              },
          .unreachable =
              [this, address] {
                std::string addresses;
                for (const auto& [to, at] : servers_[address].failed) {
                  if (clock_.Boot() - at >= kRecent) continue;
                  addresses += addresses.empty() ? to : "," + to;
                }
                return addresses;
              },
          .stop = {}};
}

void SimPeers::Add(const std::string& address, Answer answer) {
  servers_[address].answer = std::move(answer);
}

void SimPeers::Remove(const std::string& address) {
  Server& server = servers_[address];
  server.answer = nullptr;
  server.paused = false;
  server.failed.clear();
}

void SimPeers::Pause(const std::string& address, bool paused) { servers_[address].paused = paused; }

void SimPeers::Run() {
  // Answers may send further takes.
  for (size_t i = 0; i < messages_.size(); ++i) Advance(messages_[i]);
  std::erase_if(messages_, [](const Message& message) { return message.over; });
}

void SimPeers::Advance(Message& message) {
  const Server& from = servers_[message.from];
  Server& to = servers_[message.to];
  if (from.process != message.process || !from.answer) {
    message.over = true;
    return;
  }
  const BootMs now = clock_.Boot();
  const bool due = now >= message.due;
  if (!message.sent) {
    if (due && !from.paused) Send(message);
    return;
  }
  if (!from.paused && message.done && now - *message.sent >= kAnswerTime) {
    if (!to.answer || IsCut(message)) servers_[message.from].failed[message.to] = now;
    std::exchange(message.done, nullptr)(Range{});
  }
  if (!due) return;
  if (IsCut(message)) {
    message.over = !message.done;
  } else if (message.range) {
    if (!from.paused) Finish(message, *message.range);
  } else if (!to.answer) {
    if (!from.paused) Finish(message, Range{});
  } else if (!to.paused) {
    message.range = to.answer(message.take);
    message.due = Soon();
  }
}

void SimPeers::Send(Message& message) {
  message.sent = clock_.Boot();
  message.due = Soon();
  message.take.count = message.count();
  if (mutant_ == SegmentMutant::kLaterCallsServed) message.take.count += 8;
}

void SimPeers::Finish(Message& message, Result<Range> range) {
  message.over = true;
  servers_[message.from].failed.erase(message.to);
  if (!message.done) return;
  if (mutant_ == SegmentMutant::kLaterCallsServed) message.count();
  std::exchange(message.done, nullptr)(std::move(range));
}

}  // namespace firn
