// The front on a Unix socket, beside its port.

#include "server/front/net/unix_socket.h"

#include <deque>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/net/address.h"
#include "tests/server/front/front_door_rig.h"
#include "tests/support/temp_dir.h"

namespace firn::front {
namespace {

class UnixSocketTest : public FrontDoorTest {
 protected:
  std::string path() const { return dir_ / "firn.sock"; }

  FrontDoorOptions At(const std::string& path, int io_threads = 1) const {
    FrontDoorOptions options;
    options.unix_path = path;
    options.io_threads = io_threads;
    options.limits = issuing_.limits;
    return options;
  }
  void OpenUnix(int io_threads = 1) { Open(At(path(), io_threads)); }
  // Returns why a second front cannot listen there.
  std::string Fault() {
    FrontDoor other(At(path()), SystemClock(), [this] { return MakeProtocols(); });
    return other.Start().message();
  }
  bool Exists() const { return std::filesystem::exists(std::filesystem::symlink_status(path())); }

  TempDir dir_;
};

TEST_F(UnixSocketTest, ServesBesideThePort) {
  OpenUnix();
  Peer peer(path());
  ASSERT_TRUE(peer.connected());
  EXPECT_EQ(IdFor(peer), 1);
  ExpectGoodClientIsServed();
  EXPECT_EQ(IdFor(peer), 3);
}

TEST_F(UnixSocketTest, ServesManyPeersByAllThreads) {
  OpenUnix(3);
  std::deque<Peer> peers;
  for (int i = 1; i <= 50; ++i) EXPECT_EQ(IdFor(peers.emplace_back(path())), i);
}

TEST_F(UnixSocketTest, CreatesTheFileWithTheRequestedPermissions) {
  const mode_t before = umask(0077);
  FrontDoorOptions options = At(path());
  options.unix_mode = 0662;
  Open(options);
  umask(before);
  struct stat file {};
  ASSERT_EQ(stat(path().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0662u);
  EXPECT_EQ(file.st_uid, geteuid());
}

TEST_F(UnixSocketTest, RemovesTheFileAtTheEnd) {
  OpenUnix();
  Peer peer(path());
  EXPECT_EQ(IdFor(peer), 1);
  door_->Shutdown(Milliseconds(1'000));
  EXPECT_FALSE(Exists());
  EXPECT_FALSE(Peer(path()).connected());
}

TEST_F(UnixSocketTest, ReplacesAFileOnWhichNoProgramAccepts) {
  const Address address = UnixAddress(path());
  const int killed = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(killed, address.get(), address.length), 0);
  ASSERT_EQ(listen(killed, 1), 0);
  close(killed);
  ASSERT_TRUE(Exists());
  OpenUnix();
  Peer peer(path());
  EXPECT_EQ(IdFor(peer), 1);
}

TEST_F(UnixSocketTest, RefusesAPathOnWhichAProgramAccepts) {
  OpenUnix();
  EXPECT_EQ(Fault(), "Unix socket " + path() +
                         ": another program accepts connections on it; stop it, or choose another "
                         "path");
  Peer peer(path());
  EXPECT_EQ(IdFor(peer), 1) << "the refused front has removed nothing";
}

TEST_F(UnixSocketTest, RefusesAPathOnWhichAProgramIsTooBusyToAccept) {
  const Address address = UnixAddress(path());
  const int busy = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(busy, address.get(), address.length), 0);
  ASSERT_EQ(listen(busy, 0), 0);
  const Peer waits(path());
  EXPECT_NE(Fault().find("another program accepts connections"), std::string::npos);
  EXPECT_TRUE(Exists());
  close(busy);
}

TEST_F(UnixSocketTest, KeepsAFileThatIsNoSocket) {
  std::ofstream(path()) << "text";
  EXPECT_EQ(Fault(), "Unix socket " + path() +
                         ": exists and is not a socket; remove it, or choose another path");
  EXPECT_EQ(std::filesystem::file_size(path()), 4u);
}

TEST_F(UnixSocketTest, KeepsASymbolicLink) {
  std::filesystem::create_symlink("/nowhere", path());
  EXPECT_NE(Fault().find("exists and is not a socket"), std::string::npos);
  EXPECT_TRUE(Exists());
}

TEST_F(UnixSocketTest, KeepsTheFileOfASocketThatHasReplacedIt) {
  OpenUnix();
  ASSERT_TRUE(std::filesystem::remove(path()));
  auto other = UnixSocket::Listen(path(), 0600);
  ASSERT_TRUE(other.ok()) << other.status();
  door_->Shutdown(Milliseconds(0));
  EXPECT_TRUE(Exists());
}

TEST_F(UnixSocketTest, NamesAFolderThatDoesNotExist) {
  FrontDoor door(At(dir_ / "missing/firn.sock"), SystemClock(), [this] { return MakeProtocols(); });
  const Status started = door.Start();
  EXPECT_EQ(started.code(), Code::kNotFound);
  EXPECT_NE(started.message().find("missing"), std::string::npos) << started;
}

TEST_F(UnixSocketTest, LimitsTheConnectionsOfOneUserApartFromThoseOfAnAddress) {
  issuing_.limits.connections_per_peer_max = 2;
  OpenUnix();
  Peer first(path()), second(path());
  EXPECT_EQ(IdFor(first), 1);
  EXPECT_EQ(IdFor(second), 2);
  Peer third(path());
  EXPECT_TRUE(third.SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kTooManyOfPeer));
  ExpectGoodClientIsServed();
}

}  // namespace
}  // namespace firn::front
