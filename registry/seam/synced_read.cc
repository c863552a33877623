#include "registry/seam/synced_read.h"

#include <memory>
#include <utility>

namespace firn {
namespace {

struct Gathering {
  const Coordinator& coordinator;
  int64_t session;
  size_t awaited;
  Status failure;
  Nodes nodes;
  std::function<void(Result<Nodes>)> done;

  void Arrived() {
    if (--awaited != 0) return;
    if (coordinator.session() != session) failure = Unavailable("the session has ended");
    if (failure.ok()) {
      done(std::move(nodes));
    } else {
      done(std::move(failure));
    }
  }
};

}  // namespace

void ReadSynced(Coordinator& coordinator, Mailbox& mailbox, const std::vector<std::string>& paths,
                std::function<void(Result<Nodes>)> done) {
  const auto all = std::make_shared<Gathering>(Gathering{coordinator,
                                                         coordinator.session(),
                                                         paths.size() + 1,
                                                         {},
                                                         Nodes(paths.size()),
                                                         std::move(done)});
  coordinator.Sync("/", mailbox.Expect<Status>([all](Status status) {
    if (!status.ok()) all->failure = std::move(status);
    all->Arrived();
  }));
  for (size_t i = 0; i < paths.size(); ++i) {
    coordinator.Read(paths[i], mailbox.Expect<Result<Node>>([all, i](Result<Node> node) {
      if (node.ok()) {
        all->nodes[i] = std::move(node).value();
      } else if (node.code() != Code::kNotFound) {
        all->failure = node.status();
      }
      all->Arrived();
    }));
  }
}

}  // namespace firn
