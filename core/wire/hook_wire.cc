#include "core/wire/hook_wire.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"

namespace perfd::wire {
namespace {

constexpr size_t kMaxNameBytes = 255;
constexpr size_t kMaxSchedulerBytes = 32;
constexpr int kMaxRecords = 1000;

static_assert(static_cast<int>(HookPreference::kOptOut) + 1 == v1::HOOK_PREFERENCE_OPT_OUT);
static_assert(static_cast<int>(HookDecision::kNone) + 1 == v1::HOOK_DECISION_NONE);

absl::StatusOr<HookDecision> ReadDecision(v1::HookDecision decision) {
  return ModelEnum(decision, HookDecision::kNone, "decision");
}

v1::HookRecord ToProto(const HookRecord& record) {
  v1::HookRecord out;
  *out.mutable_job() = wire::ToProto(record.job);
  out.set_decision(WireEnum<v1::HookDecision>(record.answer.decision));
  out.set_reason(CleanText(record.answer.reason));
  out.set_profile_id(CleanText(record.answer.profile_id));
  out.set_number(record.number);
  out.set_seen_unix_ns(record.seen_unix_ns);
  out.set_ended_unix_ns(record.ended_unix_ns);
  return out;
}

absl::StatusOr<HookRecord> ReadRecord(const v1::HookRecord& record) {
  RETURN_IF_ERROR(CheckText(record.reason(), "records.reason"));
  RETURN_IF_ERROR(CheckText(record.profile_id(), "records.profile_id", kMaxNameBytes));
  HookRecord out;
  ASSIGN_OR_RETURN(out.job, wire::FromProto(record.job()));
  ASSIGN_OR_RETURN(out.answer.decision, ReadDecision(record.decision()));
  out.answer.reason = record.reason();
  out.answer.profile_id = record.profile_id();
  out.number = record.number();
  out.seen_unix_ns = record.seen_unix_ns();
  out.ended_unix_ns = record.ended_unix_ns();
  return out;
}

}  // namespace

v1::HookJob ToProto(const HookJob& job) {
  v1::HookJob out;
  out.set_cluster(CleanText(job.cluster));
  out.set_job(CleanText(job.job));
  out.set_restart(job.restart);
  out.set_uid(job.uid);
  out.set_user(CleanText(job.user));
  out.set_account(CleanText(job.account));
  out.set_partition(CleanText(job.partition));
  out.set_nodes(CleanText(job.nodes));
  out.set_node(CleanText(job.node));
  out.set_preference(WireEnum<v1::HookPreference>(job.preference));
  out.set_preset(CleanText(job.preset));
  out.set_scheduler(CleanText(job.scheduler));
  return out;
}

absl::StatusOr<HookJob> FromProto(const v1::HookJob& job) {
  RETURN_IF_ERROR(
      CheckRange(static_cast<int64_t>(job.job().size()), 1, kMaxNameBytes, "job.job (bytes)"));
  RETURN_IF_ERROR(CheckText(job.cluster(), "job.cluster", kMaxNameBytes));
  RETURN_IF_ERROR(CheckRange(job.restart(), 0, INT32_MAX, "job.restart"));
  RETURN_IF_ERROR(CheckText(job.user(), "job.user", kMaxNameBytes));
  RETURN_IF_ERROR(CheckText(job.account(), "job.account", kMaxNameBytes));
  RETURN_IF_ERROR(CheckText(job.partition(), "job.partition", kMaxNameBytes));
  RETURN_IF_ERROR(CheckText(job.nodes(), "job.nodes"));
  RETURN_IF_ERROR(CheckText(job.node(), "job.node", kMaxNameBytes));
  RETURN_IF_ERROR(CheckText(job.scheduler(), "job.scheduler", kMaxSchedulerBytes));
  HookJob out;
  ASSIGN_OR_RETURN(out.preference,
                   ModelEnum(job.preference(), HookPreference::kOptOut, "job.preference"));
  out.cluster = job.cluster();
  out.job = job.job();
  out.restart = job.restart();
  out.uid = job.uid();
  out.user = job.user();
  out.account = job.account();
  out.partition = job.partition();
  out.nodes = job.nodes();
  out.node = job.node();
  // The one field that is the user's own word: a job must not go uncounted for it. No policy has a preset of such a name.
  out.preset = CleanText(absl::string_view(job.preset()).substr(0, kMaxNameBytes));
  out.scheduler = job.scheduler();
  return out;
}

v1::HookResponse ToProto(const HookAnswer& answer) {
  v1::HookResponse out;
  out.set_decision(WireEnum<v1::HookDecision>(answer.decision));
  out.set_reason(CleanText(answer.reason));
  out.set_profile_id(CleanText(answer.profile_id));
  return out;
}

absl::StatusOr<HookAnswer> FromProto(const v1::HookResponse& answer) {
  RETURN_IF_ERROR(CheckText(answer.reason(), "reason"));
  RETURN_IF_ERROR(CheckText(answer.profile_id(), "profile_id", kMaxNameBytes));
  HookAnswer out;
  ASSIGN_OR_RETURN(out.decision, ReadDecision(answer.decision()));
  out.reason = answer.reason();
  out.profile_id = answer.profile_id();
  return out;
}

v1::HookListResponse ToProto(const HookOverview& overview) {
  v1::HookListResponse out;
  for (const HookRecord& record : overview.records) *out.add_records() = ToProto(record);
  for (const auto& [decision, jobs] : overview.counts) {
    v1::HookCount* count = out.add_counts();
    count->set_decision(WireEnum<v1::HookDecision>(decision));
    count->set_jobs(jobs);
  }
  out.set_policy(CleanText(overview.policy));
  out.set_policy_error(CleanText(overview.policy_error));
  out.set_active(overview.active);
  out.set_today(overview.today);
  return out;
}

absl::StatusOr<HookOverview> FromProto(const v1::HookListResponse& overview) {
  RETURN_IF_ERROR(CheckCount(overview.records_size(), kMaxRecords, "records"));
  RETURN_IF_ERROR(CheckCount(overview.counts_size(), kHookDecisionCount, "counts"));
  RETURN_IF_ERROR(CheckText(overview.policy(), "policy"));
  RETURN_IF_ERROR(CheckText(overview.policy_error(), "policy_error"));
  HookOverview out;
  for (const v1::HookRecord& from : overview.records()) {
    ASSIGN_OR_RETURN(HookRecord record, ReadRecord(from));
    out.records.push_back(std::move(record));
  }
  for (const v1::HookCount& from : overview.counts()) {
    ASSIGN_OR_RETURN(const HookDecision decision, ReadDecision(from.decision()));
    out.counts.emplace_back(decision, from.jobs());
  }
  out.policy = overview.policy();
  out.policy_error = overview.policy_error();
  out.active = overview.active();
  out.today = overview.today();
  return out;
}

}  // namespace perfd::wire
