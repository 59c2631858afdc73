// Tests of texts with characters that mean something to a shell or to roff.

package reference

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// odd has a command whose texts have all characters that are special somewhere.
type odd struct {
	Odd struct {
		What string `arg:"" name:"what|file" help:"A person's <file>: a\\b."`
		Way  string `enum:"left,right" default:"left" placeholder:"WAY" help:"It's 'left' or: right."`
		Into string `short:"i" placeholder:"DIR" help:"See docs/reference/search.md; a | or *."`
	} `cmd:"" help:"Do what's odd: $HOME."`
}

func describeOdd(t *testing.T) Command {
	t.Helper()
	parser, err := kong.New(&odd{}, kong.Name("understudy"), kong.Description("An overview.\n\n.A paragraph"))
	if err != nil {
		t.Fatal(err)
	}
	return Describe(parser.Model)
}

func TestCompleteAValueBehindAnEqualsSign(t *testing.T) {
	for shell, want := range map[string]string{"bash": "right\tIt's 'left' or: right.", "zsh": "right\tIt's 'left' or: right.",
		"fish": "--way=right\tIt's 'left' or: right."} {
		if got := Complete(describeOdd(t), shell, []string{"odd", "--way=ri"}); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", shell, got, want)
		}
	}
	for _, words := range [][]string{{"odd", "--into", ""}, {"odd", "-i", "x"}, {"odd", "--into=x"}, {"odd", "--into", "=", "x"}} {
		if got := Complete(describeOdd(t), "bash", words); len(got) != 1 || got[0] != ":DIR" {
			t.Errorf("%q: %q", words, got)
		}
	}
	if got := Complete(describeOdd(t), "bash", nil); len(got) != 1 || got[0] != "odd\tDo what's odd: $HOME." {
		t.Errorf("no words: %q", got)
	}
}

func TestPagesEscapeTexts(t *testing.T) {
	root := describeOdd(t)
	all := root.All()
	if len(all) != 2 {
		t.Fatalf("%d commands", len(all))
	}
	page := ManPage(all[1], "1.0")
	for _, want := range []string{".TH UNDERSTUDY\\-ODD 1 ", `A person's <file>: a\eb.`, `\fB\-i\fR, \fB\-\-into\fR=\fIDIR\fR`} {
		if !strings.Contains(page, want) {
			t.Errorf("the man page has no %q:\n%s", want, page)
		}
	}
	if overview := ManPage(root, "1.0"); !strings.Contains(overview, "\n\\&.A paragraph\n") {
		t.Errorf("a point at the beginning of a line is a request:\n%s", overview)
	}
}
