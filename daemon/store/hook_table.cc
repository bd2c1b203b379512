#include "daemon/store/hook_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "daemon/store/profile_id.h"
#include "daemon/store/profile_table.h"

namespace perfd::daemon {
namespace {

constexpr char kColumns[] =
    "id, cluster, job, restart, uid, user, account, partition, number, decision, reason, profile, "
    "wait_ns, seen_ns, ended_ns, scheduler";
constexpr int64_t kDayNs = 24 * 3600 * kNsPerSecond;

// Of a row that begins with kColumns.
HookRecord ReadRow(const Statement& row) {
  HookRecord record;
  record.id = row.Int(0);
  record.job.cluster = row.Text(1);
  record.job.job = row.Text(2);
  record.job.restart = static_cast<int32_t>(std::max<int64_t>(0, row.Int(3)));  // < 0: put aside
  record.job.uid = static_cast<uint32_t>(row.Int(4));
  record.job.user = row.Text(5);
  record.job.account = row.Text(6);
  record.job.partition = row.Text(7);
  record.number = row.Int(8);
  const int64_t decision = row.Int(9);
  record.answer.decision = decision >= 0 && decision < kHookDecisionCount
                               ? static_cast<HookDecision>(decision)
                               : HookDecision::kNone;
  record.answer.reason = row.Text(10);
  if (row.Int(11) != 0) record.answer.profile_id = FormatProfileId(row.Int(11));
  record.wait_ns = row.Int(12);
  record.seen_unix_ns = row.Int(13);
  record.ended_unix_ns = row.Int(14);
  record.job.scheduler = row.Text(15);
  return record;
}

absl::Status SetCounter(Database& db, absl::string_view name, int64_t count) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("INSERT OR REPLACE INTO hook_counter(name, count) VALUES(?1, ?2)"));
  statement.Bind(1, name);
  statement.Bind(2, count);
  return statement.Run();
}

absl::Status Insert(Database& db, const HookRecord& record, int64_t profile) {
  ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare("INSERT INTO hook_job(cluster, job, restart, uid, user, account, partition, "
                 "number, decision, reason, profile, wait_ns, seen_ns, ended_ns, scheduler) "
                 "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"));
  insert.Bind(1, record.job.cluster);
  insert.Bind(2, record.job.job);
  insert.Bind(3, static_cast<int64_t>(record.job.restart));
  insert.Bind(4, static_cast<int64_t>(record.job.uid));
  insert.Bind(5, record.job.user);
  insert.Bind(6, record.job.account);
  insert.Bind(7, record.job.partition);
  insert.Bind(8, record.number);
  insert.Bind(9, static_cast<int64_t>(record.answer.decision));
  insert.Bind(10, record.answer.reason);
  insert.Bind(11, profile);
  insert.Bind(12, record.wait_ns);
  insert.Bind(13, record.seen_unix_ns);
  insert.Bind(14, record.ended_unix_ns);
  insert.Bind(15, record.job.scheduler);
  return insert.Run();
}

absl::Status DeleteMarks(Database& db, int64_t id) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare("DELETE FROM hook_node WHERE job=?1"));
  statement.Bind(1, id);
  return statement.Run();
}

// Its name belongs to another run from now on; the row stays, as the quota counts its profile.
absl::Status PutAside(Database& db, int64_t id, int64_t unix_ns) {
  RETURN_IF_ERROR(DeleteMarks(db, id));
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("UPDATE hook_job SET restart=-id, ended_ns=CASE ended_ns WHEN 0 THEN "
                              "?2 ELSE ended_ns END WHERE id=?1"));
  statement.Bind(1, id);
  statement.Bind(2, unix_ns);
  return statement.Run();
}

absl::Status SetEnded(Database& db, int64_t id, int64_t unix_ns) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare("UPDATE hook_job SET ended_ns=?2 WHERE id=?1"));
  statement.Bind(1, id);
  statement.Bind(2, unix_ns);
  return statement.Run();
}

struct Mark {
  std::string node;
  int64_t ended_ns = 0;
};

// At most two, open ones first.
absl::StatusOr<std::vector<Mark>> ReadMarks(Database& db, int64_t id, absl::string_view first,
                                            absl::string_view last) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT node, ended_ns FROM hook_node WHERE job=?1 AND node>=?2 AND "
                              "node<=?3 ORDER BY ended_ns LIMIT 2"));
  statement.Bind(1, id);
  statement.Bind(2, first);
  statement.Bind(3, last);
  std::vector<Mark> marks;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return marks;
    marks.push_back({statement.Text(0), statement.Int(1)});
  }
}

// The mark of that name; else, as prologs and epilogs call a node by its short name or by its full one, of the only node
// that may be meant. Two full names are two nodes.
absl::StatusOr<std::optional<Mark>> FindMark(Database& db, int64_t id, absl::string_view node) {
  ASSIGN_OR_RETURN(std::vector<Mark> marks, ReadMarks(db, id, node, node));
  if (marks.empty() && !node.empty() && node.front() != '.') {
    const absl::string_view name = node.substr(0, node.find('.'));
    const bool full = name.size() < node.size();
    // No name of a host has a '/', which follows '.' in ASCII.
    ASSIGN_OR_RETURN(marks, ReadMarks(db, id, full ? std::string(name) : absl::StrCat(name, "."),
                                      full ? std::string(name) : absl::StrCat(name, "/")));
    const bool one_is_open = marks.size() == 2 && marks[0].ended_ns == 0 && marks[1].ended_ns != 0;
    if (marks.size() == 2 && !one_is_open) marks.clear();
  }
  if (marks.empty()) return std::optional<Mark>();
  return std::optional<Mark>(std::move(marks.front()));
}

// When the last node that had begun ended; 0: one is left, or none has ended.
absl::StatusOr<int64_t> NodesEnded(Database& db, int64_t id) {
  return db.QueryInt(absl::StrCat("SELECT coalesce(max(ended_ns), 0) FROM hook_node WHERE job=", id,
                                  " AND NOT EXISTS(SELECT 1 FROM hook_node n WHERE n.job=", id,
                                  " AND n.ended_ns=0 AND n.node<>'')"));
}

// `ended_ns` 0: it has begun.
absl::Status StoreMark(Database& db, int64_t id, absl::string_view node, int64_t ended_ns) {
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare("INSERT OR REPLACE INTO hook_node(job, node, ended_ns) VALUES(?1, ?2, ?3)"));
  statement.Bind(1, id);
  statement.Bind(2, node);
  statement.Bind(3, ended_ns);
  return statement.Run();
}

// Another job may have been given the same number while this one was decided about: that one was there first.
absl::Status CheckCounter(Database& db, const HookAdmission& admission) {
  ASSIGN_OR_RETURN(const int64_t counted, ReadHookCounter(db, admission.counter));
  if (counted == admission.record.number - 1) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("job ", admission.record.job.job, " would be number ",
                                         admission.record.number, " after number ", counted));
}

// Indexed by profile: those that are not over, with the nodes where their job has ended.
absl::StatusOr<std::map<int64_t, std::vector<std::string>>> EndedNodes(Database& db) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT j.profile, n.node FROM profile p JOIN hook_job j ON "
                              "j.profile=p.id JOIN hook_node n ON n.job=j.id WHERE p.final=0 AND "
                              "n.ended_ns<>0"));
  std::map<int64_t, std::vector<std::string>> nodes;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return nodes;
    nodes[statement.Int(0)].push_back(statement.Text(1));
  }
}

}  // namespace

absl::StatusOr<HookRecord> AdmitJob(Database& db, const HookAdmission& admission) {
  HookRecord record = admission.record;
  if (admission.replaces != 0)
    RETURN_IF_ERROR(PutAside(db, admission.replaces, record.seen_unix_ns));
  ASSIGN_OR_RETURN(const std::optional<HookRecord> known, FindJob(db, record.job));
  if (known.has_value())
    return absl::AlreadyExistsError(absl::StrCat("job ", record.job.job, " was decided about"));
  if (record.number != 0) RETURN_IF_ERROR(CheckCounter(db, admission));
  int64_t profile = 0;
  if (admission.profile.has_value()) {
    ASSIGN_OR_RETURN(record.answer.profile_id,
                     InsertProfile(db, *admission.profile, /*by_site=*/true));
    ASSIGN_OR_RETURN(profile, ParseProfileId(record.answer.profile_id));
  }
  if (record.number != 0) RETURN_IF_ERROR(SetCounter(db, admission.counter, record.number));
  RETURN_IF_ERROR(Insert(db, record, profile));
  record.id = db.LastInsertId();
  RETURN_IF_ERROR(StoreMark(db, record.id, admission.node, 0));
  return record;
}

absl::Status BeginNode(Database& db, int64_t id, absl::string_view node) {
  ASSIGN_OR_RETURN(const std::optional<Mark> mark, FindMark(db, id, node));
  RETURN_IF_ERROR(StoreMark(db, id, mark.has_value() ? mark->node : std::string(node), 0));
  return SetEnded(db, id, 0);
}

absl::Status EndNode(Database& db, int64_t id, absl::string_view node, int64_t unix_ns,
                     bool only_begun) {
  if (!node.empty()) {
    ASSIGN_OR_RETURN(const std::optional<Mark> mark, FindMark(db, id, node));
    if (!mark.has_value() && only_begun) {
      ASSIGN_OR_RETURN(const std::optional<Mark> nameless, FindMark(db, id, ""));
      if (!nameless.has_value()) return absl::OkStatus();
    }
    RETURN_IF_ERROR(StoreMark(db, id, mark.has_value() ? mark->node : std::string(node), unix_ns));
    ASSIGN_OR_RETURN(const int64_t open, db.QueryInt(absl::StrCat(
                                             "SELECT EXISTS(SELECT 1 FROM hook_node WHERE job=", id,
                                             " AND ended_ns=0)")));
    if (open != 0) return absl::OkStatus();
  }
  RETURN_IF_ERROR(SetEnded(db, id, unix_ns));
  return DeleteMarks(db, id);
}

absl::Status ApplyHookRetention(Database& db, int64_t most_jobs, int64_t most_marks) {
  // Of profiles, those of the last day (the quota counts them) and those that are not over stay, however many jobs came since.
  RETURN_IF_ERROR(db.Exec(absl::StrCat(
      "DELETE FROM hook_job WHERE id<=(SELECT max(id) FROM hook_job)-", most_jobs,
      " AND NOT (profile>0 AND (seen_ns>(SELECT seen_ns FROM hook_job ORDER BY id DESC LIMIT 1)-",
      kDayNs, " OR EXISTS(SELECT 1 FROM profile p WHERE p.id=hook_job.profile AND p.final=0)))")));
  RETURN_IF_ERROR(
      db.Exec("DELETE FROM hook_node WHERE NOT EXISTS(SELECT 1 FROM hook_job j WHERE "
              "j.id=hook_node.job)"));
  return db.Exec(absl::StrCat(
      "DELETE FROM hook_node WHERE job<=(SELECT job FROM hook_node ORDER BY job DESC LIMIT 1 "
      "OFFSET ",
      most_marks, ")"));
}

absl::StatusOr<std::optional<HookRecord>> FindJob(Database& db, const HookJob& job) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare(absl::StrCat("SELECT ", kColumns,
                                           " FROM hook_job WHERE cluster=?1 AND job=?2 AND "
                                           "restart=?3")));
  statement.Bind(1, job.cluster);
  statement.Bind(2, job.job);
  statement.Bind(3, static_cast<int64_t>(job.restart));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return std::optional<HookRecord>();
  return std::optional<HookRecord>(ReadRow(statement));
}

absl::StatusOr<std::optional<HookRun>> FindRun(Database& db, const HookJob& job,
                                               absl::string_view node) {
  ASSIGN_OR_RETURN(std::optional<HookRecord> record, FindJob(db, job));
  if (!record.has_value()) return std::optional<HookRun>();
  HookRun run;
  run.record = *std::move(record);
  if (node.empty()) {
    ASSIGN_OR_RETURN(run.nodes_ended_unix_ns, NodesEnded(db, run.record.id));
  }
  ASSIGN_OR_RETURN(const std::optional<Mark> mark, FindMark(db, run.record.id, node));
  if (!mark.has_value()) return std::optional<HookRun>(std::move(run));
  run.part_ended_unix_ns = mark->ended_ns;
  run.part = run.part_ended_unix_ns == 0 ? HookRun::Part::kBegun : HookRun::Part::kEnded;
  return std::optional<HookRun>(std::move(run));
}

absl::StatusOr<std::vector<HookRecord>> ReadJobs(Database& db, std::optional<uint32_t> uid,
                                                 int32_t limit) {
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare(absl::StrCat("SELECT ", kColumns,
                              " FROM hook_job WHERE (?1<0 OR uid=?1) ORDER BY id DESC LIMIT ?2")));
  statement.Bind(1, uid.has_value() ? static_cast<int64_t>(*uid) : int64_t{-1});
  statement.Bind(2, static_cast<int64_t>(limit));
  std::vector<HookRecord> records;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return records;
    records.push_back(ReadRow(statement));
  }
}

absl::StatusOr<int64_t> ReadHookCounter(Database& db, absl::string_view name) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare("SELECT count FROM hook_counter WHERE name=?1"));
  statement.Bind(1, name);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : int64_t{0};
}

absl::StatusOr<HookUse> ReadHookUse(Database& db, int64_t day_unix_ns) {
  HookUse use;
  ASSIGN_OR_RETURN(use.active,
                   db.QueryInt("SELECT count(*) FROM profile p JOIN hook_job j ON j.profile=p.id "
                               "WHERE p.final=0"));
  // A profile that failed has measured nothing; one that was deleted had its day.
  ASSIGN_OR_RETURN(Statement today,
                   db.Prepare("SELECT count(*) FROM hook_job j LEFT JOIN profile p ON "
                              "p.id=j.profile WHERE j.seen_ns>=?1 AND j.profile>0 AND "
                              "coalesce(p.state, -1)<>?2"));
  today.Bind(1, day_unix_ns);
  today.Bind(2, static_cast<int64_t>(ProfileState::kFailed));
  ASSIGN_OR_RETURN(const bool row, today.Step());
  if (row) use.today = today.Int(0);
  return use;
}

absl::StatusOr<std::vector<HookWait>> ReadHookWaits(Database& db) {
  ASSIGN_OR_RETURN(const auto ended_nodes, EndedNodes(db));
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare("SELECT j.profile, j.seen_ns+j.wait_ns, j.ended_ns, j.job, "
                 "j.scheduler, j.wait_ns FROM profile p JOIN hook_job j ON j.profile=p.id "
                 "WHERE p.final=0"));
  std::vector<HookWait> waits;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return waits;
    HookWait wait;
    wait.profile_id = FormatProfileId(statement.Int(0));
    wait.until_unix_ns = statement.Int(1);
    wait.ended = statement.Int(2) != 0;
    wait.job.job = statement.Text(3);
    wait.job.scheduler = statement.Text(4);
    wait.wait_ns = statement.Int(5);
    if (const auto nodes = ended_nodes.find(statement.Int(0)); nodes != ended_nodes.end())
      wait.ended_nodes = nodes->second;
    waits.push_back(std::move(wait));
  }
}

absl::StatusOr<std::vector<uint64_t>> CountJobs(Database& db) {
  std::vector<uint64_t> counts(kHookDecisionCount);
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT decision, count(*) FROM hook_job GROUP BY decision"));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return counts;
    const auto decision = static_cast<size_t>(statement.Int(0));
    if (decision < counts.size()) counts[decision] = static_cast<uint64_t>(statement.Int(1));
  }
}

}  // namespace perfd::daemon
