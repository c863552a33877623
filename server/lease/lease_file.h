#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/file_writer.h"
#include "registry/claim/claim_options.h"
#include "registry/state/kept_bounds.h"
#include "server/lease/lease_bounds.h"

namespace firn {

// Queues a task for the control thread, which runs tasks in order. Any thread.
using PostToLeases = std::function<void(std::function<void()> task)>;

// The file <stem>.leases in the state folder. A separate thread writes it, because a disk may
// stall. Posts nothing after destruction.
class LeaseFile final : public LeaseMemory {
 public:
  // `stem` is the path without ".leases".
  LeaseFile(const std::string& stem, PostToLeases post);
  ~LeaseFile() override;

  // Returns the file's content, which is empty if the file does not exist.
  static Result<KeptBounds> ReadFrom(const std::string& stem);
  // Copies the file's content into the options for a start. If the file is unreadable, the server
  // could not notice that the registry has lost a bound. Then this logs the reason and forbids
  // claims. Does nothing if `stem` is empty.
  static void LoadInto(const std::string& stem, ClaimOptions& claim);

  void Keep(std::string text, Kept done) override;

 private:
  static std::string PathOf(const std::string& stem) { return stem + ".leases"; }

  // State of the write in flight, shared with the writer's thread, which may outlive this object.
  struct Shared;

  const std::string path_;
  const std::shared_ptr<Shared> shared_;
  FileWriter writer_;
};

}  // namespace firn
