// Who may call what: each call by each kind of peer over real connections. docs/security.md has the table that comes out.
#include <gmock/gmock.h>
#include <unistd.h>

#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "perfd/v1/hook.grpc.pb.h"
#include "tests/unit/daemon/service/tls_fixture.h"

namespace perfd::daemon {
namespace {

using grpc::StatusCode;
using Channel = std::shared_ptr<grpc::Channel>;

constexpr uint32_t kOther = 1;                // daemon, of every Debian
constexpr uint32_t kGames = 5;                // games, of every Debian: in the group games
constexpr uint32_t kUnknown = 3'000'000'000;  // no database has it

struct KindOfPeer {
  std::string name;
  std::function<Channel()> connect;
  std::string node = "node1";  // that it would be the agent of
};

struct KindOfCall {
  std::string name;
  std::function<std::string(const KindOfPeer&)> answer;
};

std::string InWords(const grpc::Status& status) {
  switch (status.error_code()) {
    case StatusCode::OK:
      return "yes";
    case StatusCode::PERMISSION_DENIED:
    case StatusCode::NOT_FOUND:
      return "no";
    case StatusCode::UNAVAILABLE:
      return "closed";
    default:
      return absl::StrCat("error ", static_cast<int>(status.error_code()), ": ",
                          status.error_message());
  }
}

void Within(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
}

class AuthorisationTest : public TlsTest {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "needs root to be someone else";
    TlsTest::SetUp();
    if (IsSkipped()) return;
    MakeCertificates("certs", "user nobody daemon lost old agent lost");
    MakeCertificates("other", "user root");
    MakeOld();
    TlsOptions options = Options();
    options.revoked = folder_ + "/revoked";
    std::ofstream(options.revoked) << "name lost\n";
    const auto address = host_->ListenTls(options);
    ASSERT_TRUE(address.ok()) << address.status();
    address_ = *address;
    identity_.admin_group = "games";
    host_->SetIdentity(identity_);
    SetLimit(Limit::kProfilesPerUser, 1000);
    SetLimit(Limit::kProfiles, 1024);
    agent_ = std::make_unique<FakeAgent>(Connect(), "a");
    ASSERT_TRUE(agent_->Join().has_value());
  }

  // A certificate that was good once.
  void MakeOld() const {
    const std::string command = absl::StrCat(
        "cd ", certs_,
        " && printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=db\\nserial=sn\\nnew_certs_dir=.\\n"
        "default_md=sha256\\npolicy=p\\n[p]\\ncommonName=supplied\\n[e]\\nextendedKeyUsage="
        "clientAuth\\n"
        "subjectAltName=URI:perfd://user/root\\n' > old.cnf && : > db && echo 77 > sn && "
        "openssl req -new -key user-old.key -subj /CN=old -out old.csr 2>/dev/null && "
        "openssl ca -batch -config old.cnf -extensions e -cert ca.crt -keyfile ca.key -in old.csr "
        "-startdate 20200101000000Z -enddate 20200201000000Z -notext -out user-old.crt "
        "2>/dev/null");
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  std::vector<KindOfPeer> Peers() {
    const auto tls = [this](const std::string& who) {
      return [this, who] { return Dial(address_, who); };
    };
    const auto local = [this](uint32_t uid) { return [this, uid] { return Connect(uid); }; };
    const auto foreign = [this] {
      grpc::SslCredentialsOptions options;
      options.pem_root_certs = Read("ca.crt");
      options.pem_private_key = Read("../other/user-root.key");
      options.pem_cert_chain = Read("../other/user-root.crt");
      return grpc::CreateChannel(address_, grpc::SslCredentials(options));
    };
    return {{"root, perfd's user", local(0)},
            {"administrator, TLS", tls("user-root")},
            {"administrator by group", local(kGames), "games"},
            {"owner", local(kNobody), "own"},
            {"owner, TLS", tls("user-nobody"), "own"},
            {"another user", local(kOther), "theirs"},
            {"another user, TLS", tls("user-daemon"), "theirs"},
            {"unknown uid", local(kUnknown), "unknowns"},
            {"node's agent", tls("agent-node1")},
            {"revoked", tls("user-lost")},
            {"expired", tls("user-old")},
            {"another CA", foreign},
            {"no certificate", tls("")}};
  }

  // The agent tells of an alteration.
  std::string WithAudit(const std::string& id) {
    v1::Window window = agent_->MakeWindow(id, ++sequence_);
    v1::AuditEntry& entry = *window.add_audit();
    entry.set_unix_ns(window.start_unix_ns());
    entry.set_profile_id(id);
    entry.set_node(window.node());
    entry.set_pid(100);
    entry.set_action("map");
    entry.set_outcome("ok");
    EXPECT_TRUE(agent_->SendWindow(window));
    EXPECT_THAT(agent_->ReadAcknowledged(), testing::ElementsAre(sequence_));
    return id;
  }

  // A profile of the owner's that is over, and has a report.
  std::string Finished() {
    const std::string id = WithAudit(OfOwner());
    EXPECT_TRUE(agent_->SendUpdate(id, v1::NODE_PHASE_FINISHED, 1, sequence_));
    v1::GetProfileRequest request;
    request.set_id(id);
    v1::ProfileStatus status;
    for (int i = 0; i < 500 && status.finished_unix_ns() == 0; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
      grpc::ClientContext context;
      Within(context);
      EXPECT_TRUE(Person(kNobody)->GetProfile(&context, request, &status).ok());
    }
    EXPECT_GT(status.finished_unix_ns(), 0);
    return id;
  }

  // A fresh profile of the owner's.
  std::string OfOwner() {
    std::string id;
    EXPECT_TRUE(Submit(*Person(kNobody), &id).ok());
    return id;
  }

  template <typename Request, typename Response>
  KindOfCall OfProfile(const std::string& name,
                       grpc::Status (v1::Profiler::Stub::*call)(grpc::ClientContext*,
                                                                const Request&, Response*)) {
    return {name, [this, call](const KindOfPeer& peer) {
              grpc::ClientContext context;
              Within(context);
              Request request;
              request.set_id(OfOwner());
              Response response;
              return InWords((v1::Profiler::NewStub(peer.connect()).get()->*call)(&context, request,
                                                                                  &response));
            }};
  }

  // About nobody in particular.
  template <typename Request, typename Response>
  static KindOfCall Asking(const std::string& name,
                           grpc::Status (v1::Profiler::Stub::*call)(grpc::ClientContext*,
                                                                    const Request&, Response*)) {
    return {name, [call](const KindOfPeer& peer) {
              grpc::ClientContext context;
              Within(context);
              Response response;
              return InWords((v1::Profiler::NewStub(peer.connect()).get()->*call)(
                  &context, Request(), &response));
            }};
  }

  // A list: everything, only what is one's own, or not at all.
  template <typename Request, typename Response, typename Has>
  KindOfCall Listing(const std::string& name,
                     grpc::Status (v1::Profiler::Stub::*call)(grpc::ClientContext*, const Request&,
                                                              Response*),
                     Has has_owners) {
    return {name, [this, call, has_owners](const KindOfPeer& peer) -> std::string {
              const std::string id = OfOwner();
              grpc::ClientContext context;
              Within(context);
              Response response;
              const grpc::Status status = (v1::Profiler::NewStub(peer.connect()).get()->*call)(
                  &context, Request(), &response);
              if (!status.ok()) return InWords(status);
              return has_owners(response, id) ? "yes" : "own";
            }};
  }

  std::vector<KindOfCall> Calls() {
    using Stub = v1::Profiler::Stub;
    std::vector<KindOfCall> calls;
    calls.push_back({"Submit", [this](const KindOfPeer& peer) {
                       std::string id;
                       return InWords(Submit(*v1::Profiler::NewStub(peer.connect()), &id));
                     }});
    calls.push_back(OfProfile<v1::GetProfileRequest, v1::ProfileStatus>("GetProfile of the owner's",
                                                                        &Stub::GetProfile));
    calls.push_back(
        OfProfile<v1::GetReportRequest, v1::Report>("GetReport of the owner's", &Stub::GetReport));
    calls.push_back(
        OfProfile<v1::CancelRequest, v1::ProfileStatus>("Cancel of the owner's", &Stub::Cancel));
    calls.push_back({"Watch of the owner's", [this](const KindOfPeer& peer) {
                       grpc::ClientContext context;
                       Within(context);
                       v1::WatchRequest request;
                       request.set_id(OfOwner());
                       const auto stub = v1::Profiler::NewStub(peer.connect());
                       const auto stream = stub->Watch(&context, request);
                       v1::WatchEvent event;
                       if (stream->Read(&event)) {
                         context.TryCancel();
                         (void)stream->Finish();
                         return std::string("yes");
                       }
                       return InWords(stream->Finish());
                     }});
    calls.push_back(Listing<v1::ListProfilesRequest, v1::ListProfilesResponse>(
        "ListProfiles", &Stub::ListProfiles, [](const auto& response, const std::string& id) {
          return std::any_of(response.profiles().begin(), response.profiles().end(),
                             [&](const auto& profile) { return profile.id() == id; });
        }));
    calls.push_back({"ListAudit", [this](const KindOfPeer& peer) -> std::string {
                       grpc::ClientContext context;
                       Within(context);
                       v1::ListAuditRequest request;
                       request.set_id(WithAudit(OfOwner()));
                       v1::ListAuditResponse response;
                       const auto stub = v1::Profiler::NewStub(peer.connect());
                       const grpc::Status status = stub->ListAudit(&context, request, &response);
                       if (!status.ok()) return InWords(status);
                       return response.entries_size() > 0 ? "yes" : "own";
                     }});
    calls.push_back(OfProfile<v1::ReportUrlRequest, v1::ReportUrlResponse>(
        "GetReportUrl of the owner's", &Stub::GetReportUrl));
    calls.push_back(
        {"GetHistory of the owner's", [id = Finished()](const KindOfPeer& peer) -> std::string {
           grpc::ClientContext context;
           Within(context);
           v1::HistoryResponse response;
           const auto stub = v1::Profiler::NewStub(peer.connect());
           const grpc::Status status = stub->GetHistory(&context, {}, &response);
           if (!status.ok()) return InWords(status);
           const auto is_it = [&](const auto& one) { return one.id() == id; };
           const auto& all = response.profiles();
           return std::any_of(all.begin(), all.end(), is_it) ? "yes" : "own";
         }});
    calls.push_back(
        Asking<v1::ListNodesRequest, v1::ListNodesResponse>("ListNodes", &Stub::ListNodes));
    calls.push_back(
        Asking<v1::ListLimitsRequest, v1::ListLimitsResponse>("ListLimits", &Stub::ListLimits));
    calls.push_back(
        Asking<v1::GetVersionRequest, v1::GetVersionResponse>("GetVersion", &Stub::GetVersion));
    for (const bool begins : {true, false})
      calls.push_back({begins ? "Hook.Begin" : "Hook.End", [begins](const KindOfPeer& peer) {
                         grpc::ClientContext context;
                         Within(context);
                         v1::HookRequest request;
                         request.mutable_job()->set_job("4711");
                         request.mutable_job()->set_uid(kNobody);
                         request.mutable_job()->set_nodes("node1");
                         request.mutable_job()->set_preference(v1::HOOK_PREFERENCE_NONE);
                         v1::HookResponse response;
                         const auto stub = v1::Hook::NewStub(peer.connect());
                         return InWords(begins ? stub->Begin(&context, request, &response)
                                               : stub->End(&context, request, &response));
                       }});
    calls.push_back({"Hook.List", [](const KindOfPeer& peer) {
                       grpc::ClientContext context;
                       Within(context);
                       v1::HookListResponse response;
                       return InWords(
                           v1::Hook::NewStub(peer.connect())->List(&context, {}, &response));
                     }});
    calls.push_back({"Connect as the agent of a node", [](const KindOfPeer& peer) {
                       FakeAgent agent(peer.connect(), peer.node);
                       return agent.Join().has_value() ? std::string("yes") : InWords(agent.End());
                     }});
    calls.push_back({"Connect in user mode", [](const KindOfPeer& peer) {
                       FakeAgent agent(peer.connect(), peer.node);
                       v1::Register hello = agent.Hello();
                       hello.set_user_mode(true);
                       agent.SendRegister(hello);
                       const auto message = agent.Read();
                       const bool welcome = message.has_value() && message->has_welcome();
                       return welcome ? std::string("yes") : InWords(agent.End());
                     }});
    // Last, without an agent that would have to answer it.
    const KindOfCall doctor =
        Asking<v1::DoctorRequest, v1::DoctorResponse>("Doctor", &Stub::Doctor);
    calls.push_back({doctor.name, [this, doctor](const KindOfPeer& peer) {
                       agent_.reset();
                       return doctor.answer(peer);
                     }});
    return calls;
  }

  std::string address_;
  std::unique_ptr<FakeAgent> agent_;
  uint64_t sequence_ = 0;
};

TEST_F(AuthorisationTest, TheDocumentationHasWhatEachCallAnswersEachPeer) {
  const std::vector<KindOfPeer> peers = Peers();
  std::string table = "| call |";
  for (const KindOfPeer& peer : peers) absl::StrAppend(&table, " ", peer.name, " |");
  absl::StrAppend(&table, "\n|---|");
  for (size_t i = 0; i < peers.size(); ++i) absl::StrAppend(&table, "---|");
  for (const KindOfCall& call : Calls()) {
    absl::StrAppend(&table, "\n| ", call.name, " |");
    for (const KindOfPeer& peer : peers) absl::StrAppend(&table, " ", call.answer(peer), " |");
  }
  std::stringstream text;
  text << std::ifstream(PERFD_DOCS "/security.md").rdbuf();
  EXPECT_THAT(text.str(), testing::HasSubstr(table + "\n")) << table;
}

}  // namespace
}  // namespace perfd::daemon
