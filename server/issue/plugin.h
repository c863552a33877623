#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "server/issue/refusal.h"
#include "server/issue/request.h"
#include "server/issue/runs.h"

namespace firn {

// Code that runs before and after the calls of a tag. One object may serve many tags, and a tag may
// have many plugins.
//
// Called by any number of threads at once. Must not block, because it runs on the thread that
// serves the connection. Should not throw: an exception refuses the call with INTERNAL.
class Plugin {
 public:
  virtual ~Plugin() = default;

  virtual std::string_view name() const = 0;

  // Plugins run in ascending order, in all three functions. Plugins of equal order run in the order
  // of the tag's list. Must be constant.
  virtual int order() const = 0;

  // Runs before ids are made, once per call even if the call is parked. A refusal ends the call.
  virtual std::optional<Refusal> Before(const Request&) { return std::nullopt; }

  // Runs when all ids are made. May replace them (the same number of ids, every run valid), or
  // refuse: the ids are then lost, and the caller gets none.
  virtual std::optional<Refusal> After(const Request&, Runs&) { return std::nullopt; }

  // Runs when a call ends without ids after this plugin's Before had let it pass. Undoes what
  // Before reserved.
  virtual void OnRefusal(const Request&, const Refusal&) {}
};

// The plugins of one tag, in the order in which they run. An exception or invalid ids of a plugin
// affect only the current call. Immutable, thread-safe.
class PluginChain {
 public:
  PluginChain() = default;
  explicit PluginChain(std::vector<std::shared_ptr<Plugin>> plugins);

  bool empty() const { return plugins_.empty(); }
  size_t size() const { return plugins_.size(); }

  // Runs every Before until one refuses, then notifies the plugins that had let the call pass.
  std::optional<Refusal> Before(const Request& request) const;

  // Runs every After. A refusal, an exception or invalid `runs` stops this, clears `runs`, and
  // notifies every plugin.
  std::optional<Refusal> After(const Request& request, Runs& runs) const;

  // Notifies every plugin.
  void OnRefusal(const Request& request, const Refusal& refusal) const;

 private:
  void Tell(size_t count, const Request& request, const Refusal& refusal) const;

  std::vector<std::shared_ptr<Plugin>> plugins_;
};

}  // namespace firn
