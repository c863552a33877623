#include "tests/support/coordinator_client.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace firn {
namespace {

Code CodeOf(const Status& status) { return status.code(); }
Code CodeOf(const WriteOutcome& outcome) { return outcome.status.code(); }
template <typename T>
Code CodeOf(const Result<T>& result) {
  return result.code();
}

}  // namespace

// Returns the value that `ask` passes to its callback.
template <typename T, typename Ask>
T CoordinatorClient::Answer(Ask ask) {
  for (const BootMs give_up = SystemClock().Boot() + 3 * kPatience;;) {
    // Shared, because an answer may arrive after the timeout.
    auto got = std::make_shared<std::optional<T>>();
    ask([got](T answer) { got->emplace(std::move(answer)); });
    if (!Await([&] { return got->has_value(); })) {
      throw std::runtime_error("a coordinator does not answer");
    }
    if (!repeats_ || CodeOf(**got) != Code::kUnavailable) return std::move(**got);
    if (SystemClock().Boot() >= give_up)
      throw std::runtime_error("a connection does not come back");
    coordinator_->Dispatch(Milliseconds(20));
  }
}

CoordinatorClient::CoordinatorClient(std::unique_ptr<Coordinator> coordinator)
    : coordinator_(std::move(coordinator)) {
  coordinator_->OnSession([this](SessionEvent event) { events.push_back(event); });
}

Result<Node> CoordinatorClient::Read(const std::string& path) {
  return Answer<Result<Node>>([&](auto done) { coordinator_->Read(path, done); });
}

Result<std::vector<std::string>> CoordinatorClient::List(const std::string& path) {
  return Answer<Result<std::vector<std::string>>>(
      [&](auto done) { coordinator_->List(path, done); });
}

Result<Node> CoordinatorClient::ReadAndWatch(const std::string& path) {
  return Answer<Result<Node>>(
      [&](auto done) { coordinator_->Read(path, done, [this] { ++notices; }); });
}

Result<std::vector<std::string>> CoordinatorClient::ListAndWatch(const std::string& path) {
  return Answer<Result<std::vector<std::string>>>(
      [&](auto done) { coordinator_->List(path, done, [this] { ++notices; }); });
}

Status CoordinatorClient::Sync(const std::string& path) {
  return Answer<Status>([&](auto done) { coordinator_->Sync(path, done); });
}

Status CoordinatorClient::PrepareRoot() {
  return Answer<Status>([&](auto done) { coordinator_->PrepareRoot(done); });
}

WriteOutcome CoordinatorClient::Multi(std::vector<Write> writes) {
  return Answer<WriteOutcome>([&](auto done) { coordinator_->Multi(writes, done); });
}

WriteOutcome CoordinatorClient::Create(const std::string& path, const std::string& data,
                                       Lifetime lifetime) {
  return Multi({Write::Create(path, data, lifetime)});
}

WriteOutcome CoordinatorClient::Set(const std::string& path, const std::string& data,
                                    int64_t version) {
  return Multi({Write::Set(path, data, version)});
}

WriteOutcome CoordinatorClient::Erase(const std::string& path, int64_t version) {
  return Multi({Write::Erase(path, version)});
}

bool CoordinatorClient::Await(const std::function<bool()>& done, Milliseconds patience) {
  const BootMs deadline = SystemClock().Boot() + patience;
  while (!done()) {
    if (SystemClock().Boot() >= deadline) return false;
    coordinator_->Dispatch(Milliseconds(20));
  }
  return true;
}

bool CoordinatorClient::AwaitSession(Milliseconds patience) {
  return Await([this] { return Heard(SessionEvent::Kind::kConnected); }, patience);
}

bool CoordinatorClient::AwaitEvent(SessionEvent::Kind kind, Milliseconds patience) {
  return Await([&] { return Heard(kind); }, patience);
}

bool CoordinatorClient::Heard(SessionEvent::Kind kind) const {
  return std::any_of(events.begin(), events.end(), [&](auto& e) { return e.kind == kind; });
}

}  // namespace firn
