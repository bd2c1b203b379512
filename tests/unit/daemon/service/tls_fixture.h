// A whole daemon with a TCP door, whose certificates deploy/make-certs.sh made.
#ifndef TESTS_UNIT_DAEMON_SERVICE_TLS_FIXTURE_H_
#define TESTS_UNIT_DAEMON_SERVICE_TLS_FIXTURE_H_

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/daemon/service/service_fixture.h"

namespace perfd::daemon {

class TlsTest : public ServiceFixture {
 protected:
  void SetUp() override {
    ServiceFixture::SetUp();
    if (std::system("command -v openssl >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "openssl is not installed";
    certs_ = folder_ + "/certs";
    MakeCertificates("certs", "server localhost 127.0.0.1 agent node1 user root nosuchuser");
  }

  // In `to`, a folder beside others; with a CA of its own when there is none.
  void MakeCertificates(const std::string& to, const std::string& words) {
    const std::string command =
        absl::StrCat("deploy/make-certs.sh ", folder_, "/", to, " ", words, " >/dev/null");
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  // A file of `certs`, or "../FOLDER/FILE".
  std::string Read(const std::string& name) const {
    std::ifstream file(certs_ + "/" + name);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }

  TlsOptions Options() const {
    return {"127.0.0.1:0", certs_ + "/ca.crt", certs_ + "/server.crt", certs_ + "/server.key"};
  }

  // A connection of its own, that trusts `ca`; without a certificate when `who` is empty.
  std::shared_ptr<grpc::Channel> Dial(const std::string& address, const std::string& who,
                                      const std::string& ca = "ca.crt") const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = Read(ca);
    if (!who.empty()) {
      options.pem_private_key = Read(who + ".key");
      options.pem_cert_chain = Read(who + ".crt");
    }
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), own);
  }

  static grpc::Status List(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::ListProfilesResponse response;
    return v1::Profiler::NewStub(channel)->ListProfiles(&context, {}, &response);
  }

  std::string certs_;
};

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_SERVICE_TLS_FIXTURE_H_
