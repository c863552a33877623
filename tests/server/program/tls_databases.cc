#include "tests/server/program/tls_databases.h"

#include <array>

#include "common/base/cat.h"
#include "tests/support/database/ferret_db.h"
#include "tests/support/database/mariadb.h"
#include "tests/support/database/postgres.h"
#include "tests/support/database/redis.h"

namespace firn {
namespace {

// The certificate that a database presents.
std::string CertificateFor(TlsFault fault) {
  if (fault == TlsFault::kName) return "elsewhere";
  return fault == TlsFault::kExpired ? "expired" : "server";
}

std::string ClientCa(const TlsAuthority& authority, TlsFault fault) {
  return fault == TlsFault::kNoClientCertificate ? authority.File("ca.crt") : "";
}

Status Run(const std::string& commands) {
  const Finished done = RunToEnd({"bash", "-ec", commands});
  return done.exit_code == 0 ? Status() : Internal(commands + ": " + done.out + done.err);
}

// The tests' servers come with a database and an account, which this removes.
template <typename Server>
class TlsSql : public TlsDatabase {
 public:
  int port() const override { return server_->port(); }
  Status Start(const TlsAuthority& authority, TlsFault fault) override {
    FIRN_ASSIGN(server_, Server::Start());
    if (fault != TlsFault::kNoTls) {
      const std::string who = CertificateFor(fault);
      FIRN_TRY(server_->RequireTls(authority.File(who + ".crt"), authority.File(who + ".key"),
                                   ClientCa(authority, fault)));
    }
    return Run(shell() + Clearing());
  }

 protected:
  virtual std::string Clearing() const = 0;

  std::unique_ptr<Server> server_;
};

class TlsMariaDb final : public TlsSql<MariaDb> {
 public:
  std::string title() const override { return "MySQL and MariaDB"; }
  Status Start(const TlsAuthority& authority, TlsFault fault) override {
    asks_for_certificate_ = fault == TlsFault::kNoClientCertificate;
    return TlsSql::Start(authority, fault);
  }
  std::string shell() const override {
    const std::string client =
        Cat("command mariadb --no-defaults --user=root --socket=", server_->folder() / "socket");
    return Cat("mariadb() { ", client, " \"$@\"; }\n");
  }
  std::vector<Right> rights() const override {
    std::vector<Right> all;
    for (const std::string right : {"SELECT", "INSERT", "UPDATE"}) {
      all.push_back({"mariadb -e \"REVOKE " + right + " ON ids.firn_tag FROM 'firn'@'%'\"",
                     "the user " + right + " on"});
    }
    return all;
  }
  std::string after() const override {
    return asks_for_certificate_ ? "mariadb -e \"ALTER USER 'firn'@'%' REQUIRE X509\"\n" : "";
  }

 private:
  std::string Clearing() const override {
    return "mariadb -e \"DROP DATABASE ids; DROP USER firn@'127.0.0.1'\"\n";
  }

  bool asks_for_certificate_ = false;
};

class TlsPostgres final : public TlsSql<Postgres> {
 public:
  std::string title() const override { return "PostgreSQL"; }
  std::string shell() const override {
    return Cat("export PGHOST=", server_->folder().string(), " PGPORT=", server_->port(),
               " PGUSER=postgres\n");
  }
  std::vector<Right> rights() const override {
    std::vector<Right> all;
    for (const std::string right : {"SELECT", "INSERT", "UPDATE"}) {
      all.push_back({"psql ids -c \"REVOKE " + right + " ON firn_tag FROM firn\"",
                     "the user " + right + " on"});
    }
    return all;
  }

 private:
  std::string Clearing() const override {
    return "psql postgres -c 'DROP DATABASE ids' -c 'DROP ROLE firn'\n";
  }
};

class TlsRedis final : public TlsDatabase {
 public:
  std::string title() const override { return "Redis"; }
  int port() const override { return has_tls_ ? server_->tls_port() : server_->port(); }
  Status Start(const TlsAuthority& authority, TlsFault fault) override {
    has_tls_ = fault != TlsFault::kNoTls;
    RedisOptions options;
    if (has_tls_) {
      const std::string who = CertificateFor(fault);
      options = {.tls_cert = authority.File(who + ".crt"),
                 .tls_key = authority.File(who + ".key"),
                 .client_ca = ClientCa(authority, fault)};
    }
    FIRN_ASSIGN(server_, Redis::Start(options));
    return {};
  }
  std::string shell() const override {
    return Cat("redis-cli() { command redis-cli -p ", server_->port(), " \"$@\"; }\n");
  }
  std::vector<Right> rights() const override {
    std::vector<Right> all{{"redis-cli ACL SETUSER firn -evalsha", "evalsha"}};
    for (const std::string right : {"HMGET", "HSET", "HINCRBY"}) {
      all.push_back({"redis-cli ACL SETUSER firn -" + right, right});
    }
    all.push_back({"redis-cli ACL SETUSER firn resetkeys '~other:*'", "on firn:tag5"});
    return all;
  }

 private:
  std::unique_ptr<Redis> server_;
  bool has_tls_ = true;
};

class TlsFerretDb final : public TlsDatabase {
 public:
  std::string title() const override { return "MongoDB"; }
  int port() const override { return server_->port(); }
  Status Start(const TlsAuthority& authority, TlsFault fault) override {
    FerretDb::Tls tls;
    if (fault != TlsFault::kNoTls) {
      const std::string who = CertificateFor(fault);
      tls = {.cert = authority.File(who + ".crt"),
             .key = authority.File(who + ".key"),
             .client_ca = ClientCa(authority, fault)};
    }
    FIRN_ASSIGN(server_, FerretDb::Start(tls));
    return {};
  }
  std::string shell() const override { return {}; }
  bool has_accounts() const override { return false; }

 private:
  std::unique_ptr<FerretDb> server_;
};

}  // namespace

std::string_view NameOf(TlsFault fault) {
  constexpr std::array<std::string_view, 6> kNames{"none",    "authority", "name",
                                                   "expired", "no_tls",    "no_client_certificate"};
  return kNames[static_cast<size_t>(fault)];
}

std::unique_ptr<TlsDatabase> MakeTlsDatabase(const std::string& kind) {
  if (kind == "mysql") return std::make_unique<TlsMariaDb>();
  if (kind == "postgres") return std::make_unique<TlsPostgres>();
  if (kind == "redis") return std::make_unique<TlsRedis>();
  return std::make_unique<TlsFerretDb>();
}

}  // namespace firn
