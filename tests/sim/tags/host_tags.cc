#include "tests/sim/tags/host_tags.h"

#include <string>
#include <utility>

#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "tests/sim/violation.h"
#include "tests/support/registry/forwarding_coordinator.h"

namespace firn {

class HostTags::Deaf final : public RejectionHandler {
  void OnRefusal(const Request&, const Refusal&) override {}
};

// A mutant's follower continues to see the last root node that was not frozen.
class HostTags::RootSeam final : public ForwardingCoordinator {
 public:
  RootSeam(Coordinator& inner, bool lies) : ForwardingCoordinator(inner), lies_(lies) {}

  void Read(const std::string& path, ReadDone done, Changed changed) override {
    if (lies_ && path == kMetaPath) {
      done = [this, done = std::move(done)](Result<Node> node) {
        const Result<ClusterMeta> meta = node.ok() ? ParseMeta(node->data) : node.status();
        if (meta.ok() && !meta->frozen) whole_ = *node;
        done(whole_ ? Result<Node>(*whole_) : std::move(node));
      };
    }
    inner().Read(path, std::move(done), std::move(changed));
  }

 private:
  const bool lies_;
  std::optional<Node> whole_{};
};

HostTags::HostTags(Coordinator& registry, Strategy& snowflake, uint64_t seed, Mutant mutant)
    : entropy_(seed),
      registry_(std::make_unique<RootSeam>(registry, mutant == Mutant::kTagsWithoutRoot)),
      rejections_(std::make_unique<Deaf>()),
      issuer_(*rejections_),
      follower_(*registry_, entropy_, catalogue_, issuer_) {
  const auto give = [&snowflake](const TagDefinition&) -> Result<std::shared_ptr<Strategy>> {
    return std::shared_ptr<Strategy>(std::shared_ptr<void>(), &snowflake);
  };
  if (!catalogue_.AddStrategy("snowflake", give).ok()) Die("no strategy");
  follower_.OnServed([this](const TagDefinition& tag) { has_read_ |= tag.name == kFirstTag; });
}

HostTags::~HostTags() = default;

void HostTags::Tick(BootMs now) { follower_.Tick(now); }

std::optional<Refusal> HostTags::WhyNotDefault() const {
  if (!has_read_) return std::nullopt;
  return issuer_.WhyNot(std::string(kFirstTag));
}

}  // namespace firn
