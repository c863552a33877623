#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/entropy.h"
#include "common/tag_definition.h"
#include "common/units.h"
#include "registry/coordinator.h"
#include "registry/folder_watch.h"
#include "registry/tag_node.h"
#include "server/issue/catalogue.h"
#include "server/issue/issuer.h"

namespace firn {

// Makes an issuer serve the tags that the registry defines, and follow their changes.
//
//  1. A tag that this program cannot serve (a strategy, plugin or key that it lacks, a node that
//     does not read) is refused with the reason, never served in part. A disabled one likewise.
//  2. What cannot be read any more, because the registry is away, goes on as it was.
//  3. A tag whose node has gone is refused: only a defect or a loss of data takes nodes away, and
//     its numbers may be given out by somebody else from now on.
//  4. Names that only the program knows (the default tag) are left alone until the registry
//     defines them.
//
// Owned by the control thread.
class TagFollower {
 public:
  using Ledgers = std::map<std::string, int64_t>;

  // All references must outlive it.
  TagFollower(Coordinator& coordinator, Entropy& entropy, const Catalogue& catalogue,
              Issuer& issuer);

  // `served` is told of each definition that is served from then on. Before the first Tick.
  void OnServed(std::function<void(const TagDefinition&)> served) {
    on_served_ = std::move(served);
  }

  // `saw` is told of each reading of a tag's node, also of those that are not served, and of nodes
  // that have gone. Before the first Tick.
  using Saw = std::function<void(const std::string& tag, const std::optional<TagNode>& node)>;
  void OnSeen(Saw saw) { on_seen_ = std::move(saw); }

  // Does what is due. Call every 50 ms or so.
  void Tick(BootMs now) { watch_.Tick(now); }

  // The highest ledger seen of each tag: what `firn restore` lifts ledgers above. Another object
  // after each reading that changed it, so that whoever holds one may look at it in any thread.
  std::shared_ptr<const Ledgers> highest() const { return highest_; }

  // Ledgers that this server has moved itself, before the registry has told of it.
  void RaiseHighest(const Ledgers& higher);

  // True once the registry's tags have been read for the first time.
  bool whole() const { return watch_.whole(); }

 private:
  void Follow();
  void Serve(const TagDefinition& tag);
  void Refuse(const std::string& name, Reason reason, std::string why);

  const Catalogue& catalogue_;
  Issuer& issuer_;
  std::function<void(const TagDefinition&)> on_served_;
  Saw on_seen_;
  std::map<std::string, TagDefinition> served_;  // as bound, ledgers left out
  std::map<std::string, std::string> refused_;   // and why
  std::shared_ptr<const Ledgers> highest_ = std::make_shared<Ledgers>();
  FolderWatch watch_;
};

}  // namespace firn
