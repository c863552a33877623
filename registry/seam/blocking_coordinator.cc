#include "registry/seam/blocking_coordinator.h"

#include <optional>
#include <utility>

#include "common/base/cat.h"

namespace firn {
namespace {

constexpr Milliseconds kDispatchWait{20};
constexpr size_t kReadsInFlight = 128;

}  // namespace

BlockingCoordinator::BlockingCoordinator(Coordinator& coordinator, const Clock& clock,
                                         Milliseconds limit)
    : coordinator_(coordinator), clock_(clock), limit_(limit) {
  coordinator_.OnSession([news = news_](SessionEvent event) {
    if (event.kind == SessionEvent::Kind::kDenied) news->denied = true;
    news->connected_in = event.kind == SessionEvent::Kind::kConnected ? event.session : 0;
  });
}

Status BlockingCoordinator::Connect(Milliseconds patience) {
  const BootMs give_up = clock_.Boot() + patience;
  while (coordinator_.session() == 0) {
    if (news_->denied) return Denied("the registry refuses the credentials");
    if (clock_.Boot() >= give_up) {
      return Unavailable(Cat("no connection to the registry within ", patience.count(), " ms"));
    }
    coordinator_.Dispatch(kDispatchWait);
  }
  return {};
}

template <typename Answer, typename Ask>
Answer BlockingCoordinator::Await(Ask ask) {
  std::optional<Answer> answer;
  const BootMs give_up = clock_.Boot() + limit_;
  ask([&answer](Answer arrived) { answer.emplace(std::move(arrived)); });
  while (!answer) {
    if (clock_.Boot() >= give_up) Die("the registry's client never answered a request");
    coordinator_.Dispatch(kDispatchWait);
  }
  return *std::move(answer);
}

Result<Node> BlockingCoordinator::Read(const std::string& path) {
  return Await<Result<Node>>([&](auto done) { coordinator_.Read(path, std::move(done)); });
}

std::vector<Result<Node>> BlockingCoordinator::ReadAll(const std::vector<std::string>& paths) {
  std::vector<Result<Node>> nodes(paths.size(), Unavailable("not asked yet"));
  size_t asked = 0;
  size_t answered = 0;
  BootMs give_up = clock_.Boot() + limit_;
  while (answered < paths.size()) {
    for (; asked < paths.size() && asked - answered < kReadsInFlight; ++asked) {
      coordinator_.Read(paths[asked], [&, i = asked](Result<Node> node) {
        nodes[i] = std::move(node);
        ++answered;
        give_up = clock_.Boot() + limit_;
      });
    }
    if (clock_.Boot() >= give_up) Die("the registry's client never answered a request");
    coordinator_.Dispatch(kDispatchWait);
  }
  return nodes;
}

Result<std::vector<std::string>> BlockingCoordinator::List(const std::string& path) {
  return Await<Result<std::vector<std::string>>>(
      [&](auto done) { coordinator_.List(path, std::move(done)); });
}

Status BlockingCoordinator::Sync(const std::string& path) {
  return Await<Status>([&](auto done) { coordinator_.Sync(path, std::move(done)); });
}

WriteOutcome BlockingCoordinator::Multi(std::vector<Write> writes) {
  return Await<WriteOutcome>(
      [&](auto done) { coordinator_.Multi(std::move(writes), std::move(done)); });
}

Status BlockingCoordinator::PrepareRoot() {
  return Await<Status>([&](auto done) { coordinator_.PrepareRoot(std::move(done)); });
}

}  // namespace firn
