"""Check of prose: no code compares a reason, a failure, a message or other text for people with a text.

Prose         An expression whose last identifier has a word of WORDS in it: `run.reason`, `status.message()`.
              A variable that is set from message() is prose to the end of its function.
Comparison    A function of FUNCTIONS with prose as an argument, or a method of METHODS on prose with a text.
              == and != between prose and a text.
Text          A literal that is not empty, a constant that is one, or a call of a function that returns one.
Fine          `reason.empty()`, `reason == ""`, enums (`reason == Reason::kNotRun`), and two reasons compared with
              each other to group equal ones.
"""
import collections
import re

import exceptions
import tree

WORDS = set("""reason reasons failure failures message messages why remark remarks verdict verdicts sentence sentences
               refusal refusals explanation explanations agreement outlier protocol""".split())
FUNCTIONS = re.compile(r"\b(?:(?:StartsWith|EndsWith|StrContains)(?:IgnoreCase)?|EqualsIgnoreCase"
                       r"|(?:Consume|Strip)(?:Prefix|Suffix)|FullMatch|PartialMatch"
                       r"|regex_match|regex_search|strcmp|strncmp|strstr)\s*\(")
METHODS = re.compile(r"(?:\.|->)\s*(?:find|rfind|starts_with|ends_with|compare|contains)\s*\(\s*")
EQUALS = re.compile(r"\s*[=!]=\s*")
# One operand: names, members, calls and indices. Parentheses nest twice at most.
PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
OPERAND = rf"[*&]?[A-Za-z_]\w*(?:\s*(?:::|\.|->)\s*\w+|{PARENTHESES}|\[[^\[\]]*\])*"
LITERAL = r'"~[^"]*"'
# What follows prose and leaves it prose.
SAME_TEXT = re.compile(r"(?:\.|->)(?:text|str|c_str|data|view|value|substr|ToString)\b(?:\([^()]*\))?")
FROM_MESSAGE = re.compile(r"\b(\w+)\s*=\s*[^;={}]*\b(?:error_)?message\(\)[^;{}]*;")
TEXT_CONSTANT = re.compile(rf"\b(?:char|string_view|string)\b[\s*&]*(?:const\s+)?(k\w+)(?:\[\])?\s*[={{]\s*{LITERAL}")
TEXT_FUNCTION = re.compile(r"\b(?:std::string|string_view|const char\s*\*)\s*(?:\w+::)*([A-Z]\w*)\(")


def words_of(identifier):
    return re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)


def is_prose(expression, variables=()):
    """Whether the value of an expression is text for people. In `message.node()` it is the node."""
    expression = re.sub(LITERAL, "", SAME_TEXT.sub("", expression))
    for name in re.findall(r"[A-Za-z_]\w*(?!\w|\s*(?:\.|->|::))", expression):
        if name in variables or not re.match(r"k[A-Z]", name) and any(w.lower() in WORDS for w in words_of(name)):
            return True
    return False


class Texts:
    """The constants and functions of the tree that are texts."""

    def __init__(self, files):
        self.constants, self.functions = set(), set()
        for path, _ in files:
            self.constants.update(TEXT_CONSTANT.findall(tree.code(path)))
            self.functions.update(TEXT_FUNCTION.findall(tree.code(path)))

    def is_text(self, expression):
        if re.match(LITERAL, expression):
            return True
        call = re.match(rf"(?:\w+::)*(\w+)\s*{PARENTHESES}$", expression)
        return call[1] in self.functions if call else expression in self.constants


def arguments(code, start):
    """What stands between a parenthesis that opens before `start` and the one that closes it."""
    depth, at = 1, start
    while depth and at < len(code):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
    return code[start:at - 1]


def message_variables(code):
    """Where a variable begins to hold a message, where its function ends, and its name."""
    for match in FROM_MESSAGE.finditer(code):
        end = code.find("\n}", match.end())
        yield match.end(), end if end >= 0 else len(code), match[1]


def operand_before(code, end):
    match = re.search(rf"({LITERAL}|{OPERAND})$", code[max(0, end - 300):end])
    return match[1] if match else ""


def operand_after(code, start):
    match = re.compile(rf"{LITERAL}|{OPERAND}").match(code, start)
    return match[0] if match else ""


def comparisons(code, texts):
    """The place of each comparison with prose."""
    spans = list(message_variables(code))

    def prose(expression, at):
        return is_prose(expression, {name for start, end, name in spans if start <= at <= end})

    for match in FUNCTIONS.finditer(code):
        if prose(arguments(code, match.end()), match.start()):
            yield match.start()
    for match in METHODS.finditer(code):
        left, right = operand_before(code, match.start()), operand_after(code, match.end())
        if texts.is_text(right) and prose(left, match.start()):
            yield match.start()
    for match in EQUALS.finditer(code):
        left, right = operand_before(code, match.start()), operand_after(code, match.end())
        if any(texts.is_text(text) and prose(other, match.start()) for text, other in ((left, right), (right, left))):
            yield match.start()


def hits():
    """File, line and text of the line of each comparison."""
    texts = Texts(tree.sources())
    for path, name in tree.sources():
        code, lines = tree.code(path), path.read_text().splitlines()
        for at in sorted(comparisons(code, texts)):
            number = code.count("\n", 0, at) + 1
            yield name, number, lines[number - 1].strip(" ;{")


def files_with_hits():
    by_file = collections.defaultdict(list)
    for name, number, line in hits():
        by_file[name].append(f"line {number}: {line}")
    return {name: exceptions.Excess((len(found),), f"{name}: compares text for people: " + "; ".join(found))
            for name, found in by_file.items()}


LISTS = {"prose": files_with_hits}


def check():
    yield from exceptions.check("prose", files_with_hits())
