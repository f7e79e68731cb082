// SPDX-License-Identifier: GPL-2.0
#include "device/vfio_user/server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "vfio_user/fixture.h"

namespace iaa::test {
namespace {

using device::vfio_user::Server;

class ListeningTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "iaa-server-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        directory = name;
        path = (directory / "device.sock").string();
    }
    void TearDown() override {
        if (server) server->stop();
        if (thread.joinable()) thread.join();
        server.reset();
        std::filesystem::remove_all(directory);
    }
    void start() {
        server.emplace(function, device::vfio_user::ServerOptions{
                                     .log = [this](std::string_view line) { log.add(line); }});
        server->listen(path);
        thread = std::jthread([this] { server->run(); });
    }
    void wait_detached(int times) {
        const auto end = std::chrono::steady_clock::now() + 5s;
        while (function.detached < times && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(1ms);
        ASSERT_EQ(function.detached, times);
    }

    std::filesystem::path directory;
    std::string path;
    FakeFunction function;
    Log log;
    std::optional<Server> server;
    std::jthread thread;
};

TEST_F(ListeningTest, OneClientAfterAnotherWithTheStateKept) {
    start();
    for (int round = 1; round <= 20; ++round) {
        TestClient client = TestClient::connect(path);
        client.negotiate();
        EXPECT_EQ(client.read_value<std::uint32_t>(kRegisters, 0),
                  static_cast<std::uint32_t>(round - 1));
        client.write_value<std::uint32_t>(kRegisters, 0, static_cast<std::uint32_t>(round));
        client.map_memory(0x1000, 0x1000);  // would overlap if the last client's were still there
        std::array<std::byte, 8> out{};
        EXPECT_TRUE(function.host.load()->memory().read(0x1000, out));
        client.attach_irqs(kVectors);
        function.host.load()->trigger_msix(3);
        EXPECT_EQ(client.wait_irq(3, 5s), 1U);
        EXPECT_EQ(client.wait_irq(4, 0ms), 0U);
        function.done_with_host();
        client.close();
        wait_detached(round);
    }
}

TEST_F(ListeningTest, NothingIsLeftOpenByAClient) {
    start();
    std::size_t before = 0;
    for (int round = 1; round <= 3; ++round) {
        TestClient client = TestClient::connect(path);
        client.negotiate();
        for (std::uint64_t i = 0; i < 20; ++i) client.map_memory(i * 0x1000, 0x1000);
        client.attach_irqs(kVectors);
        function.done_with_host();
        client.close();
        wait_detached(round);
        std::this_thread::sleep_for(20ms);
    }
    before = open_fds();
    {
        TestClient client = TestClient::connect(path);
        client.negotiate();
        client.attach_irqs(kVectors);
    }
    wait_detached(4);
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(open_fds(), before);
}

TEST_F(ListeningTest, TheNextClientWaitsForTheFirstToLeave) {
    start();
    TestClient first = TestClient::connect(path);
    first.negotiate();
    TestClient second = TestClient::connect(path);
    second.patience = 200ms;
    EXPECT_THROW(second.negotiate(), ClientError);
    first.close();
    second.close();
    TestClient third = TestClient::connect(path);
    third.negotiate();
    third.reset();
}

TEST_F(ListeningTest, StopEndsAClientsSession) {
    start();
    TestClient client = TestClient::connect(path);
    client.negotiate();
    const auto begin = std::chrono::steady_clock::now();
    server->stop();
    thread.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
    EXPECT_TRUE(client.wait_closed(1s));
    EXPECT_EQ(function.detached, 1);
}

TEST_F(ListeningTest, TheSocketGoesWithTheServer) {
    start();
    EXPECT_TRUE(std::filesystem::exists(path));
    server->stop();
    thread.join();
    server.reset();
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ListeningTest, ALeftoverSocketIsReplacedAndNothingElse) {
    start();
    // Another server on the same path, while this one lives.
    FakeFunction other_function;
    Server other(other_function);
    EXPECT_THROW(other.listen(path), std::system_error);
    EXPECT_TRUE(std::filesystem::exists(path));

    // A socket whose server has died: bound, and not listened on any more.
    const std::string stale = (directory / "stale.sock").string();
    {
        const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, stale.data(), stale.size());
        ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    }
    EXPECT_NO_THROW(other.listen(stale));

    const std::string file = (directory / "file").string();
    std::ofstream(file) << "precious";
    Server third(other_function);
    EXPECT_THROW(third.listen(file), std::system_error);
    EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(ListeningTest, PathsThatCannotBe) {
    Server other(function);
    EXPECT_THROW(other.listen(""), std::system_error);
    EXPECT_THROW(other.listen(std::string(200, 'x')), std::system_error);
    EXPECT_THROW(other.listen((directory / "no" / "where").string()), std::system_error);
}

}  // namespace
}  // namespace iaa::test
