// Words of reasons, changes and failures; the text of upstream errors.

package understudy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

func TestSizesAreWrittenAsInTheSettings(t *testing.T) {
	for limit, want := range map[int64]string{64 << 20: "64MiB", 128 << 10: "128KiB", 1<<20 + 1: "1048577 bytes"} {
		if got := (&SizeError{"sources.main.max_body", limit}).Error(); got != "raise sources.main.max_body, which is "+want {
			t.Error(got)
		}
	}
}

// The words that go over the wire and into logs stay what they are.
func TestWords(t *testing.T) {
	checktest.Equal(t, Appeared.String(), "came", "words of changes: Appeared.String()")
	checktest.Equal(t, Changed.String(), "changed", "words of changes: Changed.String()")
	checktest.Equal(t, Deleted.String(), "went", "words of changes: Deleted.String()")
	checktest.Equal(t, ChangeType(9).String(), "unknown", "words of changes: ChangeType(9).String()")
	seen := map[string]bool{}
	for f := FailNone; f <= FailDown; f++ {
		seen[f.String()] = true
	}
	if len(seen) != 7 {
		t.Errorf("two failures share a word: %v", seen)
	}
	e := &UpstreamError{Why: FailServer, Status: 503, Err: errors.New("boom")}
	checktest.Equal(t, e.Error(), "upstream server error (status 503): boom", "e.Error()")
	checktest.Equal(t, e.ShortText(), "upstream 503", "e.ShortText()")
	checktest.True(t, errors.Is(e, ErrUnavailable), "e is %v, want ErrUnavailable", e)
	checktest.True(t, errors.Is(e, e.Err), "e is %v, want e.Err", e)
	e = &UpstreamError{Why: FailUnusable, Status: 200}
	checktest.Equal(t, e.Error(), "upstream unusable answer (status 200)", "e.Error()")
	checktest.Equal(t, e.ShortText(), "upstream unusable answer", "e.ShortText()")
	checktest.True(t, errors.Is(e, ErrUnavailable), "e is %v, want ErrUnavailable", e)
}

// TestPlainTextHasNoPackagesAndKinds runs over errors as packages make them.
func TestPlainTextHasNoPackagesAndKinds(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf(`feed: %w: no webhook is called "x"`, ErrNotFound), `no webhook is called "x"`},
		{fmt.Errorf("mirror: %w: access: %w: the list has no filter", ErrInvalid, ErrInvalid), "the list has no filter"},
		{errors.Join(errors.New("store: the disk is full"), errors.New("walk: ended")), "the disk is full\nended"},
		{fmt.Errorf("understudy.yml: %w", StripPrefixes(errors.New("access: roles.a: no such class"))), "understudy.yml: roles.a: no such class"},
		{errors.New("understudy.yml: jobs: workers: 0"), "understudy.yml: jobs: workers: 0"},
		{fmt.Errorf("search: %w: 40 %% done", ErrIndexing), "the index is being built: 40 % done"},
		{errors.New("one.secret: too short\ncredentials: two.secret: too short"), "one.secret: too short\ncredentials: two.secret: too short"},
		{ErrNotFound, "not found"},
		{errors.New("feed: "), ""},
	} {
		if got := PlainText(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	if err := StripPrefixes(fmt.Errorf("feed: %w: x", ErrNotFound)); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v is of no kind", err)
	}
}

// TestPackageNamesAreComplete reads the sources for the names that errors begin with.
func TestPackageNamesAreComplete(t *testing.T) {
	start := regexp.MustCompile(`(?:Errorf|errors\.New)\("([a-z0-9]+): `)
	unsaid := regexp.MustCompile(`jsonhttp\.Error\(.*\berr\.Error\(\)`)
	found := map[string]bool{}
	for _, root := range []string{"internal", "follow", "mirror", "spec", "upstream", "kit"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			folder := filepath.Dir(path)
			if strings.HasSuffix(folder, "test") || strings.Contains(folder, "slowapi") {
				return nil
			}
			text, err := os.ReadFile(path)
			if unsaid.Match(text) {
				t.Errorf("%s answers with err.Error(); PlainText says it without package names", path)
			}
			for _, m := range start.FindAllSubmatch(text, -1) {
				if name := string(m[1]); slices.Contains(strings.Split(filepath.ToSlash(folder), "/"), name) {
					found[name] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 20 {
		t.Fatalf("found only %v", found)
	}
	for name := range found {
		if got := PlainText(errors.New(name + ": x")); got != "x" && name != "token" { // files are called token
			t.Errorf("an error begins with %q, which is not in packageNames", name)
		}
	}
}
