#pragma once

#include <fstream>
#include <memory>
#include <string>

#include <sys/stat.h>

#include "tests/server/front/connection_rig.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/redis/redis_side.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/temp_dir.h"

namespace firn::front {

// A connection to doors whose users have rights.
class KnownUsers : protected OneConnection {
 protected:
  KnownUsers(const std::string& logins, const std::string& rights) {
    Write("logins", logins);
    Write("rights", rights);
    if (!logins_.Load().ok() || !rights_.Load().ok()) Die("the files were not read");
    backend_.rights = &rights_;
  }
  ~KnownUsers() = default;

  void Write(const std::string& name, const std::string& text) {
    const std::string path = dir_ / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
  }
  // Returns the protocols of Thrift and Redis.
  ProtocolSet ThriftAndRedis(IdDesk& desk) {
    ProtocolSet set;
    set.thrift_binary =
        MakeThriftProtocol(ThriftCoding::kBinary, backend_, issuing_.counters, nullptr);
    set.thrift_compact =
        MakeThriftProtocol(ThriftCoding::kCompact, backend_, issuing_.counters, nullptr);
    set.redis = MakeRedisProtocol(backend_, desk, &logins_);
    return set;
  }

  const TempDir dir_;
  Issuing issuing_;
  Backend backend_ = issuing_.backend;
  RedisLogins logins_{dir_ / "logins"};
  TagRights rights_{dir_ / "rights"};
};

}  // namespace firn::front
