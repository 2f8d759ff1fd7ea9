// Sentences on a terminal are wrapped at words, below the beginning of their text.
#include "client/render/wrap.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include <array>

#include "client/render/event_text.h"
#include "client/render/incident.h"
#include "client/render/style.h"
#include "common/io/unique_fd.h"

namespace muster::render {
namespace {

// Regression: `muster show` printed sentences of 200 columns on a terminal of 80. The terminal cut
// words in the middle, and the rows below began at the left edge.
TEST(Wrap, BreaksAtWordsAndIndentsTheRowsBelow) {
  EXPECT_EQ(
      wrap("why          the job needs 16 devices of type npu, and the cluster has 8", 13, 40),
      "why          the job needs 16 devices of\n"
      "             type npu, and the cluster\n"
      "             has 8");
}

TEST(Wrap, ALineStaysWholeWhereItFitsOrIsNotForATerminal) {
  const std::string line = "  rank 3 on node 'n1' ended with status 1 ";
  EXPECT_EQ(wrap(line, 2, line.size()), line);
  EXPECT_EQ(wrap(line, 2, 0), line);
  EXPECT_EQ(wrap("", 2, 1), "");
}

TEST(Wrap, AWordWiderThanARowIsNotCut) {
  const std::string path = "/data/of/a/team/with/a/very/long/name/tokenizer.model";
  EXPECT_EQ(wrap("verdict      user error: no file " + path + " in the job's directory", 13, 40),
            "verdict      user error: no file\n"
            "             " +
                path +
                "\n"
                "             in the job's directory");
  EXPECT_EQ(wrap("output       " + path, 13, 40), "output       " + path)
      << "the row below has no more room";
}

TEST(Wrap, CountsColumnsAndNotBytes) {
  EXPECT_EQ(wrap("  数据 数据 数据 数据 数据 数据 数据 数据 数据 数据", 2, 20),
            "  数据 数据 数据 数据 数据 数据\n"
            "  数据 数据 数据 数据");
  EXPECT_EQ(wrap("  \x1b[1mthe loss is \x1b[31mnot finite\x1b[0m since step 20", 2, 26),
            "  \x1b[1mthe loss is \x1b[31mnot finite\x1b[0m\n"
            "  since step 20");
}

TEST(Wrap, OnlyBlanksAtABreakAreRemoved) {
  EXPECT_EQ(wrap("  two  blanks stay   here ", 2, 14),
            "  two  blanks\n"
            "  stay   here");
}

TEST(Wrap, RowsBeginFurtherLeftIfTheTextHasNoRoom) {
  const std::string event =
      "-  llama-7b         attempt 2   rank-exited           rank 3 on node 'n1' ended with status "
      "1";
  EXPECT_EQ(wrap(event, 54, 60),
            "-  llama-7b         attempt 2   rank-exited           rank 3\n"
            "                              on node 'n1' ended with status\n"
            "                              1");
  EXPECT_EQ(wrap("12:00:00  attempt 2  rank-exited  rank 3", 34, 30),
            "12:00:00  attempt 2  rank-exited\n"
            "               rank 3")
      << "what is before the text is not wrapped";
}

TEST(Wrap, EventsFieldsAndIncidentsAreWrapped) {
  v1::Event event;
  event.set_attempt(2);
  event.set_type("rank-exited");
  event.set_text("rank 3 on node 'n1' ended with status 1; the log has the cause");
  const std::string start = "-  attempt 2   rank-exited           ";
  EXPECT_EQ(event_line(event, {}, false, 72), start + "rank 3 on node 'n1' ended with\n" +
                                                  std::string(start.size(), ' ') +
                                                  "status 1; the log has the cause");
  EXPECT_EQ(event_line(event, {}, false), start + event.text());

  EXPECT_EQ(field_line({.colour = true}, "verdict", "the kernel killed rank 3: out of memory", 40),
            "\x1b[2mverdict     \x1b[0m the kernel killed rank 3:\n"
            "             out of memory\n");

  v1::Incident incident;
  incident.set_attempt(2);
  incident.mutable_verdict()->set_reason("rank 3 on node 'n1' was killed by SIGKILL");
  incident.mutable_verdict()->set_evidence("the kernel's log of the node names the process 4711");
  incident.mutable_detected()->set_seconds(1'700'000'000);
  incident.mutable_placed()->set_seconds(1'700'000'020);
  incident.set_resumed_from(1'234'567'890);
  EXPECT_EQ(incident_text(incident, {}, {}, 44),
            "attempt 2 broke: rank 3 on node 'n1' was\n"
            "                 killed by SIGKILL\n"
            "  the kernel's log of the node names the\n"
            "  process 4711\n"
            "          0  detected\n"
            "       +20s  placed, from the checkpoint of\n"
            "             step 1234567890\n");
}

TEST(Wrap, OnlyATerminalHasAWidth) {
  const io::UniqueFd terminal(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
  EXPECT_EQ(row_width(terminal.get()), 80U);

  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const io::UniqueFd out(ends[0]);
  const io::UniqueFd in(ends[1]);
  EXPECT_EQ(row_width(in.get()), 0U);
  const io::UniqueFd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(row_width(file.get()), 0U);
}

}  // namespace
}  // namespace muster::render
