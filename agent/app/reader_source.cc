#include "agent/app/reader_source.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// A reader process as the pipeline sees it.
class ProcessCodeSource final : public CodeSource {
 public:
  explicit ProcessCodeSource(std::unique_ptr<ReaderClient> client) : client_(std::move(client)) {}
  const ModuleFacts& facts() const override { return client_->facts(); }
  absl::StatusOr<CodeFacts> Lookup(const std::vector<ElfAddress>& addresses,
                                   absl::Duration timeout) override {
    return client_->Lookup(addresses, timeout);
  }
  absl::StatusOr<bool> HasBytes(ElfAddress address, absl::string_view bytes,
                                absl::Duration timeout) override {
    return client_->HasBytes(address, bytes, timeout);
  }

 private:
  std::unique_ptr<ReaderClient> client_;
};

}  // namespace

OpenCodeSource ReaderOpener(const ReaderOptions& options) {
  return [options](const RawModule& module,
                   ModuleDetail detail) -> absl::StatusOr<std::unique_ptr<CodeSource>> {
    const ModuleFile file{
        .pid = module.pid,
        .uid = module.uid,
        .gid = module.gid,
        .path = module.key.path,
        .device_major = module.key.device_major,
        .device_minor = module.key.device_minor,
        .inode = module.key.inode,
        .map_start = module.map_start.value(),
        .map_end = module.map_end.value(),
    };
    ASSIGN_OR_RETURN(auto client, ReaderClient::Start(file, options, detail));
    return std::make_unique<ProcessCodeSource>(std::move(client));
  };
}

std::string BesideThisProgram(const char* name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(name) : (self.parent_path() / name).string();
}

}  // namespace perfd::agent
