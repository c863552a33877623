#include "registry/seam/async_registry.h"

namespace firn {
namespace {

Written Sorted(WriteOutcome outcome) {
  using Fate = Written::Fate;
  Fate fate = outcome.failed < 0 ? Fate::kNotSent : Fate::kRefused;
  if (outcome.status.ok()) fate = Fate::kDone;
  if (outcome.status.code() == Code::kUnknown) fate = Fate::kUnknown;
  return {fate, std::move(outcome.status), outcome.failed, std::move(outcome.stats)};
}

}  // namespace

// Returns the callback for an answer.
template <typename Answer>
auto AsyncRegistry::Deliver(const Asked<Answer>& asked) {
  return [this, waiting = asked.question()](Answer answer) {
    const auto question = waiting.lock();
    if (question == nullptr) return;
    question->answer.emplace(std::move(answer));
    MarkReady(question);
  };
}

Asked<Result<Node>> AsyncRegistry::Read(const std::string& path, Coordinator::Changed changed) {
  Asked<Result<Node>> asked;
  coordinator_.Read(path, Deliver(asked), std::move(changed));
  return asked;
}

Asked<Result<std::vector<std::string>>> AsyncRegistry::List(const std::string& path) {
  Asked<Result<std::vector<std::string>>> asked;
  coordinator_.List(path, Deliver(asked));
  return asked;
}

Asked<Status> AsyncRegistry::Sync(const std::string& path) {
  Asked<Status> asked;
  coordinator_.Sync(path, Deliver(asked));
  return asked;
}

Asked<Written> AsyncRegistry::Multi(const std::vector<Write>& writes) {
  Asked<Written> asked;
  coordinator_.Multi(writes, [deliver = Deliver(asked)](WriteOutcome outcome) {
    deliver(Sorted(std::move(outcome)));
  });
  return asked;
}

Asked<Readings> AsyncRegistry::ReadAll(const std::vector<std::string>& paths,
                                       const Watch& changed) {
  Asked<Readings> asked;
  const auto all = std::make_shared<Readings>();
  for (size_t i = 0; i < paths.size(); ++i) {
    Coordinator::Changed notice;
    if (changed) notice = changed(i);
    const auto done = [all, i, wanted = paths.size(), deliver = Deliver(asked)](Result<Node> node) {
      all->push_back({i, std::move(node)});
      if (all->size() == wanted) deliver(std::move(*all));
    };
    coordinator_.Read(paths[i], done, std::move(notice));
  }
  return asked;
}

Asked<Result<Nodes>> AsyncRegistry::SyncAndReadAll(const std::vector<std::string>& paths) {
  struct Gathering {
    size_t awaited;
    Nodes nodes;
    Status failure{};
  };
  Asked<Result<Nodes>> asked;
  const auto all = std::make_shared<Gathering>(Gathering{paths.size() + 1, Nodes(paths.size())});
  const auto arrived = [all, deliver = Deliver(asked)](Status failure) {
    if (!failure.ok()) all->failure = std::move(failure);
    if (--all->awaited != 0) return;
    deliver(all->failure.ok() ? Result<Nodes>(std::move(all->nodes)) : all->failure);
  };
  coordinator_.Sync("/", arrived);
  for (size_t i = 0; i < paths.size(); ++i) {
    coordinator_.Read(paths[i], [all, arrived, i](Result<Node> node) {
      if (node.ok()) all->nodes[i] = *std::move(node);
      const bool told = node.ok() || node.code() == Code::kNotFound;
      arrived(told ? Status() : node.status());
    });
  }
  return asked;
}

Task<Result<Nodes>> AsyncRegistry::ReadSynced(std::vector<std::string> paths) {
  const int64_t session = coordinator_.session();
  Result<Nodes> nodes = co_await SyncAndReadAll(paths);
  if (coordinator_.session() != session) co_return Unavailable("the session has ended");
  co_return nodes;
}

}  // namespace firn
