// The grammar: trees, their printed form, and errors that point.

package lang

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		``:                                   ``,
		`  `:                                 ``,
		`hello`:                              `hello`,
		`hello world`:                        `hello world`,
		`hello AND world`:                    `hello world`,
		`a OR b c`:                           `a OR b c`,
		`(a OR b) c`:                         `(a OR b) c`,
		`(a b) c`:                            `a b c`,
		`a OR (b OR c)`:                      `a OR b OR c`,
		`-a`:                                 `-a`,
		`NOT a`:                              `-a`,
		`-(a b)`:                             `-(a b)`,
		`--a`:                                `--a`,
		`"Hello, world"`:                     `"Hello, world"`,
		`"say \"x\" \\ y"`:                   `"say \"x\" \\ y"`,
		`hel*`:                               `hel*`,
		`"hello wor"*`:                       `"hello wor"*`,
		`or and not`:                         `or and not`,
		`"OR"`:                               `"OR"`,
		`it's`:                               `"it's"`,
		`状態 مرحبا 😀`:                         `状態 مرحبا "😀"`,
		`status:failed`:                      `status:failed`,
		`status:failed,busy`:                 `status:failed,busy`,
		`status="failed"`:                    `status=failed`,
		`body:"hello there"`:                 `body:"hello there"`,
		`price<-0.5 duration>=60`:            `price<-0.5 duration>=60`,
		`date>=2026-05-01`:                   `date>=2026-05-01`,
		`start_time:2026-05..2026-06`:        `start_time:2026-05..2026-06`,
		`start_time:2026-05..`:               `start_time:2026-05..`,
		`from:+1 415*`:                       `from:"+1415"*`,
		`from:(415)77*`:                      `from:41577*`,
		`+1 (415)* x`:                        `"+1415"* x`,
		`date:-7d`:                           `date:-7d`,
		`from:+1 555 010 0123 hello`:         `from:"+1 555 010 0123" hello`,
		`from:+15550100123 42`:               `from:"+15550100123" "42"`,
		`to:(555) 010-0123`:                  `to:"(555) 010-0123"`,
		`(from:+1 555 010 0123)`:             `from:"+1 555 010 0123"`,
		`+1 555 010 0123`:                    `number:"+1 555 010 0123"`,
		`(555) 010-0123`:                     `number:"(555) 010-0123"`,
		`5550100123`:                         `number:5550100123 OR "5550100123"`,
		`12345`:                              `"12345"`,
		`hello +15550100123`:                 `hello number:"+15550100123"`,
		`has:price no:body`:                  `has:price no:body`,
		`price:*`:                            `price:*`,
		`subresource_uris.media:x`:           `subresource_uris.media:x`,
		`age<2h`:                             `age<2h`,
		`date:2026-05-01T10:00:00+02:00`:     `date:2026-05-01T10:00:00+02:00`,
		`CA00000000000000000000000000000001`: `CA00000000000000000000000000000001`,
		`foo"bar"`:                           `foo "bar"`,
	} {
		n, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want = strings.ReplaceAll(want, `"bar"`, `bar`); n.String() != want {
			t.Errorf("%s: printed %s, want %s", text, n, want)
		}
		again(t, n)
	}
}

// again parses what a tree prints and wants the same tree.
func again(t *testing.T, n *Node) {
	t.Helper()
	text := n.String()
	if len(text) > MaxText {
		return
	}
	m, err := Parse(text)
	if err != nil {
		t.Fatalf("printed %q does not parse: %v", text, err)
	}
	if !reflect.DeepEqual(placeless(n), placeless(m)) {
		t.Fatalf("printed %q is another tree: %q", text, m)
	}
}

// placeless is a tree without where its parts stand.
func placeless(n *Node) *Node {
	out := *n
	out.at, out.end = 0, 0
	out.Of, out.Values = nil, nil
	for _, o := range n.Of {
		out.Of = append(out.Of, placeless(o))
	}
	for _, v := range n.Values {
		v.at, v.end = 0, 0
		out.Values = append(out.Values, v)
	}
	return &out
}

func TestParseErrorsPoint(t *testing.T) {
	for text, want := range map[string]struct {
		at, char int
		why      string
	}{
		`hello (world`:            {6, 6, "not closed"},
		`héllo (world`:            {7, 6, "not closed"},
		`hello "world`:            {6, 6, "not closed"},
		`hello world)`:            {11, 11, "closes nothing"},
		`a OR`:                    {4, 4, "both sides"},
		`OR a`:                    {0, 0, "both sides"},
		`a AND`:                   {2, 2, "both sides"},
		`a AND OR b`:              {2, 2, "both sides"},
		`a - b`:                   {2, 2, "nothing follows"},
		`a NOT`:                   {2, 2, "nothing follows"},
		`()`:                      {0, 0, "are empty"},
		`status:`:                 {0, 0, "no value"},
		`x status: failed`:        {2, 2, "no value"},
		`status:""`:               {7, 7, "empty"},
		`status:(a OR b)`:         {7, 7, "commas"},
		`fo*o`:                    {2, 2, "star"},
		`*`:                       {0, 0, "star"},
		`duration>1,2`:            {11, 11, "compare with one"},
		`duration:1..2..3`:        {9, 9, "two ends"},
		`duration:..`:             {9, 9, "needs an end"},
		`body:"x"y`:               {8, 8, "right after it"},
		"a \x00":                  {2, 2, "control"},
		"a \xff":                  {2, 2, "UTF-8"},
		strings.Repeat("a ", 51):  {100, 100, "at most 50"},
		strings.Repeat("(", 30):   {21, 21, "nested"},
		strings.Repeat("a", 2001): {2000, 2000, "at most 2000"},
	} {
		_, err := Parse(text)
		var e *query.SyntaxError
		if !errors.As(err, &e) || !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%.40q: %v", text, err)
			continue
		}
		checktest.Equal(t, e.At, want.at, "%.40q: e.At", text)
		checktest.Equal(t, e.Character, want.char, "%.40q: e.Character", text)
		checktest.Contains(t, e.Why, want.why, "%.40q: e.Why", text)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`hello "big world"* -x OR (a b*) AND y`, `from:+1 555 010 0123 price<-0.5`, `date:2026-05..2026-06 status:a,"b c",d*`, `(555) 010-0123`,
		`5550100123`, `--(a OR -b)`, `a:"x\"\\"`, `x:..1`, `number:(030) 90 status:"+1"`, "\u00a0é\u0301 NOT \"OR\"", `a.b_c>=+3`, `x:a,b..c`,
		`near:37.8,-122.4~25.5km`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Parse(text)
		if err != nil {
			var e *query.SyntaxError
			checktest.MustTrue(t, errors.As(err, &e), "%q: errors.As(err, &e) is false", text)
			checktest.MustTrue(t, e.At >= 0, "%q: e.At is %v, want >= 0; %#v", text, e.At, err)
			checktest.MustTrue(t, e.At <= e.End, "%q: e.At is %v; %#v", text, e.At, err)
			checktest.MustTrue(t, e.End <= len(text), "%q: e.End is %v; %#v", text, e.End, err)
			checktest.MustTrue(t, e.Why != "", "%q: e.Why is empty; %#v", text, err)
			return
		}
		again(t, n)
	})
}
