#include "common/text/shell_lexer.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "1 word A=1!": its line, its kind and its text; '!' marks an assignment's place, '>' a target.
std::vector<std::string> tokens(std::string_view script) {
  using enum ShellToken::Kind;
  constexpr std::pair<ShellToken::Kind, const char*> kNames[] = {{Word, "word"},
                                                                 {Operator, "op"},
                                                                 {Redirection, "to"},
                                                                 {Process, "process"},
                                                                 {HereDocument, "here"},
                                                                 {Comment, "comment"},
                                                                 {Continuation, "continued"}};
  std::vector<std::string> out;
  ShellLexer lexer(script);
  while (const auto token = lexer.next()) {
    EXPECT_EQ(script.substr(token->at, token->text.size()), token->text);
    std::string text = std::to_string(token->line) + " ";
    for (const auto& [kind, name] : kNames)
      if (kind == token->kind) text += name;
    text += " " + std::string(token->text);
    out.push_back(text + (token->assigning ? "!" : "") + (token->target ? ">" : ""));
  }
  return out;
}

// "quote 2": what is never closed, and its line.
std::string left_open(std::string_view script) {
  ShellLexer lexer(script);
  while (lexer.next()) {
  }
  const auto& open = lexer.open();
  return open ? std::string(open->what) + " " + std::to_string(open->line) : "";
}

TEST(ShellLexer, HasATokenForEachPart) {
  EXPECT_THAT(tokens("a 'b c' \\\n  d;e # f\n"),
              ElementsAre("1 word a!", "1 word 'b c'", "1 continued \\\n", "2 word d", "2 op ;",
                          "2 word e!", "2 comment # f", "2 op \n"));
  EXPECT_THAT(tokens("a&&(b)|c#d"), ElementsAre("1 word a!", "1 op &", "1 op &", "1 op (",
                                                "1 word b!", "1 op )", "1 op |", "1 word c#d!"));
  EXPECT_THAT(tokens("((i = (1) << 2)) A=1"),
              ElementsAre("1 word ((i = (1) << 2))", "1 word A=1!"));
  EXPECT_THAT(tokens(""), IsEmpty());
  EXPECT_THAT(tokens(" \t\r"), IsEmpty());
}

TEST(ShellLexer, RedirectionsHaveTargets) {
  EXPECT_THAT(tokens("a >b 2>&1 &>> c <<< d >| e"),
              ElementsAre("1 word a!", "1 to >", "1 word b>", "1 to 2>&", "1 word 1>", "1 to &>>",
                          "1 word c>", "1 to <<<", "1 word d>", "1 to >|", "1 word e>"));
  EXPECT_THAT(tokens("2>e A=1 a 2 >b"),
              ElementsAre("1 to 2>", "1 word e>", "1 word A=1!", "1 word a!", "1 word 2", "1 to >",
                          "1 word b>"));
  EXPECT_THAT(tokens("a <(b; c) > >(d)e"), ElementsAre("1 word a!", "1 process <(b; c)", "1 to >",
                                                       "1 process >(d)", "1 word e"));
  EXPECT_THAT(tokens("a > \\\nb\n"),
              ElementsAre("1 word a!", "1 to >", "1 continued \\\n", "2 word b>", "2 op \n"));
}

TEST(ShellLexer, HereDocumentsHaveTheirText) {
  EXPECT_THAT(tokens("a <<E <<-'F G' b\n1 '\nE\n\t2\n\tF G\nc\n"),
              ElementsAre("1 word a!", "1 to <<E", "1 to <<-'F G'", "1 word b", "1 op \n",
                          "2 here 1 '\n", "4 here \t2\n", "6 word c!", "6 op \n"));
  EXPECT_THAT(tokens("a <<E\nE\nb"),
              ElementsAre("1 word a!", "1 to <<E", "1 op \n", "2 here ", "3 word b!"));
  EXPECT_THAT(tokens("a <<E\r\n1\r\nE\r\nb"),
              ElementsAre("1 word a!", "1 to <<E", "1 op \n", "2 here 1\r\n", "4 word b!"));
  EXPECT_THAT(tokens("a <<E\n1\nE"), ElementsAre("1 word a!", "1 to <<E", "1 op \n", "2 here 1\n"));
}

TEST(ShellLexer, WordsContainWhatIsNestedInThem) {
  for (const char* word : {"\"a; $(b \"c )\" ')') d\"", "$(a # it's\n)", "`a; 'b`", "${a:-'}'}",
                           "\"${a:-it's}\"", "\"${a[@]%'}'}\"", "$'it\\'s ; '", "a\\ b", "a\\\nb",
                           "A=(1 # it's\n2)", "A+=(1 2)", "$(a <<E\nit's )\nE\n)", "$((1 << (2)))x",
                           "$(a <<< 'b')", "a'b'\"c\"$d", "$( ((w = 1<<2))\necho $w )",
                           "$(for ((i = 1<<3; i; i--)); do\na; done)", "$( (a <<E\nit's )\nE\n) )"})
    EXPECT_THAT(
        tokens("x " + std::string(word) + ";"),
        ElementsAre("1 word x!", "1 word " + std::string(word), testing::HasSubstr("op ;")));
}

TEST(ShellLexer, KnowsWhereAShellAssigns) {
  EXPECT_THAT(tokens("A=1 B+=2 c D=3"),
              ElementsAre("1 word A=1!", "1 word B+=2!", "1 word c!", "1 word D=3"));
  EXPECT_THAT(tokens("export -n A=1 B"),
              ElementsAre("1 word export!", "1 word -n!", "1 word A=1!", "1 word B!"));
  EXPECT_THAT(tokens("if ! time A=1"),
              ElementsAre("1 word if!", "1 word !!", "1 word time!", "1 word A=1!"));
  EXPECT_THAT(tokens("function A=1 { B=2"),
              ElementsAre("1 word function!", "1 word A=1", "1 word {!", "1 word B=2!"));
}

TEST(ShellLexer, ATestHasOnlyWordsAndComments) {
  EXPECT_THAT(tokens("[[ $a =~ (A=1) &&\n B=2 < 3 ]] && C=4"),
              ElementsAre("1 word [[!", "1 word $a", "1 word =~", "1 word (", "1 word A=1",
                          "1 word )", "1 word &&", "2 word B=2", "2 word <", "2 word 3",
                          "2 word ]]", "2 op &", "2 op &", "2 word C=4!"));
  EXPECT_THAT(tokens("[[ -n a && # it's\n# so\n -n b ]] && c"),
              ElementsAre("1 word [[!", "1 word -n", "1 word a", "1 word &&", "1 comment # it's",
                          "2 comment # so", "3 word -n", "3 word b", "3 word ]]", "3 op &",
                          "3 op &", "3 word c!"));
  EXPECT_THAT(
      tokens("[[ a#b =~ (#|b)#c ]] # d"),
      ElementsAre("1 word [[!", "1 word a#b", "1 word =~", "1 word (", "1 word #", "1 word |",
                  "1 word b", "1 word )", "1 word #c", "1 word ]]", "1 comment # d"));
  EXPECT_THAT(tokens("echo [[ ; a"),
              ElementsAre("1 word echo!", "1 word [[", "1 op ;", "1 word a!"));
}

TEST(ShellLexer, NamesWhatIsNeverClosed) {
  EXPECT_EQ(left_open("a 'b' \"c\" $(d) <<E\nE\n"), "");
  EXPECT_EQ(left_open("z=$( ((w = 1<<2)); echo $w )\na\n"), "");
  for (const auto& [script, what] : {std::pair{"a\n'b", "quote 2"},
                                     {"a\n\"b $(c)", "quote 2"},
                                     {"`a", "quote 1"},
                                     {"$'a\\'", "quote 1"},
                                     {"\n\na=(\n'b'", "bracket 3"},
                                     {"$(a", "bracket 1"},
                                     {"${a", "bracket 1"},
                                     {"((1)", "bracket 1"},
                                     {"a <(b", "bracket 1"},
                                     {"[[ a\n", "bracket 1"},
                                     {"a\nb <<E", "here-document 2"},
                                     {"a <<E\nb", "here-document 1"},
                                     {"$(a <<E\nE)\n", "here-document 1"}})
    EXPECT_EQ(left_open(script), what) << script;
}

TEST(ShellLexer, AssignmentsHaveANameAndAValue) {
  EXPECT_EQ(shell_assignment("A=1").name, "A");
  EXPECT_EQ(shell_assignment("A=1").value, "1");
  EXPECT_EQ(shell_assignment("a_1+=\"x=y\"").value, "\"x=y\"");
  for (const char* none : {"", "A", "1=2", "-A=1", "A-B=1", "=1", "$A=1"})
    EXPECT_TRUE(shell_assignment(none).name.empty()) << none;
}

TEST(ShellLexer, HostileScriptsEndQuickly) {
  for (const char* part : {"$(",   "${", "\"${a[", "$((", "((", "(",  "\"", "`",  "'",  "a=(",
                           "$(<<", "<<", "<<a\n",  "[[ ", "\\", "&>", "2>", "$'", "\n", "#"}) {
    std::string script = "x=";
    while (script.size() < (1U << 20U)) script += part;
    std::size_t end = 0;
    ShellLexer lexer(script);
    while (const auto token = lexer.next()) {
      EXPECT_LE(end, token->at) << part;
      end = token->at + token->text.size();
    }
    EXPECT_LE(end, script.size()) << part;
  }
}

}  // namespace
}  // namespace muster
