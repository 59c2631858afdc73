// Examples; the one map of errors to statuses; what does not compile.

package understudy_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"understudy"
)

func TestDefaultsAreSetWhereNoneWasGiven(t *testing.T) {
	var logger *slog.Logger
	var now func() time.Time
	understudy.SetDefaults(&logger, &now)
	if logger == nil || now == nil {
		t.Fatalf("logger %v, a clock: %v", logger, now != nil)
	}
	given, noon := logger, time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	now = func() time.Time { return noon }
	understudy.SetDefaults(&logger, &now)
	if logger != given {
		t.Error("a logger that was given was replaced")
	}
	if !now().Equal(noon) {
		t.Error("a clock that was given was replaced")
	}
	understudy.SetDefaults(nil, nil)
}

func ExampleStatus() {
	err := fmt.Errorf("store: page calls: %w", understudy.ErrNotFound)
	fmt.Println(understudy.Status(err), errors.Is(err, understudy.ErrNotFound))
	// Output: 404 true
}

func ExampleParseQuery() {
	q, err := understudy.ParseQuery("To=%2B49&Start%3E=2026")
	fmt.Println(q.String(), err)
	// Output: To=%2B49&Start%3E=2026 <nil>
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		err         error
		status, own int
	}{
		{nil, 200, 200},
		{errors.New("of no kind"), 500, 503},
		{understudy.ErrInvalid, 400, 400},
		{understudy.ErrTooLong, 414, 414},
		{understudy.ErrUnauthorized, 401, 401},
		{fmt.Errorf("%w: %w", understudy.ErrTooMany, understudy.ErrUnauthorized), 429, 401},
		{understudy.ErrForbidden, 403, 403},
		{understudy.ErrNotFound, 404, 404},
		{understudy.ErrMethod, 405, 405},
		{understudy.ErrUnknownOutcome, 504, 503},
		{understudy.ErrNoStoredAnswer, 504, 503},
		{understudy.ErrNotMirrored, 503, 503},
		{understudy.ErrIndexing, 503, 503},
		{&understudy.UpstreamError{Why: understudy.FailServer, Err: understudy.ErrInvalid}, 503, 503},
		{understudy.ErrClosed, 503, 503},
		{understudy.ErrConflict, 409, 409},
		{understudy.ErrStoreUnavailable, 503, 503},
		{context.Canceled, 503, 503},
		{context.DeadlineExceeded, 503, 503},
	} {
		err := fmt.Errorf("mirror: %w", c.err)
		if c.err == nil {
			err = nil
		}
		if s, own := understudy.Status(err), understudy.OwnPathStatus(err); s != c.status || own != c.own {
			t.Errorf("%v: %d and %d, want %d and %d", err, s, own, c.status, c.own)
		}
	}
}

const sorts = `package main

import "understudy"

type call struct{}
type message struct{}

func (call) Prefix() string    { return "CA" }
func (message) Prefix() string { return "SM" }

var (
	aCall    understudy.ID[call]
	aMessage understudy.ID[message]
	any      understudy.AnyID
)

func show(id understudy.ID[call]) string { return id.String() }

`

func TestSortsOfIDsDoNotMix(t *testing.T) {
	list := exec.Command("go", "list", "-export", "-trimpath", "-f", "{{.Export}}", "understudy")
	list.Env = append(os.Environ(), "CGO_ENABLED=0") // as the program is built, so that its packages are not compiled again
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	root := importer.ForCompiler(fset, "gc", func(string) (io.ReadCloser, error) { return os.Open(strings.TrimSpace(string(out))) })
	for line, want := range map[string]string{
		"var x = show(aCall)": "",
		"var x = aCall == understudy.ID[call]{Raw: aMessage.Raw}":      "", // said outright
		"var x, ok = understudy.ParseID[call](aMessage.String())":      "", // and looked at
		"var x = show(aMessage)":                                       "cannot use aMessage",
		"var x = show(any)":                                            "cannot use any",
		"var x = show(\"CA0\")":                                        "cannot use \"CA0\"",
		"var x = aCall == aMessage":                                    "mismatched types",
		"var x = any == aCall":                                         "mismatched types",
		"var x = aCall.Compare(aMessage)":                              "cannot use aMessage",
		"var x understudy.ID[call] = aMessage":                         "cannot use aMessage",
		"var x = understudy.ID[call](aMessage)":                        "cannot convert aMessage",
		"var x = (*understudy.ID[call])(&aMessage)":                    "cannot convert &aMessage",
		"var x = map[understudy.ID[call]]bool{aMessage: true}":         "cannot use aMessage",
		"var x = []understudy.ID[call]{aCall, aMessage}":               "cannot use aMessage",
		"var x understudy.ID[string]":                                  "string does not satisfy understudy.IDKind",
		"type mine struct{ call }; var x understudy.ID[mine] = aCall":  "cannot use aCall",
		"type mine struct{ call }; var x = understudy.ID[mine](aCall)": "cannot convert aCall",
	} {
		file, err := parser.ParseFile(fset, "mix.go", sorts+line+"\nfunc main() {}\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		conf := types.Config{Importer: root}
		_, err = conf.Check("main", fset, []*ast.File{file}, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", line, err, want)
		}
	}
}
