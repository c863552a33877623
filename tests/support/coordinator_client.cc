#include "tests/support/coordinator_client.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace firn {
namespace {

// The value that `ask` hands to its callback.
template <typename T, typename Ask>
T Answer(CoordinatorClient& client, Ask ask) {
  // Shared, because an answer after the patience has ended must find somewhere to go.
  auto got = std::make_shared<std::optional<T>>();
  ask([got](T answer) { got->emplace(std::move(answer)); });
  if (!client.Await([&] { return got->has_value(); })) Die("a coordinator does not answer");
  return std::move(**got);
}

}  // namespace

CoordinatorClient::CoordinatorClient(std::unique_ptr<Coordinator> coordinator)
    : coordinator_(std::move(coordinator)) {
  coordinator_->OnSession([this](SessionEvent event) { events.push_back(event); });
}

Result<Node> CoordinatorClient::Read(const std::string& path) {
  return Answer<Result<Node>>(*this, [&](auto done) { coordinator_->Read(path, done); });
}

Result<std::vector<std::string>> CoordinatorClient::List(const std::string& path) {
  return Answer<Result<std::vector<std::string>>>(
      *this, [&](auto done) { coordinator_->List(path, done); });
}

Result<Node> CoordinatorClient::ReadAndWatch(const std::string& path) {
  return Answer<Result<Node>>(
      *this, [&](auto done) { coordinator_->Read(path, done, [this] { ++notices; }); });
}

Result<std::vector<std::string>> CoordinatorClient::ListAndWatch(const std::string& path) {
  return Answer<Result<std::vector<std::string>>>(
      *this, [&](auto done) { coordinator_->List(path, done, [this] { ++notices; }); });
}

Status CoordinatorClient::Sync(const std::string& path) {
  return Answer<Status>(*this, [&](auto done) { coordinator_->Sync(path, done); });
}

Status CoordinatorClient::PrepareRoot() {
  return Answer<Status>(*this, [&](auto done) { coordinator_->PrepareRoot(done); });
}

WriteOutcome CoordinatorClient::Multi(std::vector<Write> writes) {
  return Answer<WriteOutcome>(*this,
                              [&](auto done) { coordinator_->Multi(std::move(writes), done); });
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
