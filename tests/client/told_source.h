#pragma once

#include <memory>
#include <string>
#include <utility>

#include "client/server_source.h"

namespace firn {

// A source whose lists the test sets.
class ToldSource final : public ServerSource {
 public:
  // Returns ClientOptions::open_source. After its call, a call of `tell` sets the list.
  static auto Opener(Listener& tell) {
    return [&tell](const std::string&) {
      return Result<std::unique_ptr<ServerSource>>(std::make_unique<ToldSource>(tell));
    };
  }
  explicit ToldSource(Listener& listener) : listener_(listener) {}

  Status Start(Listener on_list) override { return listener_ = std::move(on_list), Status(); }
  void Stop() override { listener_ = nullptr; }

 private:
  Listener& listener_;
};

}  // namespace firn
