#include "core/spec/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/spec/text.h"

namespace perfd {
namespace {

constexpr size_t kMaxDepth = 16;
constexpr size_t kMaxNodes = 16384;

// Builds the tree from parser events. After the first error further events are ignored.
class TreeBuilder final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Fail(mark, "a second document begins here; give one document per file");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    CheckAnchor(mark, anchor);
    Add(Make(YamlNode::Kind::kNull, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "aliases (*name) are not supported");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckAnchor(mark, anchor);
    CheckTag(mark, tag);
    YamlNode node = Make(YamlNode::Kind::kScalar, mark);
    node.text = value;
    node.quoted = tag == "!";  // yaml-cpp's tag for every scalar that is not plain
    Add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

  const std::string& error() const { return error_; }
  YamlNode TakeRoot() { return std::move(root_); }

 private:
  struct Level {
    YamlNode node;
    std::string key;  // in a map: read, its value still to come
    int key_line = 0;
    int key_column = 0;
    bool has_key = false;
  };

  static YamlNode Make(YamlNode::Kind kind, const YAML::Mark& mark) {
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void Fail(int line, int column, absl::string_view what) {
    if (error_.empty()) error_ = absl::StrCat(Position(line, column), what);
  }
  void Fail(const YAML::Mark& mark, absl::string_view what) {
    Fail(mark.line + 1, mark.column + 1, what);
  }
  void CheckAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) Fail(mark, "anchors (&name) are not supported");
  }
  void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") Fail(mark, "tags (!name) are not supported");
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    CheckAnchor(mark, anchor);
    CheckTag(mark, tag);
    if (stack_.size() >= kMaxDepth) Fail(mark, "nested too deeply");
    if (!error_.empty()) return;
    Level level;
    level.node = Make(kind, mark);
    stack_.push_back(std::move(level));
  }

  void Close() {
    if (!error_.empty() || stack_.empty()) return;
    YamlNode node = std::move(stack_.back().node);
    stack_.pop_back();
    Add(std::move(node));
  }

  void Add(YamlNode node) {
    if (++nodes_ > kMaxNodes) Fail(node.line, node.column, "too many values");
    if (!error_.empty()) return;
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& top = stack_.back();
    if (top.node.kind == YamlNode::Kind::kMap && !top.has_key) {
      if (node.kind != YamlNode::Kind::kScalar)
        return Fail(node.line, node.column, "a key must be a plain word");
      top.key = std::move(node.text);
      top.key_line = node.line;
      top.key_column = node.column;
      top.has_key = true;
      return;
    }
    node.key = std::move(top.key);
    node.key_line = top.key_line;
    node.key_column = top.key_column;
    top.has_key = false;
    top.node.items.push_back(std::move(node));
  }

  std::vector<Level> stack_;
  YamlNode root_;
  std::string error_;
  size_t nodes_ = 0;
  int documents_ = 0;
};

// What yaml-cpp would report late or not at all.
absl::Status CheckText(absl::string_view text) {
  if (text.size() > kMaxYamlBytes)
    return absl::InvalidArgumentError(
        absl::StrCat("the file has ", text.size(), " bytes; at most ", kMaxYamlBytes));
  if (!IsValidUtf8(text) || text.find('\0') != absl::string_view::npos)
    return absl::InvalidArgumentError("the file is not UTF-8 text");
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const size_t indent = line.find_first_not_of(" \t");
    const size_t tab = line.substr(0, indent).find('\t');
    if (tab == absl::string_view::npos || indent == absl::string_view::npos || line[indent] == '#')
      continue;
    return absl::InvalidArgumentError(absl::StrCat(Position(number, static_cast<int>(tab) + 1),
                                                   "tab in the indentation; use spaces"));
  }
  return absl::OkStatus();
}

}  // namespace

const char* KindName(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return node.quoted ? "text in quotes" : "a single value";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map of keys";
  }
  return "something else";
}

std::string Position(int line, int column) {
  return absl::StrCat("line ", line, ", column ", column, ": ");
}

absl::StatusOr<YamlNode> ReadYaml(absl::string_view text) {
  RETURN_IF_ERROR(CheckText(text));
  TreeBuilder builder;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (builder.error().empty() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    if (builder.error().empty())
      return absl::InvalidArgumentError(absl::StrCat(
          e.mark.is_null() ? "" : Position(e.mark.line + 1, e.mark.column + 1), e.msg));
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read the YAML text: ", e.what()));
  }
  if (!builder.error().empty()) return absl::InvalidArgumentError(builder.error());
  return builder.TakeRoot();
}

}  // namespace perfd
