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
// Called by any number of threads at once; must not block: it runs in the thread that serves the
// connection. It may throw (the call is then refused with INTERNAL), but should not.
class Plugin {
 public:
  virtual ~Plugin() = default;

  virtual std::string_view name() const = 0;

  // Lower goes first, in all three verbs. Plugins of one order run as the tag names them. Constant.
  virtual int order() const = 0;

  // Before ids are made, once per call, however often the call is parked. A refusal ends the call.
  virtual std::optional<Refusal> Before(const Request&) { return std::nullopt; }

  // Runs when all ids are there. May replace them (same number of ids, every run valid) or refuse:
  // then they are lost, and the caller gets none of them.
  virtual std::optional<Refusal> After(const Request&, Runs&) { return std::nullopt; }

  // The call ended without ids although this plugin's Before had let it pass: a plugin that took
  // something there returns it here.
  virtual void OnRefusal(const Request&, const Refusal&) {}
};

// The plugins of one tag, in their order. Immutable, thread-safe. An exception of a plugin, or
// invalid ids that it returns, affect only their call.
class PluginChain {
 public:
  PluginChain() = default;
  explicit PluginChain(std::vector<std::shared_ptr<Plugin>> plugins);

  bool empty() const { return plugins_.empty(); }
  size_t size() const { return plugins_.size(); }

  // Runs every Before until one refuses; then notifies those that had let the call pass.
  std::optional<Refusal> Before(const Request& request) const;

  // Runs every After. A refusal, an exception or invalid `runs` end it, clear `runs`, and notify
  // every plugin.
  std::optional<Refusal> After(const Request& request, Runs& runs) const;

  // Notifies every plugin.
  void OnRefusal(const Request& request, const Refusal& refusal) const;

 private:
  void Tell(size_t count, const Request& request, const Refusal& refusal) const;

  std::vector<std::shared_ptr<Plugin>> plugins_;
};

}  // namespace firn
