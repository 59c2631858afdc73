package postgres

import (
	"strings"
	"testing"
	"unicode/utf8"

	"understudy/internal/checktest"
	"understudy/internal/store/db"
)

func TestParametersAreNumbered(t *testing.T) {
	for _, o := range []struct {
		st   db.Statement
		n    int
		want string
	}{
		{db.Statement{Head: "SELECT a FROM t WHERE b = ? AND c < ?"}, 0, "SELECT a FROM t WHERE b = $1 AND c < $2"},
		{db.Statement{Head: "SELECT ?2 WHERE ?1 = ?2 AND '?' <> 'it''s ?'"}, 0, "SELECT $2 WHERE $1 = $2 AND '?' <> 'it''s ?'"},
		{db.Statement{Head: "INSERT INTO t VALUES ", Tuple: "(?, ?)", Tail: " ON CONFLICT DO NOTHING"}, 2,
			"INSERT INTO t VALUES ($1, $2), ($3, $4) ON CONFLICT DO NOTHING"},
		{db.Statement{Head: "SELECT ?2 FROM t WHERE a = ?1 AND b IN (", Tuple: "?", Tail: ") LIMIT ?12"}, 2,
			"SELECT $2 FROM t WHERE a = $1 AND b IN ($3, $4) LIMIT $12"},
		{db.Statement{Head: "a CROSS JOIN b ON c", Standard: "a JOIN b ON c = ?"}, 0, "a JOIN b ON c = $1"},
	} {
		checktest.Equal(t, textOf(&o.st, o.n), o.want, "text of %+v", o.st)
	}
}

// PostgreSQL takes only valid UTF-8 without zero bytes. Any text must come back as it was.
func FuzzEscape(f *testing.F) {
	for _, text := range []string{"", "plain", "naïve 東京", "a\x00b", "\xff\xfe", mark, mark + "00", "x" + mark[:2], "\ufffd", "\ue000"} {
		f.Add(text, "other")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		escaped := escape(a)
		checktest.MustTrue(t, utf8.Valid(escaped), "%q is escaped to %q, which is not UTF-8", a, escaped)
		checktest.MustTrue(t, !strings.Contains(string(escaped), "\x00"), "%q is escaped to %q, which has a zero byte", a, escaped)
		checktest.MustEqual(t, unescape(escaped), a, "the text that came back")
		checktest.MustEqual(t, string(escaped) == string(escape(b)), a == b, "equality of %q and %q when escaped", a, b)
		unescape([]byte(a)) // whatever another program has written
	})
}
