package header

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

const aTrace, aSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

func TestTraceparentIsParsedStrictly(t *testing.T) {
	want := Traceparent{aTrace, aSpan, 1}
	for _, text := range []string{"00-" + aTrace + "-" + aSpan + "-01", "cc-" + aTrace + "-" + aSpan + "-01-what-the-future-holds",
		"01-" + aTrace + "-" + aSpan + "-f9"} {
		got, ok := ParseTraceparent(text)
		checktest.True(t, ok, "%s is refused", text)
		checktest.Equal(t, got, want, "ParseTraceparent(%q)", text)
	}
	zero := strings.Repeat("0", 32)
	for _, text := range []string{
		"", "00", "00-" + aTrace + "-" + aSpan, "00-" + aTrace + "-" + aSpan + "-01-more", "ff-" + aTrace + "-" + aSpan + "-01",
		"00-" + zero + "-" + aSpan + "-01", "00-" + aTrace + "-" + zero[:16] + "-01", "00-" + strings.ToUpper(aTrace) + "-" + aSpan + "-01",
		"00-" + aTrace + "-" + aSpan + "-0g", "0 -" + aTrace + "-" + aSpan + "-01", "01-" + aTrace + "-" + aSpan + "-01.more",
		"00_" + aTrace + "-" + aSpan + "-01", " 00-" + aTrace + "-" + aSpan + "-01", "00-" + aTrace + "-" + aSpan + "-01 ",
	} {
		_, ok := ParseTraceparent(text)
		checktest.True(t, !ok, "%q is taken", text)
	}
}

// shape is the grammar of W3C Trace Context, 3.2.2, without its rules about zeros and versions.
var shape = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)

func FuzzTraceparent(f *testing.F) {
	f.Add("00-" + aTrace + "-" + aSpan + "-01")
	f.Add("fe-" + aTrace + "-" + aSpan + "-ff-x")
	f.Add("00-" + aTrace + "-" + aSpan + "-\xff1")
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := ParseTraceparent(text)
		if !ok {
			checktest.Equal(t, got, Traceparent{}, "%q is refused, but", text)
			return
		}
		if !shape.MatchString(strings.ReplaceAll(text, "\n", " ")) {
			t.Fatalf("%q is taken", text)
		}
		again, ok := ParseTraceparent(fmt.Sprintf("00-%s-%s-%02x", got.Trace, got.Span, got.Flags))
		checktest.True(t, ok, "what was read from %q is no traceparent", text)
		checktest.Equal(t, again, got, "again from %q", text)
	})
}
